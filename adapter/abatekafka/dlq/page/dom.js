'use strict';
// Everything on this page is made of nodes and texts, never of markup: what is in a letter cannot become part of the page.
const SVG = 'http://www.w3.org/2000/svg';
const $ = id => document.getElementById(id);

// Characters that cannot be seen, or that turn the text around them, are shown by their numbers.
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const seen = text => String(text).replace(unseen, c => '⟨U+' + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0') + '⟩');

// el makes an element. Attributes whose value is a function are listeners; null and false leave one out.
function el(name, attributes, ...children) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElement(tag || 'div');
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(key, value);
    else if (key === 'value') node.value = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...texts(children));
  return node;
}

const texts = children => children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false).map(c => c instanceof Node ? c : document.createTextNode(seen(c)));

function svg(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const replace = (node, ...children) => node.replaceChildren(...texts(children));
const button = (text, click, kind) => el('button' + (kind ? '.' + kind : ''), {type: 'button', click}, text);

const number = n => Number(n).toLocaleString('en-US');
const plural = (n, one) => number(n) + ' ' + one + (n === 1 ? '' : 's');

function bytes(n) {
  if (n < 1024) return n + ' B';
  return n < 1 << 20 ? (n / 1024).toFixed(1) + ' KiB' : (n / 1048576).toFixed(1) + ' MiB';
}

// span says a time of seconds in its largest unit.
function span(seconds) {
  const s = Math.abs(seconds);
  if (s < 60) return Math.round(s) + ' s';
  if (s < 5400) return Math.round(s / 60) + ' min';
  return s < 172800 ? Math.round(s / 3600) + ' h' : Math.round(s / 86400) + ' d';
}

const two = n => String(n).padStart(2, '0');

// when shows a moment in the reader's own time and how long ago it was; in UTC when pointed at.
function when(iso, plain) {
  const at = new Date(iso);
  if (!iso || isNaN(at) || at.getFullYear() < 1971) return '';
  const text = at.getFullYear() + '-' + two(at.getMonth() + 1) + '-' + two(at.getDate()) + ' ' + two(at.getHours()) + ':' + two(at.getMinutes()) + ':' + two(at.getSeconds());
  const ago = (Date.now() - at) / 1000;
  return el('time.nowrap', {datetime: at.toISOString(), title: at.toISOString() + ' (UTC)'}, text, plain ? null : el('small', null, ago >= 0 ? span(ago) + ' ago' : 'in ' + span(ago)));
}

// say shows a message for some seconds.
let saying;
function say(text) {
  clearTimeout(saying);
  replace($('said'), el('p', null, text));
  saying = setTimeout(() => replace($('said')), 7000);
}

// Requests. A token is kept for this tab only.
let token = sessionStorage.getItem('abate-dlq-token') || '';

async function ask(path, body, signal) {
  const headers = token ? {Authorization: 'Bearer ' + token} : {};
  const init = {headers, signal, cache: 'no-store'};
  if (body) {
    Object.assign(headers, {'Content-Type': 'application/json', 'X-Abate-Dlq': '1'});
    Object.assign(init, {method: 'POST', body: JSON.stringify(body)});
  }
  let answer;
  try {
    answer = await fetch('api/' + path, init);
  } catch (e) {
    if (signal && signal.aborted) throw e;
    throw new Error('The server of this page does not answer. Is "abate dlq serve" running?');
  }
  if (answer.ok) return answer;
  let text = answer.status + ' ' + answer.statusText;
  try { text = (await answer.json()).error || text; } catch { /* no JSON: the status says it */ }
  const error = new Error(text);
  error.status = answer.status;
  throw error;
}

const get = async (path, signal) => (await ask(path, null, signal)).json();
const post = async (path, body, signal) => (await ask(path, body, signal)).json();

// save downloads an answer. With a token it has to go through the page's memory.
async function save(path, name) {
  if (!token) {
    el('a', {href: 'api/' + path, download: name}).click();
    return;
  }
  try {
    const url = URL.createObjectURL(await (await ask(path)).blob());
    el('a', {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  } catch (e) { say(e.message); }
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    say('Copied.');
  } catch { say('The browser does not allow copying. Mark the text instead:\n' + text); }
}

// The address after # says all of what is shown, so that it can be sent to somebody.
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  let parts;
  try { parts = path.split('/').filter(Boolean).map(decodeURIComponent); } catch { parts = []; }
  return {parts: parts.length ? parts : ['groups'], query: new URLSearchParams(query || '')};
}

function address(parts, query) {
  const q = new URLSearchParams(query || '');
  for (const [key, value] of [...q]) if (!value) q.delete(key);
  return '#/' + parts.map(encodeURIComponent).join('/') + ([...q].length ? '?' + q : '');
}

// filterOf makes what the server takes of what the address says.
const spans = {'1h': 3600, '24h': 86400, '7d': 604800};
function filterOf(query) {
  const f = {};
  for (const key of ['state', 'where', 'group', 'from', 'to']) if (query.get(key)) f[key] = query.get(key);
  const since = spans[query.get('since')];
  if (since) f.from = new Date(Date.now() - since * 1000).toISOString().replace(/\.\d+/, '');
  for (const key of ['from', 'to']) if (f[key] && !isNaN(new Date(f[key]))) f[key] = new Date(f[key]).toISOString();
  return f;
}
