// The list. Of every guard and gate the data is kept; nodes are made of those that are near what is in sight.
const rows = new Map(); // by key
let listed = [];        // rows in the order of the list
let chosen = '';
const minute = 60;

const keyOf = r => (r.gate ? 'gate/' : 'guard/') + r.name;
const hashOf = key => '#' + key.slice(0, key.indexOf('/') + 1) + encodeURIComponent(key.slice(key.indexOf('/') + 1));

const cells = [
  ['Circuit', r => r.gate ? '–' : r.circuit, r => r.circuit === 'open' ? 'hot' : /half|ramp/.test(r.circuit) || r.override ? 'warm' : ''],
  ['Attempts per call', r => r.attempts ? r.amplification.toFixed(2) : '–', r => r.attempts < 1 ? '' : r.retryShare > .3 ? 'hot' : r.retryShare > .1 ? 'warm' : ''],
  ['Calls /s', r => number(r.calls)],
  ['Answered /s', r => number(r.good)],
  ['Failed /s', r => number(r.bad), r => heat(r, r.bad)],
  ['Refused /s', r => number(r.refused), r => heat(r, r.refused)],
  ['Retry share', r => r.attempts ? percent(r.retryShare) : '–', r => r.attempts < 1 ? '' : r.retryShare > .3 ? 'hot' : r.retryShare > .1 ? 'warm' : ''],
  ['In flight', r => number(r.inFlight) + (r.limit ? ' / ' + number(r.limit) : ''), r => r.queued ? 'warm' : ''],
  ['Budget', r => r.hasBudget ? number(r.budget) : '–', r => r.hasBudget && r.budget < 1 && r.attempts ? 'warm' : ''],
  ['Takes', r => took(r.took || r.typical)],
];
const heat = (r, n) => !n ? '' : n >= (r.good + r.bad + r.refused) / 2 ? 'hot' : 'warm';

const quiet = () => ({attempts: Array(minute).fill(0), good: Array(minute).fill(0), bad: Array(minute).fill(0), strip: '0'.repeat(minute)});

// keepRow takes in what is known now.
function keepRow(data) {
  const key = keyOf(data), r = rows.get(key);
  if (r) r.data = data;
  else rows.set(key, {key, data, history: quiet(), nodes: null});
}

function makeRow(r) {
  const {key, data} = r, n = r.nodes = {at: -1};
  n.mark = el('i.mark');
  n.count = el('span.tag');
  n.link = el('a', {href: hashOf(key)}, data.name, data.gate ? el('span.tag', null, 'arriving') : null, n.count);
  n.about = el('span.about');
  n.cells = cells.map(([name]) => el('span.cell', {role: 'cell', 'data-name': name.replace('Attempts per call', 'Attempts').replace(' /s', '')}));
  n.paths = ['good', 'bad', 'line', 'half', 'open'].map(name => svg('path', {class: name, 'vector-effect': 'non-scaling-stroke'}));
  n.row = el('div.row', {role: 'row', 'data-key': key, click: e => { if (e.target.tagName !== 'A') location.hash = hashOf(key); }},
    el('span.who', {role: 'cell'}, n.mark, n.link, n.about), n.cells,
    el('span.last', {role: 'cell'}, svg('svg', {class: 'spark', viewBox: '0 0 60 36', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, ...n.paths)));
  fillRow(r);
}

function dropRow(r) {
  r.nodes?.row.remove();
  r.nodes = null;
}

// fillRow shows what a row says now, if it is made.
function fillRow(r) {
  const d = r.data, n = r.nodes, level = levels[d.level];
  if (!n) return;
  dress(n.row, 'row ' + level + (chosen === r.key ? ' chosen' : ''));
  dress(n.mark, 'mark ' + level);
  const why = d.why || (d.level === 1 ? '' : 'idle');
  put(n.about, why);
  label(n.about, 'title', [why, d.story?.cause, d.story?.effect, d.story?.next].filter(Boolean).join('. ').replaceAll('..', '.'));
  put(n.count, d.guards < 2 ? '' : '× ' + d.guards);
  label(n.link, 'aria-label', d.name + (d.gate ? ', arriving' : '') + ', ' + level + (d.why ? ': ' + d.why : ''));
  cells.forEach(([, text, warmth], i) => {
    put(n.cells[i], text(d));
    dress(n.cells[i], 'cell' + (i ? ' num' : '') + (warmth && warmth(d) ? ' ' + warmth(d) : ''));
  });
  drawSpark(r);
}

function drawSpark(r) {
  const h = r.history, paths = r.nodes.paths, none = nil(h.good), lost = sum(h.good, h.bad);
  const most = Math.max(4, ...h.attempts, ...lost);
  draw(paths[0], stack(none, h.good, most, 31));
  draw(paths[1], stack(h.good, lost, most, 31));
  draw(paths[2], line(h.attempts, most, 31));
  draw(paths[3], runs(h.strip, '1', 33, 36));
  draw(paths[4], runs(h.strip, '2', 33, 36));
}

// advance moves the last minute on by some seconds. A row of which nothing was heard is as it was.
function advance(r, seconds) {
  const h = r.history, [attempts, good, bad] = r.data.last;
  const state = {open: '2', 'half-open': '1', 'ramp-up': '1'}[r.data.circuit] || '0';
  for (; seconds > 0; seconds--) {
    h.attempts.push(attempts); h.good.push(good); h.bad.push(bad);
    h.attempts.shift(); h.good.shift(); h.bad.shift();
    h.strip = h.strip.slice(1) + state;
  }
}

const orders = {
  level: r => [-r.data.level, r.data.gate ? 1 : 0],
  name: () => [],
  calls: r => [-r.data.calls],
  amplification: r => [-(r.data.attempts ? r.data.amplification : 0)],
  bad: r => [-(r.data.bad + r.data.refused)],
};

// arrange puts the rows into their order.
function arrange() {
  const want = $('find').value.trim().toLowerCase(), order = orders[$('sort').value] || orders.level;
  listed = [...rows.values()].filter(r => !want || r.data.name.toLowerCase().includes(want) || (r.data.why || '').toLowerCase().includes(want));
  for (const r of listed) r.rank = order(r);
  listed.sort((a, b) => {
    for (let i = 0; i < a.rank.length; i++) if (a.rank[i] !== b.rank[i]) return a.rank[i] - b.rank[i];
    return a.data.name < b.data.name ? -1 : a.data.name > b.data.name ? 1 : 0;
  });
  $('rows').style.setProperty('--n', listed.length);
  label($('table'), 'aria-rowcount', listed.length + 1);
  show();
  put($('shown'), want ? listed.length + ' of ' + rows.size : '');
  $('none').hidden = listed.length > 0;
  put($('none'), rows.size ? 'No name or reason has “' + want + '” in it.' : 'No guards yet. They appear when the policy names a service.');
}

const rowOf = node => rows.get(node?.closest('.row')?.dataset.key);

// show makes the rows that are less than a screen away from what is in sight, and drops the others, all but the one with the
// focus and those beside it, to which Tab leads. All are of the same height, so it is known where each is.
function show(focused = rowOf(document.activeElement)) {
  const box = $('rows'), {top, height} = box.getBoundingClientRect();
  const from = height ? (-top - innerHeight) / height * listed.length : 0, to = height ? (2 * innerHeight - top) / height * listed.length : 0;
  const at = focused ? listed.indexOf(focused) : -1;
  const near = listed.map((r, i) => [r, i]).filter(([, i]) => i + 1 > from && i < to || at >= 0 && Math.abs(i - at) < 2);
  const stay = new Set(near.map(([r]) => r)), active = document.activeElement;
  for (const node of [...box.children]) if (!stay.has(rowOf(node))) dropRow(rowOf(node));
  let next = null;
  for (const [r, i] of near.reverse()) {
    if (!r.nodes) makeRow(r);
    const n = r.nodes;
    if (n.at !== i) {
      n.at = i;
      n.row.style.setProperty('--i', i);
      n.row.setAttribute('aria-rowindex', i + 2);
    }
    if (n.row.parentNode !== box || n.row.nextSibling !== next) box.insertBefore(n.row, next);
    next = n.row;
  }
  if (active !== document.activeElement && box.contains(active)) active.focus({preventScroll: true}); // moving it took it away
}

// goTo moves the focus to a row, wherever in the list it is.
function goTo(r) {
  show(r);
  r?.nodes?.link.focus();
}

$('rows').addEventListener('focusin', () => show());
addEventListener('scroll', () => show(), {passive: true});
addEventListener('resize', () => show());
