// The list: one row for each guard and gate, made once and changed in place.
const rows = new Map(); // by key
let shownRows = [];     // keys in the order in which they are shown
let chosen = '';
const minute = 60;

const keyOf = r => (r.gate ? 'gate/' : 'guard/') + r.name;
const hashOf = key => '#' + key.slice(0, key.indexOf('/') + 1) + encodeURIComponent(key.slice(key.indexOf('/') + 1));

// Rows that are in sight have their lines drawn; the others are drawn when they come.
const sight = new IntersectionObserver(entries => {
  for (const e of entries) {
    const r = rows.get(e.target.dataset.key);
    if (!r) continue;
    r.insight = e.isIntersecting;
    if (r.insight) { fillRow(r); drawSpark(r); }
  }
}, {rootMargin: '200px'});

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

function makeRow(data) {
  const key = keyOf(data);
  const r = {key, data, insight: false, history: {attempts: Array(minute).fill(0), good: Array(minute).fill(0), bad: Array(minute).fill(0), strip: '0'.repeat(minute)}};
  r.mark = el('i.mark');
  r.link = el('a', {href: hashOf(key)}, data.name, data.gate ? el('span.tag', null, 'arriving') : null);
  r.about = el('span.about');
  r.count = el('span.tag', {hidden: true});
  r.link.append(r.count);
  r.cells = cells.map(([name]) => el('span.cell', {role: 'cell', 'data-name': name.replace('Attempts per call', 'Attempts').replace(' /s', '')}));
  r.paths = ['good', 'bad', 'line', 'half', 'open'].map(name => svg('path', {class: name, 'vector-effect': 'non-scaling-stroke'}));
  r.node = el('div.row', {role: 'row', 'data-key': key, click: e => { if (e.target.tagName !== 'A') location.hash = hashOf(key); }},
    el('span.who', {role: 'cell'}, r.mark, r.link, r.about), r.cells,
    el('span.last', {role: 'cell'}, svg('svg', {class: 'spark', viewBox: '0 0 60 36', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, ...r.paths)));
  sight.observe(r.node);
  rows.set(key, r);
  return r;
}

// fillRow shows what a row says now.
function fillRow(r) {
  const d = r.data, level = levels[d.level];
  dress(r.node, 'row ' + level + (chosen === r.key ? ' chosen' : ''));
  dress(r.mark, 'mark ' + level);
  const why = d.why || (d.level === 1 ? '' : 'idle');
  put(r.about, why);
  r.about.title = why;
  r.count.hidden = d.guards < 2;
  put(r.count, d.guards < 2 ? '' : '× ' + d.guards);
  r.link.setAttribute('aria-label', d.name + (d.gate ? ', arriving' : '') + ', ' + level + (d.why ? ': ' + d.why : ''));
  cells.forEach(([, text, warmth], i) => {
    put(r.cells[i], text(d));
    dress(r.cells[i], 'cell' + (i ? ' num' : '') + (warmth && warmth(d) ? ' ' + warmth(d) : ''));
  });
}

function drawSpark(r) {
  const h = r.history, none = nil(h.good), lost = sum(h.good, h.bad);
  const most = Math.max(4, ...h.attempts, ...lost);
  draw(r.paths[0], stack(none, h.good, most, 31));
  draw(r.paths[1], stack(h.good, lost, most, 31));
  draw(r.paths[2], line(h.attempts, most, 31));
  draw(r.paths[3], runs(h.strip, '1', 33, 36));
  draw(r.paths[4], runs(h.strip, '2', 33, 36));
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

// steady finds the most places whose old numbers rise, so that the rows there need not be moved. -1 is new.
function steady(old) {
  const ends = [], before = []; // the place that ends the best run of each length, and the place before each
  old.forEach((v, i) => {
    if (v < 0) return;
    let low = 0, high = ends.length;
    while (low < high) {
      const mid = (low + high) >> 1;
      if (old[ends[mid]] < v) low = mid + 1; else high = mid;
    }
    before[i] = low ? ends[low - 1] : -1;
    ends[low] = i;
  });
  const stay = new Set();
  for (let i = ends.length ? ends[ends.length - 1] : -1; i >= 0; i = before[i]) stay.add(i);
  return stay;
}

// arrange puts the rows into their order, and moves only those that are not in their place.
function arrange() {
  const want = $('find').value.trim().toLowerCase(), order = orders[$('sort').value] || orders.level;
  const list = [...rows.values()].filter(r => !want || r.data.name.toLowerCase().includes(want) || (r.data.why || '').toLowerCase().includes(want));
  for (const r of list) r.rank = order(r);
  list.sort((a, b) => {
    for (let i = 0; i < a.rank.length; i++) if (a.rank[i] !== b.rank[i]) return a.rank[i] - b.rank[i];
    return a.data.name < b.data.name ? -1 : a.data.name > b.data.name ? 1 : 0;
  });
  const box = $('rows');
  const keys = list.map(r => r.key);
  if (keys.length !== shownRows.length || keys.some((k, i) => k !== shownRows[i])) {
    const focused = document.activeElement;
    const wanted = new Set(keys);
    for (const key of shownRows) if (!wanted.has(key)) rows.get(key)?.node.remove();
    const was = new Map(shownRows.map((k, i) => [k, i])), stay = steady(keys.map(k => was.has(k) ? was.get(k) : -1));
    let next = null;
    for (let i = list.length - 1; i >= 0; i--) {
      if (!stay.has(i)) box.insertBefore(list[i].node, next);
      next = list[i].node;
    }
    if (focused && focused !== document.activeElement && box.contains(focused)) focused.focus({preventScroll: true});
    shownRows = keys;
  }
  put($('shown'), want ? list.length + ' of ' + rows.size : '');
  $('none').hidden = list.length > 0;
  put($('none'), rows.size ? 'No name or reason has “' + want + '” in it.' : 'No guards yet. They appear when the policy names a service.');
}
