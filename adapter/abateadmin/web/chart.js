// Charts are paths over one unit for each second; the browser stretches them.

// stack is the path of a band of bars between two rows of heights, as steps.
function stack(low, high, most, height) {
  const y = v => (height - v / most * height).toFixed(1);
  let up = '', down = '', any = false;
  for (let i = 0; i < high.length; i++) {
    any = any || high[i] > low[i];
    up += (i ? 'L' : 'M') + i + ' ' + y(high[i]) + 'H' + (i + 1);
    down = 'L' + (i + 1) + ' ' + y(low[i]) + 'H' + i + down;
  }
  return any ? up + down + 'Z' : '';
}

// line is a path through the tops. Where there is nothing to show, it breaks off.
function line(values, most, height, gaps) {
  let path = '', drawing = false;
  for (let i = 0; i < values.length; i++) {
    if (gaps && !values[i]) { drawing = false; continue; }
    path += (drawing ? 'L' : 'M') + i + ' ' + (height - values[i] / most * height).toFixed(1) + 'H' + (i + 1);
    drawing = true;
  }
  return path;
}

// runs is the path of those seconds that have a mark.
function runs(strip, mark, top, bottom) {
  let path = '';
  for (let i = 0; i < strip.length; i++) {
    if (strip[i] !== mark) continue;
    const from = i;
    while (strip[i + 1] === mark) i++;
    path += 'M' + from + ' ' + top + 'H' + (i + 1) + 'V' + bottom + 'H' + from + 'Z';
  }
  return path;
}

const sum = (a, b) => a.map((v, i) => v + b[i]);
const nil = a => a.map(() => 0);

// nice is a round number not below n, for the top of a scale.
function nice(n) {
  if (n <= 1) return 1;
  const p = Math.pow(10, Math.floor(Math.log10(n)));
  return [1, 1.5, 2, 3, 4, 5, 7.5, 10].map(f => f * p).find(v => v >= n);
}

function draw(path, d) {
  if (path.drawn === d) return;
  path.drawn = d;
  path.setAttribute('d', d);
}

// plot makes a chart that update fills. parts are [class, name]; on a pointer or with arrow keys values shows one second.
function plot(title, kind, parts, values) {
  const height = 100, seconds = 300;
  const paths = parts.map(([name]) => svg('path', {class: name, 'vector-effect': 'non-scaling-stroke'}));
  const picture = svg('svg', {viewBox: '0 0 ' + seconds + ' ' + height, preserveAspectRatio: 'none', 'aria-hidden': 'true'},
    ...[60, 120, 180, 240].map(x => svg('line', {x1: x, x2: x, y1: 0, y2: height, 'vector-effect': 'non-scaling-stroke'})), ...paths);
  const most = el('span.most'), cursor = el('span.at', {hidden: true}), told = parts.map(() => el('span'));
  const when = el('span.mute');
  const area = el('div.area', {tabindex: '0', role: 'img'}, picture, most, cursor);
  const node = el('div.plot' + (kind ? '.' + kind : ''), null,
    el('p.cap', null, el('b', null, title), when, parts.map(([name, text], i) => text && el('span', null, el('i.key.' + name), text + ' ', told[i]))),
    area, el('p.axis', {'aria-hidden': 'true'}, el('span', null, '5 min ago'), el('span', null, 'now')));
  let at = -1;
  const show = () => {
    cursor.hidden = at < 0;
    cursor.style.left = (at + .5) / seconds * 100 + '%';
    put(when, at < 0 ? '' : ago(0, (seconds - 1 - at) * 1000));
    const texts = values(at < 0 ? seconds - 1 : at);
    texts.forEach((text, i) => put(told[i], text));
    area.setAttribute('aria-label', title + ', ' + (when.textContent || 'now') + ': ' + parts.map(([, text], i) => (text || '') + ' ' + texts[i]).join(', '));
  };
  area.addEventListener('pointermove', e => {
    const box = area.getBoundingClientRect();
    at = Math.min(seconds - 1, Math.max(0, Math.floor((e.clientX - box.left) / box.width * seconds)));
    show();
  });
  area.addEventListener('pointerleave', () => { at = -1; show(); });
  area.addEventListener('blur', () => { at = -1; show(); });
  area.addEventListener('keydown', e => {
    const step = {ArrowLeft: -5, ArrowRight: 5}[e.key];
    if (!step) return;
    e.preventDefault();
    at = Math.min(seconds - 1, Math.max(0, (at < 0 ? seconds - 1 : at) + step));
    show();
  });
  return {node, paths, height, top: text => put(most, text), show};
}
