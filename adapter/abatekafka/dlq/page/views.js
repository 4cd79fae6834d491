// The views. Each gets the place to fill, the rest of the address, its query, and a signal that it is not shown any more.
let desk = {topic: '', hideValues: false};
let listed = []; // the letters of the last list, to go from one to the next
const title = text => { document.title = (text ? text + ' · ' : '') + desk.topic; };

function filters(parts, query) {
  const here = new URLSearchParams(query);
  const go = () => { location.hash = address(parts, here); };
  const set = (key, value) => { value ? here.set(key, value) : here.delete(key); };
  const choice = (name, key, options) => el('div', null, el('label', {for: 'f-' + key}, name),
    el('select', {id: 'f-' + key, change: e => { set(key, e.target.value); if (key === 'since' && e.target.value !== 'own') { here.delete('from'); here.delete('to'); } go(); }},
      options.map(([value, text]) => el('option', {value, selected: (query.get(key) || (key === 'since' && (query.get('from') || query.get('to')) ? 'own' : '')) === value}, text))));
  const own = query.get('since') === 'own' || query.get('from') || query.get('to');
  const at = (key, name) => el('div', null, el('label', {for: 'f-' + key}, name), el('input', {id: 'f-' + key, type: 'datetime-local', step: 1, value: local(query.get(key)),
    change: e => { set(key, e.target.value ? new Date(e.target.value).toISOString() : ''); set('since', 'own'); go(); }}));
  const where = el('input.mono', {id: 'f-where', value: query.get('where') || '', spellcheck: 'false', autocomplete: 'off', placeholder: 'class == "card-declined" && age < 2h'});
  return el('form.filters', {submit: e => { e.preventDefault(); set('where', where.value.trim()); go(); }},
    choice('State', 'state', [['', 'waiting'], ['replayed', 'replayed'], ['deleted', 'deleted'], ['any', 'any']]),
    choice('Written', 'since', [['', 'any time'], ['1h', 'last hour'], ['24h', 'last day'], ['7d', 'last 7 days'], ['own', 'from … to …']]),
    el('div.where', null, el('label', {for: 'f-where'}, 'Where'), where),
    el('div.buttons', null, el('button', {type: 'submit'}, 'Filter'), [...query.keys()].length ? button('Clear', () => { location.hash = address(parts); }) : null),
    own ? el('div.span', null, at('from', 'From'), at('to', 'To')) : null,
    el('p.error.mono', {id: 'f-error', role: 'alert', hidden: true}),
    el('details.help', null, el('summary', null, 'How to write a condition'), el('pre', null,
      desk.help)));
}

function local(iso) {
  const at = new Date(iso);
  if (!iso || isNaN(at)) return '';
  return new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

// wrong shows what the server says about the condition under it, else in place of the content.
function wrong(place, error) {
  if (error.name === 'AbortError') return;
  if (error.status === 401) return askToken(place, error);
  const under = $('f-error');
  if (error.status === 400 && under) {
    replace(under, error.message);
    under.hidden = false;
    $('f-where').setAttribute('aria-invalid', 'true');
    replace(place);
    return;
  }
  replace(place, el('div.empty', null, el('b', null, error.status === 404 ? 'Not there' : 'That did not work'), el('p.error', null, error.message), button('Try again', show)));
}

function askToken(place, error) {
  const input = el('input', {type: 'password', autocomplete: 'off', 'aria-label': 'Token', required: true});
  replace(place, el('form.token', {submit: e => {
    e.preventDefault();
    token = input.value.trim();
    sessionStorage.setItem('abate-dlq-token', token);
    start();
  }}, el('h2', null, 'Who are you?'), el('p.mute', null, token ? 'The server does not know this token. ' : '', error.message, '. It is kept in this tab only.'), input, el('div', null, el('button.main', {type: 'submit'}, 'Go on'))));
  input.focus();
}

// spark draws arrivals over time.
function spark(counts) {
  if (!counts || counts.length < 2) return ''; // all in one moment
  const top = Math.max(...counts), width = 100 / counts.length, bars = [];
  counts.forEach((n, i) => {
    if (n) bars.push(svg('rect', {x: i * width, width: Math.max(width - .4, .6), y: 30 - Math.max(2, 29 * n / top), height: Math.max(2, 29 * n / top)}));
  });
  const picture = svg('svg', {class: 'spark', viewBox: '0 0 100 30', preserveAspectRatio: 'none', role: 'img', 'aria-label': 'arrivals over time, at most ' + top + ' in one of ' + counts.length + ' slots'},
    svg('path', {d: 'M0 30H100', 'vector-effect': 'non-scaling-stroke'}), ...bars);
  return picture;
}

function row(link, ...cells) {
  return el('tr.row', {click: e => { if (!e.target.closest('a, button') && !getSelection().toString()) location.hash = link; }}, cells);
}

const cell = (name, kind, ...children) => el('td' + (kind ? '.' + kind : ''), {'data-name': name}, children);
const tag = state => el('span.tag.' + state, null, state);
const keep = query => { const q = new URLSearchParams(query); q.delete('sort'); return q; };

const orders = {count: (a, b) => b.count - a.count, last: (a, b) => new Date(b.last) - new Date(a.last), first: (a, b) => new Date(a.first) - new Date(b.first)};

async function groupsView(main, parts, query, signal) {
  title('Groups');
  const place = el('div', null, el('p.loading', null, 'Reading the topic …'));
  replace(main, filters(parts, query), place);
  try {
    const {groups} = await get('groups?' + new URLSearchParams(filterOf(query)), signal);
    const sort = orders[query.get('sort')] ? query.get('sort') : 'count';
    groups.sort(orders[sort]);
    const total = groups.reduce((n, g) => n + g.count, 0);
    const by = (name, key, kind) => el('th' + (kind ? '.' + kind : ''), {'aria-sort': sort === key ? (key === 'first' ? 'ascending' : 'descending') : null},
      button(name, () => { const q = new URLSearchParams(query); q.set('sort', key); location.hash = address(parts, q); }, 'plain'));
    if (!groups.length) return replace(place, nothing(query));
    replace(place, el('div.bar', null, el('p.sum', null, el('b', null, number(total)), total === 1 ? ' letter in ' : ' letters in ', plural(groups.length, 'group')), ...actions(query, {count: total, newest: latest(groups)})),
      el('table.cards', null, el('thead', null, el('tr', null, el('th', null, 'What went wrong'), by('Letters', 'count', 'num'), el('th', null, 'Arrivals'), by('First', 'first'), by('Last', 'last'), el('th', null, 'From'))),
        el('tbody', null, groups.map(g => groupRow(g, query)))));
  } catch (e) { wrong(place, e); }
}

const latest = groups => groups.reduce((at, g) => Math.max(at, +new Date(g.last)), 0);

function groupRow(g, query) {
  const link = address(['group', g.id], keep(query));
  return row(link, el('td', null, el('a', {href: link}, g.class || '(no class)'), el('span.mono', null, g.pattern), g.again ? el('small.bad', null, number(g.again), ' were replayed before and are back') : null, g.note ? el('p.note', null, g.note) : null),
    cell('Letters', 'num.count', number(g.count)), cell('Arrivals', '', spark(g.arrivals)), cell('First', '', when(g.first)), cell('Last', '', when(g.last)),
    cell('From', '', Object.entries(g.topics || {}).sort((a, b) => b[1] - a[1]).slice(0, 4).map(([topic, n]) => el('div', null, topic || '(unknown)', Object.keys(g.topics).length > 1 ? el('small', null, ' ' + number(n)) : null))));
}

function nothing(query) {
  const filtered = ['where', 'since', 'from', 'to'].some(k => query.get(k));
  return el('div.empty', null, el('b', null, filtered ? 'None of the letters is like that' : 'No dead letters ' + (query.get('state') ? 'in this state' : 'wait')), filtered ? 'Widen the filter, or clear it.' : 'Nothing to do.');
}

// actions are the buttons for all letters of one state that a query chooses. seen is what the reader saw of them: what comes later is not touched.
function actions(query, seen) {
  const filter = {...filterOf(query)};
  if (!filter.to && seen.newest) filter.to = new Date(seen.newest + 1).toISOString();
  const state = query.get('state') || 'waiting';
  return [
    state === 'waiting' || state === 'replayed' ? button('Replay …', () => replayDialog(filter, seen.count), 'main.replay') : null,
    state === 'waiting' || state === 'replayed' ? button('Delete …', () => changeDialog('delete', filter, seen.count)) : null,
    state === 'deleted' || state === 'replayed' ? button('Restore …', () => changeDialog('restore', filter, seen.count)) : null,
    desk.hideValues ? null : button('Export', () => save('export?' + new URLSearchParams(filter), desk.topic + '.jsonl')),
    button('Refresh', show),
  ];
}

async function groupView(main, parts, query, signal) {
  const q = new URLSearchParams(query);
  q.set('group', parts[1]);
  const head = el('div.head', null, el('p.loading', null, 'Reading the topic …')), place = el('div');
  replace(main, el('p.crumbs', null, el('a', {href: address(['groups'], keep(query)), rel: 'up'}, '← All groups')), head, filters(parts, query), place);
  try {
    const {groups} = await get('groups?' + new URLSearchParams(filterOf(q)), signal);
    const g = groups[0];
    if (!g) {
      replace(head);
      return replace(place, nothing(query));
    }
    title(g.class);
    replace(head, el('h2', null, g.class || '(no class)'), el('p.mono', null, g.pattern), g.message && g.message !== g.pattern ? el('p.mono', null, 'Newest: ', g.message) : null,
      g.note ? el('p.note', null, g.note) : null,
      el('dl.facts', null, fact('Letters', number(g.count)), fact('First', when(g.first)), fact('Last', when(g.last)), fact('From', Object.keys(g.topics || {}).join(', ')),
        g.again ? fact('Replayed before', number(g.again)) : null, fact('Group', g.id), fact('Arrivals', spark(g.arrivals))));
    await letters(place, q, signal, [button(g.note ? 'Edit the note …' : 'Add a note …', () => noteDialog(g))], {count: g.count, newest: +new Date(g.last)}, true);
  } catch (e) { if (head.querySelector('.loading')) replace(head); wrong(place, e); }
}

async function lettersView(main, parts, query, signal) {
  title('Letters');
  const place = el('div', null, el('p.loading', null, 'Reading the topic …'));
  replace(main, filters(parts, query), place);
  try { await letters(place, query, signal, [], null, false); } catch (e) { wrong(place, e); }
}

// letters lists letters, the newest first, and more of them when asked.
async function letters(place, query, signal, more, seen, oneGroup) {
  const path = 'letters?' + new URLSearchParams(filterOf(query));
  let page = await get(path, signal);
  if (!page.letters.length) return replace(place, nothing(query));
  listed = [];
  const body = el('tbody');
  const state = query.get('state');
  const add = () => {
    body.append(...page.letters.map(l => letterRow(l, oneGroup, state)));
    listed.push(...page.letters.map(l => [l.partition, l.offset]));
  };
  const next = button('Older ones', async () => {
    next.disabled = true;
    try {
      page = await get(path + (path.endsWith('?') ? '' : '&') + 'after=' + page.next, signal);
      add();
      next.hidden = !page.next;
    } catch (e) { say(e.message); }
    next.disabled = false;
  });
  next.hidden = !page.next;
  add();
  seen = seen || {count: page.count, newest: +new Date(page.letters[0].written)};
  replace(place, el('div.bar', null, el('p.sum', null, el('b', null, number(page.count)), page.count === 1 ? ' letter' : ' letters', el('small', null, ', the newest first')), ...more, ...actions(query, seen)),
    el('table.cards', null, el('thead', null, el('tr', null, ['Letter', 'Written', oneGroup ? null : 'Class', 'Key', 'Message', 'Original', 'Failures', state ? 'State' : null].map(n => n && el('th' + (n === 'Failures' ? '.num' : ''), null, n)))), body),
    el('p.more', null, next));
}

function letterRow(l, oneGroup, state) {
  const link = address(['letter', l.partition, l.offset]);
  return row(link, el('td.nowrap', null, el('a', {href: link}, l.partition + '/' + l.offset)), cell('', '', when(l.written)), oneGroup ? null : cell('', '', l.class), cell('Key', '', l.key),
    cell('', '', el('span.mono', null, l.message), l.pointer ? el('small', null, 'The value was too large to come along. ') : null, l.replays ? el('small.bad', null, 'Replayed ', plural(l.replays, 'time')) : null),
    cell('From', '', brokenPlace(l.original)), cell('Failures', 'num', number(l.failures)), state ? cell('', '', tag(l.state)) : null);
}

const place = p => p && p.topic ? p.topic + (p.partition >= 0 ? '/' + p.partition + '/' + p.offset : '') : '';
const brokenPlace = p => p && p.topic ? [p.topic, el('wbr'), p.partition >= 0 ? el('span.place', null, '/' + p.partition + '/' + p.offset) : null] : '';
const fact = (name, ...value) => el('div', null, el('dt', null, name), el('dd', null, value.flat().some(v => v !== '' && v !== null && v !== undefined) ? value : el('span.mute', null, '–')));

async function letterView(main, parts, query, signal) {
  const id = parts[1] + '/' + parts[2];
  title(id);
  const body = el('div', null, el('p.loading', null, 'Reading the letter …'));
  const i = listed.findIndex(([p, o]) => p + '/' + o === id);
  const step = (text, j, name) => listed[j] && i >= 0 ? el('a', {href: address(['letter', ...listed[j]]), 'data-step': name}, text) : null;
  replace(main, el('p.crumbs', null, el('a', {href: '#/letters', rel: 'up', id: 'up'}, '← Letters'), el('span.end', null, step('← newer', i - 1, 'k'), step('older →', i + 1, 'j'))), body);
  try {
    const l = await get('letters/' + encodeURIComponent(parts[1]) + '/' + encodeURIComponent(parts[2]), signal);
    const up = $('up');
    up.href = address(['group', l.group], l.state === 'waiting' ? {} : {state: l.state});
    replace(up, '← ', l.class || 'Its group');
    replace(body, letterHead(l), contentBlock('Value', l.value, l), l.trace ? [el('h3', null, 'Trace'), el('pre', null, l.trace)] : null, history(l),
      headersBlock('Headers of the message', l.headers, 'It had none.'), el('details', null, el('summary', null, 'All headers of the dead letter, as they stand in the topic (', l.added.length, ')'), headersTable(l.added)));
  } catch (e) { wrong(body, e); }
}

function letterHead(l) {
  const filter = {state: 'any', partition: l.partition, fromOffset: l.offset, toOffset: l.offset + 1};
  return [el('div.head', null, el('h2', null, l.class || '(no class)', ' ', tag(l.state)), el('p.mono', null, l.text)),
    l.problems.map(p => el('p.bad', null, p)),
    el('div.bar', null, button('Replay …', () => replayDialog(filter, 1), 'main.replay'), l.state === 'deleted' ? null : button('Delete …', () => changeDialog('delete', filter, 1)),
      l.state === 'waiting' ? null : button('Restore …', () => changeDialog('restore', filter, 1)), button('Copy the command', () => copy(l.command)), button('Copy the address', () => copy(location.href))),
    el('dl.facts', null, fact('Dead letter', desk.topic + '/' + l.partition + '/' + l.offset), fact('Written', when(l.written)), fact('The topic keeps it until', l.purge ? when(l.purge) : ''),
      fact('Original', place(l.original)), fact('Its own time', when(l.timestamp)), fact('Consumer group', l.consumerGroup), fact('Failures', number(l.failures), l.reason ? el('small', null, l.reason) : null),
      fact('First failure', when(l.first)), fact('Last failure', when(l.last)), fact('Key', keyText(l.keyContent)),
      fact('Replayed', l.replays ? [plural(l.replays, 'time'), l.replayedFrom ? el('small', null, 'last from ' + place(l.replayedFrom)) : null] : 'never'),
      l.by ? fact(l.state === 'waiting' ? 'Restored' : l.state[0].toUpperCase() + l.state.slice(1), when(l.changed), el('small', null, 'by ' + l.by + (l.replay ? ', replay ' + l.replay : ''))) : null,
      fact('Identity, for its whole life', l.identity),
      fact('Written as', l.dialect || 'a record without headers of ours'))];
}

const keyText = c => c.kind === 'json' || c.kind === 'text' ? c.text : shortContent(c);

function shortContent(c) {
  if (c.kind === 'null' || c.kind === 'empty') return el('i.mute', null, c.kind);
  if (c.kind === 'hidden') return el('i.mute', null, 'hidden, ' + bytes(c.bytes));
  if (c.kind === 'binary') {
    const dump = c.hex.split('\n').filter(Boolean).map(line => line.slice(10, 58).trim().replace(/ {2}/g, ' ')).join(' ');
    return [(dump.length > 191 ? dump.slice(0, 191) + ' …' : dump), c.number ? el('small', null, ' = ' + c.number) : null];
  }
  return c.text;
}

function contentBlock(name, c, l) {
  const shown = el('pre');
  const tabs = el('span.views');
  const view = kind => {
    shown.className = kind === 'hex' ? 'hex' : '';
    replace(shown, kind === 'hex' ? c.hex : c.text);
    replace(tabs, [['text', c.kind === 'json' ? 'JSON' : 'Text'], ['hex', 'Hex']].map(([k, text]) => el('button.plain', {type: 'button', 'aria-pressed': String(k === kind), click: () => view(k)}, text)));
  };
  const there = c.hex || c.text;
  if (there && c.text) view('text');
  else if (there) { shown.className = 'hex'; replace(shown, c.hex); }
  const why = l.pointer ? 'It was too large to come along. It is still at ' + place(l.original) + ', until that topic\'s retention; a replay fetches it there.'
    : {null: 'There is none (a tombstone).', empty: 'It is empty.', hidden: 'Values are hidden here.'}[c.kind];
  return [el('div.tabs', null, el('h3', null, name), el('small', null, bytes(c.bytes) + (c.cut ? ', cut here: save it to see all' : '')), tabs,
    there ? el('span.end', null, button('Save', () => save('letters/' + l.partition + '/' + l.offset + '/value', 'letter-' + l.partition + '-' + l.offset + '.bin'), 'plain')) : null),
    there ? shown : el('p.mute', null, why)];
}

const headersBlock = (name, headers, none) => [el('h3', null, name), headers.length ? headersTable(headers) : el('p.mute', null, none)];
const headersTable = headers => el('table.kv', null, el('tbody', null, headers.map(h => el('tr', null, el('td', null, h.key), el('td', null, shortContent(h.value))))));

function history(l) {
  const past = l.history.map(p => el('li', null, when(p.at, true), ' ', p.class, el('small', null, ' in ' + p.topic)));
  if (!past.length) return null;
  return [el('h3', null, 'Earlier failures'), el('ol.past', null, past, el('li', null, when(l.last || l.written, true), ' ', l.class, el('small', null, ' → dead letter' + (l.reason ? ', ' + l.reason : ''))))];
}
