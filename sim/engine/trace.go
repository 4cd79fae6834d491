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
	depths(best)
	return best
}

// depths sets how deep each span lies in those around it.
func depths(spans []Span) {
	for i := range spans {
		for j := i - 1; j >= 0; j-- {
			if spans[j].To >= spans[i].To && spans[j].From <= spans[i].From && encloses(spans[j].Kind, spans[i].Kind) {
				spans[i].Depth = spans[j].Depth + 1
				break
			}
		}
	}
}

// encloses tells whether one kind of span can have another within it.
func encloses(outer, inner string) bool {
	switch outer {
	case "request":
		return inner == "call"
	case "call":
		return inner == "attempt" || inner == "backoff"
	case "attempt":
		return inner == "queue" || inner == "work" || inner == "call"
	}
	return false
}
