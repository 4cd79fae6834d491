// One guard or gate: why it is as it is.
let view = null; // what is shown, or nothing

const words = {
  forcedOpen: ['Force open', 'Force the circuit of “%” open?', 'Every call to it is refused at once, until somebody takes this back. A reload of the policy does not change it; a restart of the process does.', true],
  disabled: ['Disable breaker', 'Disable the circuit breaker of “%”?', 'Every call passes, also to a dependency that is down. Retries, the budget and limits stay as they are. It stays so until somebody takes it back, or the process restarts.', true],
  shadow: ['Shadow', 'Put the circuit breaker of “%” in shadow?', 'It goes on deciding and saying what it would do, and refuses nothing. It stays so until somebody takes it back, or the process restarts.', false],
  '': ['Leave it to the policy', 'Leave “%” to the policy again?', 'The circuit breaker does what the policy file says. After a forced open circuit it starts closed.', false],
};

function openDetail(key) {
  const gate = key.startsWith('gate/'), name = key.slice(key.indexOf('/') + 1);
  const v = view = {key, gate, name, since: ''};
  v.mark = el('i.mark');
  v.title = el('h2', {tabindex: '-1'}, name);
  v.why = el('ul.why');
  v.story = el('dl.story');
  v.hand = el('div.hand', {role: 'group', 'aria-label': 'By hand'}, gate ? [] : Object.entries(words).map(([value, [text]]) =>
    el('button', {type: 'button', 'data-override': value, click: () => confirmOverride(name, value)}, text)));
  v.how = el('p.mute');
  makePlots(v);
  v.facts = el('dl.facts');
  v.attempts = el('div'); v.refusals = el('div'); v.errors = el('div'); v.events = el('div');
  v.policy = el('pre', {tabindex: '0', 'aria-label': 'Policy'});
  v.policyBox = el('details', {hidden: true}, el('summary', null, 'Policy in force'), v.policy);
  v.problem = el('p.mute', {hidden: true});
  replace($('detail'), el('div.top', null, v.mark, v.title, el('button', {type: 'button', click: closeDetail}, 'Close')),
    v.problem, v.why, v.story, v.hand, v.how, v.plots.map(p => p.node), el('h3', null, 'Now'), v.facts,
    el('div.tables', null, el('section', null, el('h3', null, gate ? 'Why requests were refused' : 'Why the policy said no'), v.refusals), el('section', null, el('h3', null, gate ? 'How requests ended' : 'How attempts ended'), v.attempts)),
    el('h3', null, 'Last errors'), v.errors, el('h3', null, 'Events'), v.events, v.policyBox);
  $('detail').hidden = false;
  $('detail').scrollTop = 0;
  $('main').classList.add('both');
  choose(key);
  v.title.focus({preventScroll: true});
  if (innerWidth < 1240) scrollTo(0, $('main').offsetTop - 12);
  refresh();
}

function makePlots(v) {
  const s = name => i => v.series ? v.series[name][i] : 0;
  const ended = plot(v.gate ? 'Requests a second' : 'Calls a second', '', [['good', 'answered'], ['bad', 'failed'], ['again', 'refused']],
    i => [s('good')(i), s('bad')(i), s('refused')(i)].map(number));
  const sent = plot(v.gate ? 'Arrivals a second' : 'Attempts a second', '', [['good', 'first'], ['again', v.gate ? 'callers’ retries' : 'retries and hedges']],
    i => [s('first')(i), s('extra')(i)].map(number));
  const latency = plot(v.gate ? 'Requests take' : 'Attempts take', 'low', [['took', 'on average']], i => [took(s('took')(i))]);
  const lane = plot('Circuit', 'lane', [['shut', ''], ['half', 'coming back'], ['open', 'open']], i => [v.strip ? ['closed', 'coming back', 'open'][v.strip[i]] : '', '', '']);
  v.charts = {ended, sent, latency, lane};
  v.plots = v.gate ? [ended, sent, latency] : [ended, lane, sent, latency];
}

function choose(key) {
  const changed = [rows.get(chosen), rows.get(key)];
  chosen = key;
  for (const r of changed) if (r) fillRow(r);
}

function closeDetail() {
  if (!view) return;
  const key = view.key;
  view = null;
  $('detail').hidden = true;
  $('main').classList.remove('both');
  choose('');
  if (location.hash) history.replaceState(null, '', location.pathname + location.search);
  goTo(rows.get(key));
}

// refresh asks for what is new. One question at a time; the next tick asks again.
async function refresh() {
  const v = view;
  if (!v || v.asking) return;
  v.asking = true;
  try {
    const d = await (await ask((v.gate ? 'gate' : 'guard') + '?name=' + encodeURIComponent(v.name), null, AbortSignal.timeout(5000))).json();
    if (view === v) showDetail(v, d);
  } catch (e) {
    if (view === v && e.status) { v.problem.hidden = false; put(v.problem, e.message); }
  } finally { v.asking = false; }
}

function showDetail(v, d) {
  v.problem.hidden = true;
  v.series = d.series; v.strip = d.strip; v.at = d.at;
  const level = levels[d.row.level];
  dress(v.mark, 'mark ' + level);
  again(v.why, [d.row.why, d.row.level, d.row.since && ago(d.row.since, d.at)], () => reasons(d));
  again(v.story, d.row.story, () => told(d.row.story));
  showHand(v, d.row);
  drawPlots(v, d);
  again(v.facts, d.facts, () => d.facts.map(f => el('div', null, el('dt', null, f.name), el('dd', null, f.value, f.about ? el('small', null, f.about) : null))));
  again(v.attempts, d.attempts, () => counted(d.attempts));
  again(v.refusals, d.refusals, () => d.refusals.length ? counted(d.refusals) : el('p.mute', null, 'Nothing was refused in the last five minutes.'));
  again(v.errors, d.errors.map(e => [e.at, ago(e.at, d.at)]), () => d.errors.length ? past(d.errors, d.at) : el('p.mute', null, v.gate ? 'A gate sees no errors, only how requests ended.' : 'None yet. Answers with a failure status are counted above; they have no text.'));
  again(v.events, d.events.map(e => [e.at, ago(e.at, d.at)]), () => d.events.length ? past(d.events, d.at) : el('p.mute', null, 'None yet.'));
  v.policyBox.hidden = !d.policy;
  put(v.policy, d.policy || '');
}

function reasons(d) {
  const word = levels[d.row.level];
  if (!d.row.why) return el('li.mute', null, d.row.level ? 'All is well.' : 'No calls in the last ten seconds.');
  const since = d.row.since ? ', for ' + ago(d.row.since, d.at).replace(' ago', '').replace('just now', 'a moment') : '';
  return d.row.why.split('; ').map((text, i) => el('li' + (i ? '' : '.word-' + word), null, text + (/^(circuit (open|probes)|traffic)/.test(text) ? since : '')));
}

// told is what is behind it, what it does, and what comes next, as far as there is something to say.
const told = story => [['Cause', 'cause'], ['Effect', 'effect'], ['Next', 'next']].filter(([, part]) => story?.[part])
  .map(([name, part]) => el('div', null, el('dt', null, name), el('dd', null, story[part])));

function drawPlots(v, d) {
  const s = d.series, {ended, sent, latency, lane} = v.charts, none = nil(s.good);
  const bad = sum(s.good, s.bad), all = sum(bad, s.refused), tries = sum(s.first, s.extra);
  const most = nice(Math.max(...all)), mostTries = nice(Math.max(...tries)), slowest = nice(Math.max(...s.took));
  draw(ended.paths[0], stack(none, s.good, most, 100));
  draw(ended.paths[1], stack(s.good, bad, most, 100));
  draw(ended.paths[2], stack(bad, all, most, 100));
  ended.top(number(most) + ' /s');
  draw(sent.paths[0], stack(none, s.first, mostTries, 100));
  draw(sent.paths[1], stack(s.first, tries, mostTries, 100));
  sent.top(number(mostTries) + ' /s');
  draw(latency.paths[0], line(s.took, slowest, 96, true));
  latency.top(took(slowest));
  lane.node.hidden = d.row.circuit === 'off' && !/[12]/.test(d.strip);
  draw(lane.paths[0], runs(d.strip, '0', 0, 100));
  draw(lane.paths[1], runs(d.strip, '1', 0, 100));
  draw(lane.paths[2], runs(d.strip, '2', 0, 100));
  for (const p of v.plots) p.show();
}

function counted(list) {
  return el('table', null, el('thead', null, el('tr', null, el('th', {scope: 'col'}, ''), el('th.num', {scope: 'col'}, 'last minute'), el('th.num', {scope: 'col'}, '5 minutes'))),
    el('tbody', null, list.map(c => el('tr', null, el('th', {scope: 'row'}, c.name), el('td.num', null, number(c.minute)), el('td.num', null, number(c.five))))));
}

const past = (list, now) => el('ol.past', null, list.map(e => el('li', null, el('time', {datetime: new Date(e.at).toISOString(), title: new Date(e.at).toLocaleString()}, ago(e.at, now)),
  e.class ? el('span', null, e.class + ': ', el('code', null, e.text)) : el('span', null, e.text))));

// showHand has the buttons say what may be done now.
function showHand(v, row) {
  for (const button of v.hand.children) {
    const value = button.dataset.override, on = (row.override || '') === value;
    button.hidden = value === '' && on;
    button.disabled = !head.may || on;
    button.setAttribute('aria-pressed', String(on && value !== ''));
  }
  put(v.how, v.gate || head.may ? '' : head.how || '');
}
