// The page is complete without this script. It adds a cursor that all time charts of a variant share, with the values
// of every line, and a zoom. Values are read back from the drawings: a line's coordinates are its values.
(() => {
"use strict";
const NB = "\u00a0";

const group = v => { const [a, b] = String(v).split("."); return a.replace(/\B(?=(\d{3})+$)/g, ",") + (b ? "." + b : ""); };
const trim = (v, n) => group(String(+v.toFixed(n)));
const number = v => { const a = Math.abs(v); return trim(v, a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.0995 ? 2 : a >= 0.00995 ? 3 : 5); };
const seconds = v => v < 9.95e-4 ? trim(v * 1e6, 0) + NB + "µs" : v < 9.95e-3 ? trim(v * 1e3, 1) + NB + "ms"
	: v < 0.9995 ? trim(v * 1e3, 0) + NB + "ms" : trim(v, v < 9.995 ? 2 : 1) + NB + "s";
const units = {
	"1/s": v => number(v) + "/s", "s": seconds, "x": v => number(v) + NB + "×", "count": v => trim(v, 0),
	"share": v => trim(v * 100, v < 0.1 || v > 0.9 ? 1 : 0) + NB + "%", "": number,
};

// A moment on an axis of that many seconds, as the page writes it.
const clock = (at, span) => !at ? "0" : span > 7200 ? trim(at / 3600, 2) + NB + "h" : span > 300 ? trim(at / 60, 2) + NB + "min" : trim(at, 2) + NB + "s";
const stepFor = span => [.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]
	.find(s => span <= 9 * s) || 86400 * Math.ceil(span / 9 / 86400);

// The points of a line, pieces divided by null.
function points(d) {
	const out = [];
	let x = 0, y = 0;
	for (const [, kind, text] of d.matchAll(/([A-Za-z])([^A-Za-z]*)/g)) {
		const n = (text.match(/-?\d+/g) || []).map(Number);
		if (kind === "M" || kind === "m") {
			if (out.length) out.push(null);
			[x, y] = kind === "M" ? n : [x + n[0], y + n[1]];
			out.push([x, y]);
		}
		else if (kind === "h") out.push([x += n[0], y]);
		else if (kind === "v") out.push([x, y += n[0]]);
		else for (let i = 0; i + 1 < n.length; i += 2) out.push([x += n[i], y += n[i + 1]]);
	}
	return out;
}

function valueAt(line, x) {
	for (let i = 1; i < line.length; i++) {
		const a = line[i - 1], b = line[i];
		if (!a || !b) continue;
		if (a[0] - 1 <= x && x <= b[0] + 1) return a[0] === b[0] ? b[1] : a[1] + (b[1] - a[1]) * Math.min(Math.max((x - a[0]) / (b[0] - a[0]), 0), 1);
	}
	return null;
}

function plotOf(el) {
	const svg = el.querySelector("svg"), d = svg.dataset, low = +d.low, high = +d.high;
	const p = { el, svg, area: el.querySelector(".area"), width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height, x: el.querySelector(".x") };
	const lines = svg.querySelectorAll(".l"), keys = [...el.querySelectorAll(".key li:not([data-level])")];
	let read = null;
	p.show = (at, to) => {
		read = read || keys.map(k => {
			const all = points(lines[k.dataset.line].getAttribute("d"));
			return "back" in k.dataset ? all.reverse() : all;
		});
		keys.forEach((key, i) => {
			const y = at === null ? null : valueAt(read[i], Math.floor(at / to * p.width / 2) * 2 + 1);
			const share = (p.height - y) / p.height;
			const v = d.log ? low * Math.pow(high / low, share) : low + (high - low) * share;
			key.querySelector("b").textContent = y === null ? "" : (d.log && share <= 0 ? "≤" + NB : "") + units[key.dataset.unit || ""](v);
		});
	};
	const make = name => { const e = document.createElement("div"); e.className = name; e.hidden = true; p.area.append(e); return e; };
	p.cursor = make("cursor");
	p.range = make("range");
	return p;
}

function setup(view) {
	const to = +view.dataset.seconds, plots = [...view.querySelectorAll("[data-time]")].map(plotOf);
	const tools = view.querySelector(".tools");
	let from = 0, until = to, at = null, drag = null;
	if (!plots.length || !(to > 0)) return;
	const bin = to * 2 / plots[0].width;
	const out = document.createElement("output");
	const button = (text, label, act) => {
		const b = document.createElement("button");
		b.type = "button"; b.textContent = text; b.setAttribute("aria-label", label); b.onclick = act;
		tools.append(b);
		return b;
	};
	const share = t => (t - from) / (until - from);
	const place = (el, a, b) => {
		const left = Math.max(share(a), 0), right = Math.min(share(b), 1);
		el.hidden = right < left;
		el.style.left = left * 100 + "%";
		if (b > a) el.style.width = (right - left) * 100 + "%";
	};
	const cursor = t => {
		at = t === null ? null : Math.min(Math.max(t, from), until - bin / 2);
		plots.forEach(p => {
			p.show(at, to);
			if (at === null) p.cursor.hidden = true; else place(p.cursor, at, at);
		});
		out.textContent = at === null ? "" : "at " + number(Math.floor(at / bin + 1e-9) * bin) + NB + "s";
	};
	const zoom = (a, b) => {
		const least = Math.min(4 * bin, to);
		if (b - a < least) { const m = (a + b) / 2; a = m - least / 2; b = m + least / 2; }
		if (a < 0) { b -= a; a = 0; }
		if (b > to) { a -= b - to; b = to; }
		from = Math.max(a, 0); until = b;
		const step = stepFor(until - from);
		plots.forEach(p => {
			p.svg.setAttribute("viewBox", [from / to * p.width, 0, (until - from) / to * p.width, p.height].join(" "));
			if (p.x) {
				p.x.replaceChildren();
				for (let i = Math.ceil(from / step - 1e-9); i * step <= until + step * 1e-6; i++) {
					const tick = document.createElement("span");
					tick.textContent = clock(+(i * step).toFixed(6), until - from);
					const s = share(i * step);
					tick.style.left = s * 100 + "%";
					tick.className = (i % 2 ? "minor " : "") + (s > 0.97 ? "last" : s < 0.03 ? "first" : "");
					p.x.append(tick);
				}
			}
			p.el.querySelectorAll(".fault").forEach(f => {
				const a = +f.dataset.from, b = +f.dataset.to, bar = f.firstElementChild, text = f.lastElementChild;
				place(bar, a, b);
				text.hidden = bar.hidden;
				text.style.left = text.style.right = "";
				if (share(a) > 0.6) text.style.right = (1 - Math.min(share(b), 1)) * 100 + "%";
				else text.style.left = Math.max(share(a), 0) * 100 + "%";
			});
		});
		less.disabled = reset.disabled = from <= 0 && until >= to;
		more.disabled = until - from <= least * 1.001;
		cursor(at !== null && (at < from || at > until) ? null : at);
	};
	const by = factor => { const m = at === null ? (from + until) / 2 : at; zoom(m - (m - from) * factor, m + (until - m) * factor); };
	const more = button("Zoom in", "Zoom in", () => by(0.5)), less = button("Zoom out", "Zoom out", () => by(2)), reset = button("Reset", "Show the whole run", () => zoom(0, to));
	const hint = document.createElement("span");
	hint.className = "hint";
	hint.textContent = "Drag across a chart to zoom; ← → move, + − zoom, 0 resets.";
	out.setAttribute("aria-live", "polite");
	tools.append(hint, out);
	tools.hidden = false;

	plots.forEach(p => {
		const area = p.area, when = e => { const r = area.getBoundingClientRect(); return from + Math.min(Math.max((e.clientX - r.left) / r.width, 0), 1) * (until - from); };
		area.tabIndex = 0;
		area.setAttribute("role", "group");
		area.setAttribute("aria-label", "Time chart; arrow keys move the cursor, plus and minus zoom, 0 resets");
		area.onpointerdown = e => { if (e.button === 0 && e.pointerType !== "touch") { drag = { p, a: when(e) }; area.setPointerCapture(e.pointerId); } };
		area.onpointermove = e => {
			cursor(when(e));
			if (drag && drag.p === p) { const t = when(e); place(p.range, Math.min(drag.a, t), Math.max(drag.a, t)); }
		};
		area.onpointerup = e => {
			const d = drag;
			drag = null; p.range.hidden = true;
			if (!d) { cursor(when(e)); return; }
			const t = when(e), r = area.getBoundingClientRect();
			if (Math.abs(t - d.a) / (until - from) * r.width > 6) zoom(Math.min(d.a, t), Math.max(d.a, t));
		};
		area.onpointercancel = () => { drag = null; p.range.hidden = true; };
		area.onpointerleave = e => { if (!drag && e.pointerType !== "touch") cursor(null); };
		area.ondblclick = () => zoom(0, to);
		area.onkeydown = e => {
			const far = e.shiftKey ? 10 : 1, now = at === null ? (from + until) / 2 : at;
			if (e.ctrlKey || e.metaKey || e.altKey) return;
			if (e.key === "ArrowLeft") cursor(now - far * bin);
			else if (e.key === "ArrowRight") cursor(now + far * bin);
			else if (e.key === "Home") cursor(from);
			else if (e.key === "End") cursor(until);
			else if (e.key === "+" || e.key === "=") by(0.5);
			else if (e.key === "-") by(2);
			else if (e.key === "0" || e.key === "Escape") zoom(0, to);
			else return;
			e.preventDefault();
		};
	});
	zoom(0, to);
}

const views = [...document.querySelectorAll(".view")];
views.forEach(setup);

// A link to a variant, or paper, needs it open.
const reveal = () => { const v = document.getElementById(location.hash.slice(1)); if (v && v.tagName === "DETAILS") { v.open = true; v.scrollIntoView(); } };
addEventListener("hashchange", reveal);
reveal();
let shut = [];
addEventListener("beforeprint", () => { shut = [...document.querySelectorAll("details:not([open])")]; shut.forEach(d => { d.open = true; }); });
addEventListener("afterprint", () => { shut.forEach(d => { d.open = false; }); });
})();
