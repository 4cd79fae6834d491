// Everything on this page is made of nodes and texts, never of markup: a name or an error cannot become part of the page.
const SVG = 'http://www.w3.org/2000/svg';
const $ = id => document.getElementById(id);

// Characters that cannot be seen, or that turn the text around them, are shown by their numbers.
const unseen = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const seen = text => String(text).replace(unseen, c => '<U+' + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0') + '>');

// el makes an element. Attributes whose value is a function are listeners; null and false leave one out.
function el(name, attributes, ...children) {
  const [tag, ...classes] = name.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') node.addEventListener(key, value);
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...nodes(children));
  return node;
}

const nodes = children => children.flat(Infinity).filter(c => c !== null && c !== undefined && c !== false).map(c => c instanceof Node ? c : document.createTextNode(seen(c)));
const replace = (node, ...children) => node.replaceChildren(...nodes(children));

function svg(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

// put changes a text only if it is another: what stays as it is costs nothing.
function put(node, text) {
  text = seen(text);
  if (node.textContent !== text) node.textContent = text;
}

function dress(node, name) {
  if (node.className !== name) node.className = name;
}

function label(node, attribute, text) {
  text = seen(text);
  if (node.getAttribute(attribute) !== text) node.setAttribute(attribute, text);
}

// again makes the children of a node anew only if what they are made of has changed, so that a focus or a marked text stays.
function again(node, value, make) {
  const key = JSON.stringify(value);
  if (node.madeOf === key) return;
  node.madeOf = key;
  replace(node, make());
}

const levels = ['idle', 'calm', 'watch', 'trouble'];

function number(n) {
  if (n >= 99.5) return Math.round(n).toLocaleString('en-US');
  return n >= 10 || n === Math.round(n) ? String(Math.round(n)) : n.toFixed(1);
}

const percent = share => share > 0 && share < 0.01 ? '<1 %' : Math.round(share * 100) + ' %';
const plural = (n, one) => n.toLocaleString('en-US') + ' ' + one + (n === 1 ? '' : 's');

function took(ms) {
  if (!ms) return '–';
  if (ms >= 10000) return Math.round(ms / 1000) + ' s';
  if (ms >= 1000) return (ms / 1000).toFixed(1) + ' s';
  return (ms >= 10 ? Math.round(ms) : ms.toFixed(1)) + ' ms';
}

// ago says how long before now something was, on the server's clock.
function ago(at, now) {
  const s = Math.max(0, Math.round((now - at) / 1000));
  if (s < 2) return 'just now';
  if (s < 90) return s + ' s ago';
  if (s < 5400) return Math.round(s / 60) + ' min ago';
  return s < 172800 ? Math.round(s / 3600) + ' h ago' : Math.round(s / 86400) + ' d ago';
}

let noting;
function note(text) {
  clearTimeout(noting);
  put($('note'), text);
  $('note').hidden = false;
  noting = setTimeout(() => { $('note').hidden = true; }, 8000);
}

// Requests. A token is kept for this tab only.
const tokenKey = 'abate-admin-token';
let token = '';
try { token = sessionStorage.getItem(tokenKey) || ''; } catch { /* storage is off: the token is asked for again after a reload */ }

function keep(text) {
  token = text;
  try { text ? sessionStorage.setItem(tokenKey, text) : sessionStorage.removeItem(tokenKey); } catch { /* as above */ }
}

async function ask(path, body, signal) {
  const headers = token ? {Authorization: 'Bearer ' + token} : {};
  const init = {headers, signal, cache: 'no-store', redirect: 'error'};
  if (body) {
    Object.assign(headers, {'Content-Type': 'application/json', 'X-Abate-Admin': '1'});
    Object.assign(init, {method: 'POST', body: JSON.stringify(body)});
  }
  const answer = await fetch(path, init);
  if (answer.ok) return answer;
  let text = answer.status + ' ' + answer.statusText;
  const said = (await answer.text().catch(() => '')).trim();
  try { text = JSON.parse(said).error || text; } catch { // no JSON: a line of text, or what the status says
    if (/^text\/plain/.test(answer.headers.get('Content-Type')) && said) text = said.slice(0, 200);
  }
  throw Object.assign(new Error(text), {status: answer.status});
}
