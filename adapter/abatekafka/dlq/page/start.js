// What is shown follows the address.
const views = {groups: groupsView, group: groupView, letters: lettersView, letter: letterView, replays: replaysView, audit: auditView};
const parts = [['groups', 'Groups'], ['letters', 'Letters'], ['replays', 'Replays'], ['audit', 'Audit']];
let showing = new AbortController();

function show() {
  showing.abort();
  showing = new AbortController();
  const {parts: at, query} = route();
  const view = views[at[0]] || groupsView;
  const current = {group: 'groups', letter: 'letters'}[at[0]] || at[0];
  replace($('nav'), parts.map(([name, text]) => el('a', {href: '#/' + name, 'aria-current': name === current ? 'page' : null}, text)));
  view($('main'), at, query, showing.signal);
}

addEventListener('hashchange', () => {
  document.querySelectorAll('dialog').forEach(d => d.close());
  if (location.hash === '#main') return;
  show();
  scrollTo(0, 0);
});

addEventListener('keydown', e => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    if (e.key === 'Escape') document.activeElement.blur();
    return;
  }
  const links = [...document.querySelectorAll('tr.row a')];
  const at = links.indexOf(document.activeElement.closest && document.activeElement.closest('tr.row a'));
  const press = {
    j: () => { const step = document.querySelector('[data-step=j]'); step ? step.click() : links[Math.min(at + 1, links.length - 1)]?.focus(); },
    k: () => { const step = document.querySelector('[data-step=k]'); step ? step.click() : links[Math.max(at - 1, 0)]?.focus(); },
    u: () => document.querySelector('[rel=up]')?.click(),
    r: () => document.querySelector('button.replay')?.click(),
    '/': () => $('f-where')?.focus(),
  }[e.key];
  if (press) {
    e.preventDefault();
    press();
  }
});

async function start() {
  try {
    desk = await get('desk');
    replace($('topic'), desk.topic, desk.hideValues ? el('small', null, ' values are hidden') : null);
    show();
    follow();
  } catch (e) { wrong($('main'), e); }
}

start();
