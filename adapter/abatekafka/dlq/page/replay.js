// Dialogs that change something, and the replay that runs.
function dialog(...children) {
  const box = el('dialog', {close: () => box.remove(), click: e => { if (e.target === box) box.close(); }}, children);
  document.body.append(box);
  box.showModal();
  return box;
}

const field = (name, input) => el('div', null, el('label', {for: input.id}, name), input);

function changeDialog(what, filter, count) {
  const name = what === 'delete' ? 'Delete ' : 'Restore ';
  const failure = el('p.error', {role: 'alert'});
  const yes = el('button.' + (what === 'delete' ? 'danger' : 'main'), {type: 'submit'}, name, plural(count, 'letter'));
  const box = dialog(el('form', {submit: async e => {
    e.preventDefault();
    yes.disabled = true;
    try {
      const {count: n} = await post(what, {filter});
      box.close();
      say(plural(n, 'letter') + (what === 'delete' ? ' deleted. "State: deleted" shows them; they can be restored.' : ' restored: waiting again.'));
      show();
    } catch (error) { replace(failure, error.message); yes.disabled = false; }
  }}, el('h2', null, name, count === 1 ? 'this letter?' : 'these ' + number(count) + ' letters?'),
  el('p', null, what === 'delete' ? 'They are marked as deleted, with your name. They can be restored until the topic\'s retention takes them.' : 'They wait again, and the next replay takes them along.'),
  count > 1 ? el('p.mute', null, 'Only those that were there when the page was read. What came later stays.') : null, failure,
  el('div.buttons', null, el('button', {type: 'button', autofocus: true, click: () => box.close()}, 'Cancel'), yes)));
}

function noteDialog(group) {
  const text = el('textarea', {id: 'n-text', maxlength: 2000, value: group.note || ''});
  const failure = el('p.error', {role: 'alert'});
  const box = dialog(el('form', {submit: async e => {
    e.preventDefault();
    try {
      await post('note', {group: group.id, text: text.value});
      box.close();
      show();
    } catch (error) { replace(failure, error.message); }
  }}, el('h2', null, 'A note for whoever comes next'), field('What is known, who is on it, which ticket', text), failure,
  el('div.buttons', null, button('Cancel', () => box.close()), el('button.main', {type: 'submit'}, 'Leave it'))));
  text.focus();
}

// replayDialog looks first: the button that starts is there once a dry run of exactly this form has been seen.
function replayDialog(filter, count) {
  const input = (id, attributes) => el('input', {id, type: 'number', required: true, ...attributes});
  const topic = el('input', {id: 'r-topic', 'aria-label': 'Topic', placeholder: 'payments-try', spellcheck: 'false', autocomplete: 'off'});
  const original = el('input', {type: 'radio', name: 'to', id: 'r-original', checked: true}), other = el('input', {type: 'radio', name: 'to', id: 'r-other'});
  const rate = input('r-rate', {value: 100, min: .01, max: 1000000, step: 'any'}), failures = input('r-failures', {value: 10, min: 0, max: 100, step: 'any'});
  const settle = input('r-settle', {value: 5, min: .1, max: 86400, step: 'any'}), replays = input('r-replays', {value: 3, min: 1, max: 1000});
  const unjudged = el('input', {type: 'checkbox', id: 'r-unjudged'});
  const failure = el('p.error', {role: 'alert'}), planned = el('div', {'aria-live': 'polite'});
  const look = button('Look first', () => plan()), go = el('button.main', {type: 'submit', hidden: true});
  let looking = new AbortController();
  const want = () => ({filter, to: other.checked ? topic.value.trim() : '', rate: +rate.value, settleSeconds: +settle.value, maxFailures: +failures.value / 100, maxReplays: +replays.value, unjudged: unjudged.checked});
  const changed = () => { looking.abort(); go.hidden = true; look.disabled = false; look.className = 'main'; replace(planned); replace(failure); };
  async function plan() {
    if (!box.querySelector('form').reportValidity()) return;
    if (other.checked && !topic.value.trim()) { topic.focus(); return replace(failure, 'Which topic? Write its name, or choose the original one.'); }
    changed();
    looking = new AbortController();
    look.disabled = true;
    replace(planned, el('p.mute', null, 'A dry run: nothing is sent …'));
    try {
      const {filter, to, maxReplays} = want();
      const found = await post('replay/plan', {filter, to, maxReplays}, looking.signal);
      replace(planned, planBox(found));
      replace(go, 'Replay ', plural(found.progress.sent, 'letter'));
      go.hidden = !found.progress.sent;
      look.className = '';
      if (!go.hidden) go.focus();
    } catch (e) { if (e.name !== 'AbortError') { replace(planned); replace(failure, e.message); } }
    look.disabled = false;
  }
  const box = dialog(el('form', {input: changed, submit: async e => {
    e.preventDefault();
    if (go.hidden) return plan();
    go.disabled = true;
    try {
      await post('replay', want());
      box.close();
      follow();
    } catch (error) { replace(failure, error.message); go.disabled = false; }
  }}, el('h2', null, 'Replay ', plural(count, 'letter')),
  el('fieldset.to', null, el('legend', null, 'Where to'), el('label', null, original, 'The topic where each came from'), desk.hideValues ? null : el('label', null, other, 'Another topic', topic)),
  el('div.fields', null, field('At most, per second', rate), field('Stop when so many % fail again', failures), field('Wait where nobody reads, seconds', settle), field('Leave out what was replayed so often', replays), field('Go on without the consumers\' commits', unjudged)),
  el('p.mute', null, 'Batches grow: 1, 2, 5, 10, … After each the replay waits and looks how many have failed again. It goes on when this page is closed.'),
  failure, planned, el('div.buttons', null, button('Cancel', () => box.close()), look, go)));
  topic.addEventListener('focus', () => { other.checked = true; });
  look.className = 'main';
  look.focus();
}

function planBox({progress: p, targets, sample}) {
  return el('div.plan', null, el('p', null, el('b', null, p.sent ? plural(p.sent, 'letter') + ' would be sent' : 'Nothing would be sent'), Object.entries(targets).length ? [' to ', Object.entries(targets).map(([t, n]) => t + ' (' + number(n) + ')').join(', ')] : '', '.'),
    Object.entries(p.skips || {}).map(([why, n]) => el('p', null, number(n), ' left out: ', why)), p.why ? el('p', null, p.why) : null,
    sample.length ? el('div.scroll', null, el('table', null, el('thead', null, el('tr', null, ['Letter', 'Key', 'Class', 'Goes to'].map(n => el('th', null, n)))),
      el('tbody', null, sample.map(s => el('tr', null, el('td.nowrap', null, s.partition + '/' + s.offset), el('td', null, s.key), el('td', null, s.class), el('td', null, s.skip ? el('span.bad', null, s.skip) : s.to)))))) : null,
    p.chosen > sample.length ? el('small', null, 'The first ' + sample.length + ' of ' + number(p.chosen) + '.') : null);
}

// The replay that runs is shown on top of every view.
let following, wasRunning = false, dismissed = sessionStorage.getItem('abate-dlq-dismissed') || '';
const ended = p => ['stopped', 'cancelled', 'pending', 'done'].includes(p.phase);

async function follow() {
  clearTimeout(following);
  let running = false;
  try {
    const {here, all} = await get('replay');
    const elsewhere = (all || []).find(p => !ended(p) && !(here && here.id === p.id));
    const p = here && here.running ? here : elsewhere || here;
    running = !!p && (p === elsewhere || p.running);
    replace($('job'), p && (running || p.id + p.updated !== dismissed) ? jobBox(p, running, p === elsewhere) : null);
    if (wasRunning && !running && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) show();
    wasRunning = running;
  } catch (e) {
    if (e.status === 401) return;
    replace($('job'), el('div.job.stopped', null, el('p', null, e.message)));
  }
  following = setTimeout(follow, running ? 1000 : 15000);
}

const phases = {counting: 'counting the letters', running: 'sending', settling: 'waiting for the consumers', 'circuit-open': 'waiting: the circuit is open', stopped: 'stopped', cancelled: 'cancelled', pending: 'sent, some still waiting', done: 'done'};

function jobBox(p, running, elsewhere) {
  const total = Math.max(p.chosen, p.sent + p.skipped, 1), part = n => (100 * n / total).toFixed(2);
  const facts = [number(p.sent) + ' of ' + number(p.chosen) + ' sent', p.handled ? number(p.handled) + ' handled' : null, p.back ? number(p.back) + ' failed again' : null, standing(p), p.failed ? number(p.failed) + ' could not be sent' : null,
    p.skipped ? number(p.skipped) + ' left out' : null, running && p.batch ? 'batch of ' + number(p.batch) : null].filter(Boolean).join(' · ');
  const quiet = (Date.now() - new Date(p.updated)) / 1000; // it speaks every 10 s
  return el('div.job.' + (running ? 'running' : p.phase), null,
    el('p', null, el('b', null, p.id ? 'Replay ' + p.id + ': ' : 'Replay: ', phases[p.phase] || p.phase), ' · ', facts, elsewhere ? el('small', null, ' · runs in another process, by ' + p.by, quiet > 25 ? el('span.bad', null, ', which has said nothing for ' + span(quiet)) : null) : p.by ? el('small', null, ' · by ' + p.by) : null),
    el('div.buttons', null, elsewhere && quiet > 25 ? button('Take over', () => resume(p.id, true)) : null, running ? button('Cancel', e => { e.target.disabled = true; cancel(p); }) : null,
      !running && p.phase !== 'done' && p.id ? button('Resume', () => resume(p.id)) : null,
      running ? null : button('Dismiss', () => { dismissed = p.id + p.updated; sessionStorage.setItem('abate-dlq-dismissed', dismissed); replace($('job')); })),
    p.why || p.failure ? el('p', null, el('span' + (p.phase === 'done' || running ? '.mute' : '.bad'), null, p.failure || p.why)) : null,
    svg('svg', {viewBox: '0 0 100 8', preserveAspectRatio: 'none', role: 'img', 'aria-label': part(p.sent) + ' % sent'}, svg('rect', {class: 'rest', width: 100, height: 8, rx: 1}),
      svg('rect', {class: 'sent', width: part(p.sent), height: 8}), svg('rect', {class: 'back', width: part(Math.min(p.back, p.sent)), height: 8})));
}

// standing is what nobody has got to, and for how long, and what went with its topic.
const standing = p => [p.waiting ? number(p.waiting) + ' still waiting' + (p.etaSeconds ? ', about ' + span(p.etaSeconds) + ' more' : '') : null,
  p.gone ? number(p.gone) + ' gone with their topic' : null].filter(Boolean).join(' · ') || null;

async function cancel(p) {
  try { await post('replay/cancel', {id: p.id}); } catch (e) { say(e.message); }
  follow();
}

async function resume(id, takeOver) {
  try { await post('replay', {resume: id, takeOver: !!takeOver}); } catch (e) { say(e.message); }
  follow();
}

async function replaysView(main, parts, query, signal) {
  title('Replays');
  replace(main, el('p.loading', null, 'Reading the audit …'));
  try {
    const {here, all} = await get('replay', signal);
    if (!all || !all.length) return replace(main, el('div.empty', null, el('b', null, 'Nothing was replayed yet'), 'Open a group and choose Replay.'));
    replace(main, el('table.cards', null, el('thead', null, el('tr', null, ['Replay', 'Began', 'By', 'Sent', 'Handled', 'Failed again', 'Still waiting', 'Left out', 'How it stands', ''].map(n => el('th' + (/Sent|Handled|again|waiting|Left/.test(n) ? '.num' : ''), null, n)))),
      el('tbody', null, all.map(p => el('tr', null, el('td', null, el('b', null, p.id)), cell('Began', '', when(p.started)), cell('By', '', p.by), cell('Sent', 'num', number(p.sent) + ' of ' + number(p.chosen)),
        cell('Handled', 'num', number(p.handled)), cell('Failed again', 'num', number(p.back)), cell('Still waiting', 'num', number(p.waiting)), cell('Left out', 'num', number(p.skipped)), cell('', '', phases[p.phase] || p.phase, p.why ? el('small', null, ' ', p.why) : null),
        cell('', '', p.phase === 'done' ? '' : ended(p) ? button('Resume', () => resume(p.id)) : button('Cancel', () => cancel(p))))))));
  } catch (e) { wrong(main, e); }
}

const kinds = {'replay-start': 'started a replay', 'replay-stop': 'replay ended', replayed: 'replayed', cancel: 'asked a replay to stop', delete: 'deleted', restore: 'restored', edit: 'edited', import: 'imported', note: 'left a note'};

async function auditView(main, parts, query, signal) {
  title('Audit');
  replace(main, el('p.loading', null, 'Reading the audit …'));
  try {
    let page = await get('actions', signal);
    if (!page.actions.length) return replace(main, el('div.empty', null, el('b', null, 'Nobody has done anything yet'), 'Every replay, deletion and note will be here, with who and when.'));
    const body = el('tbody', null, page.actions.map(actionRow));
    const next = button('Older ones', async () => {
      try {
        page = await get('actions?before=' + page.next, signal);
        body.append(...page.actions.map(actionRow));
        next.hidden = !page.next;
      } catch (e) { say(e.message); }
    });
    next.hidden = !page.next;
    replace(main, el('p.bar', null, el('span.sum', null, 'What was done, the newest first', el('small', null, ' · topic ' + desk.audit)), button('Refresh', show)),
      el('table.cards', null, el('thead', null, el('tr', null, ['When', 'Who', 'What', 'Letter', 'To', ''].map(n => el('th', null, n)))), body), el('p.more', null, next));
  } catch (e) { wrong(main, e); }
}

function actionRow(a) {
  const at = a.place || '', short = at.split('/').slice(-2);
  const progress = a.progress ? number(a.progress.sent) + ' of ' + number(a.progress.chosen) + ' sent' + (a.progress.phase ? ', ' + (phases[a.progress.phase] || a.progress.phase) : '') : '';
  return el('tr', null, el('td', null, when(a.time)), cell('By', '', a.by), cell('', '', kinds[a.action] || a.action, a.count ? el('small', null, ' ' + plural(a.count, 'letter')) : null),
    cell('Letter', '', a.count > 1 ? null : at && short.length === 2 ? el('a', {href: address(['letter', ...short])}, at) : at, a.group ? el('a', {href: address(['group', a.group])}, 'group ' + a.group) : null), cell('To', '', a.to),
    cell('', '', a.text, a.text && progress ? ' · ' : null, progress, a.id ? el('small', null, ' ' + a.id) : null));
}
