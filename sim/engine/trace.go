package engine

import (
	"cmp"
	"slices"
	"time"
)

// tracer follows a few hundred requests, so that one of them can be shown.
type tracer struct {
	every int64 // of the requests within from..to
	from  int64
	to    int64
	seen  int64
	spans [][]Span // by trace - 1
}

const mostTraces = 200

// start chooses which requests are followed: those that begin around the trouble.
func (t *tracer) start(e *Engine, r *Record) {
	t.from = e.warm + int64(max(r.Begin-time.Second, 0))
	t.to = e.warm + int64(min(r.End+10*time.Second, r.Duration))
	var expected float64
	for n := range e.nodes {
		if e.nodes[n].fleet != nil {
			expected += e.nodes[n].load.total(t.to) - e.nodes[n].load.total(t.from)
		}
	}
	t.every = max(1, int64(expected/mostTraces))
}

// traceRoot decides whether a fleet's request is followed.
func (e *Engine) traceRoot(_ uint32, t *task, node *node) {
	tr := &e.tracer
	if !e.detail || e.now < tr.from || e.now >= tr.to || len(tr.spans) >= mostTraces {
		return
	}
	if tr.seen++; tr.seen%tr.every != 0 {
		return
	}
	tr.spans = append(tr.spans, []Span{{Kind: "request", Where: node.name, From: e.since(e.now), To: -1}})
	t.trace = uint16(len(tr.spans))
}

func (e *Engine) since(at int64) time.Duration { return time.Duration(at - e.warm) }

// traceBegin opens a span of a followed request and returns its number.
func (e *Engine) traceBegin(trace uint16, kind string, where int32) int32 {
	if trace == 0 {
		return 0
	}
	s := &e.tracer.spans[trace-1]
	*s = append(*s, Span{Kind: kind, Where: e.nodes[where].name, From: e.since(e.now), To: -1})
	return int32(len(*s) - 1)
}

// traceClose ends a span.
func (e *Engine) traceClose(trace uint16, span int32, end EndKind) {
	if trace == 0 {
		return
	}
	s := &e.tracer.spans[trace-1][span]
	s.To, s.End = e.since(e.now), end
}

// traceEnd ends the followed request itself.
func (e *Engine) traceEnd(trace uint16, end EndKind) { e.traceClose(trace, 0, end) }

// traceSpan adds a span whose end is known.
func (e *Engine) traceSpan(trace uint16, kind string, where int32, from, to int64) {
	if trace == 0 || from == to {
		return
	}
	s := &e.tracer.spans[trace-1]
	*s = append(*s, Span{Kind: kind, Where: e.nodes[where].name, From: e.since(from), To: e.since(to)})
}

// best is the followed request with the most to show: the one with the most spans, the first of those.
func (t *tracer) best(e *Engine) []Span {
	var best []Span
	for _, spans := range t.spans {
		if spans[0].To >= 0 && len(spans) > len(best) {
			best = spans
		}
	}
	const most = 200
	best = slices.Clone(best[:min(len(best), most)])
	end := e.since(e.now)
	for i := range best {
		if best[i].To < 0 { // still open when the run ended
			best[i].To, best[i].End = end, Unanswered
		}
	}
	slices.SortStableFunc(best, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return nested(best, e.parents(best))
}

// nested puts every span below the one that it is part of, those of the same one in the order of time.
func nested(spans []Span, parents []int) []Span {
	children := make([][]int, len(spans))
	for i := 1; i < len(spans); i++ {
		children[parents[i]] = append(children[parents[i]], i)
	}
	out := make([]Span, 0, len(spans))
	var add func(i, depth int)
	add = func(i, depth int) {
		spans[i].Depth = depth
		out = append(out, spans[i])
		for _, child := range children[i] {
			add(child, depth+1)
		}
	}
	if len(spans) > 0 {
		add(0, 0)
	}
	return out
}

// parents finds the span that each span is part of; those that began earlier stand before it, the request itself first. A
// service goes on after its caller has left, so that a span may begin and end after the one it belongs to. What ended at
// the very moment it began tells which one that is; else it is the latest that fits.
func (e *Engine) parents(spans []Span) []int {
	f := family{spans: spans, parents: make([]int, len(spans)), begun: make([]bool, len(spans)), followed: make([]bool, len(spans)), callers: map[string][]string{}}
	for k := range e.edges {
		r := e.edges[k].record
		f.callers[r.Callee] = append(f.callers[r.Callee], r.Caller)
	}
	for i := 1; i < len(spans); i++ {
		switch spans[i].Kind {
		case "call":
			f.parents[i] = f.ofCall(i)
		case "attempt", "backoff":
			f.parents[i] = f.ofAttempt(i)
		default:
			f.parents[i] = f.ofWork(i)
		}
	}
	return f.parents
}

// family is what is known of the spans of one request.
type family struct {
	spans    []Span
	parents  []int
	begun    []bool              // attempts whose wait or work has been found
	followed []bool              // calls, attempts and waits between them, whose next step has been found
	callers  map[string][]string // of each service
}

// ofCall finds the attempt, or the request, for whose work a call is made.
func (f *family) ofCall(i int) int {
	s, latest := &f.spans[i], 0
	for j := i - 1; j >= 0; j-- {
		before := &f.spans[j]
		switch before.Kind {
		case "queue", "work", "call":
			p := f.parents[j]
			if before.To == s.From && slices.Contains(f.callers[s.Where], f.spans[p].Where) {
				return p
			}
		case "attempt", "request":
			if latest == 0 && slices.Contains(f.callers[s.Where], before.Where) {
				latest = j
			}
		}
	}
	return latest
}

// ofAttempt finds the call that an attempt, or a wait before one, is made for.
func (f *family) ofAttempt(i int) int {
	s, latest := &f.spans[i], 0
	for j := i - 1; j >= 0; j-- {
		before, call := &f.spans[j], j
		exact := before.Kind == "call" && before.From == s.From
		if before.Kind == "attempt" || before.Kind == "backoff" {
			call, exact = f.parents[j], before.To == s.From
		}
		if f.spans[call].Kind != "call" || f.spans[call].Where != s.Where || f.spans[call].To < s.From {
			continue
		}
		if exact && !f.followed[j] { // of two that ended at the same moment, each goes on once
			f.followed[j] = true
			return call
		}
		if latest == 0 {
			latest = call
		}
	}
	return latest
}

// ofWork finds the attempt for which a request waits at a service, or is worked on.
func (f *family) ofWork(i int) int {
	s, latest := &f.spans[i], 0
	for j := i - 1; j >= 0; j-- {
		before := &f.spans[j]
		switch before.Kind {
		case "gate", "queue", "call": // work follows a wait, or, where calls come first, the last of them; a wait follows the one at the gate
			if p := f.parents[j]; (s.Kind == "work" || before.Kind == "gate") && before.To == s.From && f.spans[p].Kind == "attempt" && f.spans[p].Where == s.Where {
				return p
			}
		case "attempt":
			if before.Where == s.Where && !f.begun[j] && (latest == 0 || before.From == f.spans[latest].From) {
				latest = j // of several sent at the same moment, the first
			}
		}
	}
	f.begun[latest] = true
	return latest
}
