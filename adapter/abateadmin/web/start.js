// What is above the list, the stream that keeps all of it up to date, and what can be done by hand.
let head = {acts: []};
let now = 0; // on the server's clock

function takeHead(h) {
  head = h;
  document.title = h.title;
  put($('title'), h.title);
  $('reload').hidden = !h.reloads;
  $('reload').disabled = !h.may;
  $('reload').title = h.may ? '' : h.how || '';
  $('sign').hidden = !h.asks && !token;
  put($('sign'), token ? 'Forget token' : 'Token');
}

// takeRows takes new data of rows in. Rows of which nothing comes stay as they were.
function takeRows(list, gone) {
  for (const data of list || []) keepRow(data);
  for (const data of gone || []) {
    const r = rows.get(keyOf(data));
    if (!r) continue;
    dropRow(r);
    rows.delete(r.key);
    listed = listed.filter(other => other !== r); // a scroll may come before the next frame
  }
}

function takeFull(s) {
  takeHead(s);
  const there = new Set(s.rows.map(keyOf));
  takeRows(s.rows, [...rows.values()].filter(r => !there.has(r.key)).map(r => r.data));
  const sparks = new Map((s.sparks || []).map(k => [keyOf(k), k]));
  for (const r of rows.values()) {
    const k = sparks.get(r.key);
    r.history = k ? {attempts: k.attempts, good: k.good, bad: k.bad, strip: k.strip} : quiet();
  }
  now = s.at;
}

function takeDelta(d) {
  if (d.head) takeHead(d.head);
  takeRows(d.rows, d.gone);
  const seconds = Math.min(minute, Math.floor(d.at / 1000) - Math.floor(now / 1000));
  for (const r of rows.values()) advance(r, seconds);
  now = d.at;
}

// paintSoon paints with the next frame, once for all that came before it: a tab in the background has no frames for hours.
let painting = 0;
const paintSoon = () => { painting ||= requestAnimationFrame(paint); };

function paint() {
  painting = 0;
  $('list').hidden = $('totals').hidden = $('verdict').hidden = false;
  for (const r of rows.values()) fillRow(r);
  arrange();
  paintVerdict();
  paintTotals();
  paintBanners();
  paintActs();
  put($('file'), head.path ? head.path + ', loaded ' + ago(head.loaded, now) : '');
}

function paintVerdict() {
  const by = [0, 1, 2, 3].map(l => [...rows.values()].filter(r => r.data.level === l));
  const level = by[3].length ? 3 : by[2].length ? 2 : by[1].length ? 1 : 0;
  const names = list => list.map(r => r.data.name).sort().slice(0, 3).join(', ') + (list.length > 3 ? ' and ' + (list.length - 3) + ' more' : '');
  dress($('verdict'), 'verdict ' + levels[level]);
  dress($('verdict').querySelector('.mark'), 'mark ' + levels[level]);
  const alone = level > 1 && by[level].length === 1;
  const why = r => r.data.why.split('; ')[0];
  const inShort = d => d.story?.cause || d.story?.next ? [d.story.cause || d.why.split('; ')[0] + '.', d.story.next].filter(Boolean).join(' ') : why({data: d});
  put($('said'), level > 1 ? (alone ? names(by[level]) + (level === 3 ? ' is in trouble' : ' is worth a look') : by[level].length + (level === 3 ? ' in trouble: ' : ' worth a look: ') + names(by[level])) :
    level === 1 ? 'All calm.' : rows.size ? 'No traffic.' : 'Nothing to watch yet.');
  const rest = [level === 3 && by[2].length ? by[2].length + ' more worth a look' : '', by[1].length ? by[1].length + ' calm' : '', by[0].length ? by[0].length + ' idle' : ''].filter(Boolean).join(', ');
  const worst = level > 1 ? [...by[level]].sort((a, b) => a.data.name < b.data.name ? -1 : 1).slice(0, 3).map(r => alone ? inShort(r.data) : r.data.name + ': ' + why(r)).join(' · ') : '';
  put($('more'), [worst, rest].filter(Boolean).join(' — '));
}

function paintTotals() {
  let calls = 0, good = 0, lost = 0, attempts = 0, first = 0, flight = 0;
  for (const {data: d} of rows.values()) {
    if (d.gate) continue;
    calls += d.calls; good += d.good; lost += d.bad + d.refused; attempts += d.attempts; flight += d.inFlight;
    first += d.attempts ? d.attempts / d.amplification : 0;
  }
  const all = [['Calls', number(calls), ' /s'], ['Answered', number(good), ' /s'], ['Failed or refused', number(lost), ' /s'],
    ['Attempts per call', first ? (attempts / first).toFixed(2) : '–', ''], ['In flight', number(flight), '']];
  again($('totals'), all, () => all.map(([name, value, unit]) => el('div', null, el('dt', null, name), el('dd', null, value, el('small', null, unit)))));
}

function paintBanners() {
  const names = {forcedOpen: 'circuit forced open', disabled: 'circuit breaker disabled', shadow: 'circuit breaker in shadow'};
  const hands = [...rows.values()].filter(r => r.data.override).map(r => r.data).sort((a, b) => a.name < b.name ? -1 : 1);
  again($('banners'), [hands.map(d => [d.name, d.override, d.by, d.handAt && ago(d.handAt, now)]), head.problem, head.may], () => [
    head.problem ? el('div.banner.red', {role: 'alert'}, el('span', null, el('b', null, 'The policy file as it is now is not in force. '), 'The last good policy is.'), el('pre', null, head.problem)) : null,
    hands.map(d => el('div.banner' + (d.override === 'forcedOpen' ? '.red' : ''), null,
      el('span', null, el('b', null, d.name), ': ' + names[d.override] + ' by hand' + (d.by ? ' by ' + d.by : '') + (d.handAt ? ' ' + ago(d.handAt, now) : '')),
      el('button', {type: 'button', disabled: !head.may, title: head.may ? null : head.how, click: () => confirmOverride(d.name, '')}, 'Take back'))),
  ]);
}

function paintActs() {
  $('acts').hidden = !head.acts.length;
  again($('actlist'), head.acts.map(a => [a.at, ago(a.at, now)]), () => head.acts.slice().reverse().map(a =>
    el('li', null, el('time.mute', null, ago(a.at, now)), el('span', null, a.text + (a.who ? ' by ' + a.who : '')), a.problem ? el('pre', null, a.problem) : null)));
}

// confirmOverride asks once before something is done, and says what it does.
function confirmOverride(name, value) {
  const [text, question, about, danger] = words[value];
  dialog(question.replace('%', () => name), about, text, danger, [], () => act('override', {guard: name, override: value}));
}

async function act(path, body) {
  note((await (await ask(path, body)).json()).done + '.');
  refresh();
}

function dialog(title, about, yes, danger, fields, run) {
  const wrong = el('p.wrong', {role: 'alert'}), stay = el('button', {type: 'button', click: () => $('ask').close()}, 'Cancel'), go = el('button' + (danger ? '.danger' : ''), {type: 'submit'}, yes);
  const box = $('ask');
  replace(box, el('form', {submit: async e => {
    e.preventDefault();
    go.disabled = true;
    try { await run(); box.close(); } catch (e) { put(wrong, e.message); } finally { go.disabled = false; }
  }}, el('h2', {id: 'asked'}, title), el('p', null, about), fields, wrong,
  el('div.buttons', null, stay, go)));
  box.showModal();
  (fields.length ? box.querySelector('input') : danger ? stay : go).focus(); // a key pressed twice does no harm
}

function askToken(why) {
  const input = el('input', {id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false'});
  if ($('ask').open) return;
  dialog('Who is it?', why || 'A token lets you see and change things here. It is kept in this tab only.', 'Use this token', false,
    [el('label', null, 'Token', input)], async () => {
      const before = token;
      keep(input.value.trim());
      try { await ask('state'); } catch (e) { keep(before); throw e; }
      reconnect();
    });
}

// The stream. EventSource cannot send a token, so it is read by hand.
let stream = new AbortController(), failures = 0, waiting = 0;

async function follow() {
  const mine = stream = new AbortController();
  let silence = 0;
  const alive = () => { clearTimeout(silence); silence = setTimeout(() => mine.abort(), 6000); }; // a dead connection says nothing
  try {
    alive();
    const answer = await ask('events', null, mine.signal);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let text = '';;) {
      const {done, value} = await reader.read();
      if (done) break;
      alive();
      const parts = (text + value).split('\n\n');
      text = parts.pop();
      for (const part of parts) if (part.startsWith('data: ')) take(JSON.parse(part.slice(6)));
    }
    throw new Error('the stream has ended');
  } catch (e) {
    if (mine === stream) lost(e);
  } finally { clearTimeout(silence); }
}

function take(s) {
  failures = 0;
  put($('live'), 'live');
  dress($('live'), 'live');
  s.rows && s.full ? takeFull(s) : takeDelta(s);
  paintSoon();
  refresh();
}

// lost waits longer each time, and not as long as others do: fifty tabs must not come back together.
function lost(e) {
  if (e.status === 401) {
    put($('live'), 'a token is needed');
    dress($('live'), 'live off');
    $('sign').hidden = false;
    askToken(token ? 'This token is not known any more. ' + e.message : e.message);
    return;
  }
  put($('live'), e.status ? e.message : 'no connection, trying again');
  dress($('live'), 'live off');
  const wait = Math.min(15000, 500 * 2 ** failures++) * (.5 + Math.random());
  clearTimeout(waiting);
  waiting = setTimeout(follow, wait);
}

function reconnect() {
  clearTimeout(waiting);
  const before = stream;
  stream = null; // so that the old one does not try again
  before.abort();
  failures = 0;
  follow();
}

// The address says what is shown, so that it can be sent to somebody.
function route() {
  const [, kind, name] = /^#(guard|gate)\/(.+)$/.exec(location.hash) || [];
  let key = '';
  try { key = kind ? kind + '/' + decodeURIComponent(name) : ''; } catch { /* no name */ }
  if (key && (!view || view.key !== key)) openDetail(key);
  if (!key && location.hash !== '#list') closeDetail();
}

addEventListener('hashchange', route);
$('filter').addEventListener('submit', e => e.preventDefault());
$('find').addEventListener('input', arrange);
$('sort').addEventListener('change', arrange);
$('sign').addEventListener('click', () => {
  if (!token) return askToken();
  keep('');
  reconnect();
});
$('reload').addEventListener('click', () => dialog('Load the policy file again?', 'All of it is checked first. If there is a mistake, nothing changes.', 'Reload policy', false, [], () => act('reload', {})));
document.addEventListener('visibilitychange', () => { if (!document.hidden && $('live').classList.contains('off') && !$('ask').open) reconnect(); });

addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || $('ask').open) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    if (e.key === 'Escape') document.activeElement.blur();
    return;
  }
  const at = listed.indexOf(rowOf(document.activeElement));
  const press = {
    j: () => goTo(listed[Math.min(at + 1, listed.length - 1)]), k: () => goTo(listed[Math.max(at - 1, 0)]),
    '/': () => $('find').focus(), Escape: closeDetail,
  }[e.key];
  if (!press) return;
  e.preventDefault();
  press();
});

follow();
route();
