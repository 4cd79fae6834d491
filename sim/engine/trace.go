package engine

import (
	"cmp"
	"slices"
	"time"
)

// tracer follows a few hundred requests, so that one of them can be shown. A trace is the number of a followed request;
// 0 is that of all others, and costs next to nothing.
type tracer struct {
	world *world
	every int64 // of the requests within from..to
	from  int64
	to    int64
	seen  int64
	spans [][]Span // by trace - 1
}

const mostTraces = 200

// newTracer chooses which requests are followed: those that begin around the trouble.
func newTracer(w *world, r *Record) tracer {
	t := tracer{world: w}
	t.from = w.warm + int64(max(r.Begin-time.Second, 0))
	t.to = w.warm + int64(min(r.End+10*time.Second, r.Duration))
	var expected float64
	for n := range w.nodes {
		if w.nodes[n].fleet != nil {
			expected += w.nodes[n].load.total(t.to) - w.nodes[n].load.total(t.from)
		}
	}
	t.every = max(1, int64(expected/mostTraces))
	return t
}

// root decides whether a request of a fleet is followed, and returns its trace.
func (t *tracer) root(fleet string) uint16 {
	if t.every == 0 { // nobody wants to see one
		return 0
	}
	now := t.world.now
	if now < t.from || now >= t.to || len(t.spans) >= mostTraces {
		return 0
	}
	if t.seen++; t.seen%t.every != 0 {
		return 0
	}
	t.spans = append(t.spans, []Span{{Kind: "request", Where: fleet, From: t.since(now), To: -1}})
	return uint16(len(t.spans))
}

// since is a moment as the record has it.
func (t *tracer) since(at int64) time.Duration { return time.Duration(at - t.world.warm) }

// begin opens a span of a followed request and returns its number.
func (t *tracer) begin(trace uint16, kind string, where int32) int32 {
	if trace == 0 {
		return 0
	}
	s := &t.spans[trace-1]
	*s = append(*s, Span{Kind: kind, Where: t.world.nodes[where].name, From: t.since(t.world.now), To: -1})
	return int32(len(*s) - 1)
}

// end closes a span. That with the number 0 is the request itself.
func (t *tracer) end(trace uint16, span int32, end EndKind) {
	if trace == 0 {
		return
	}
	s := &t.spans[trace-1][span]
	s.To, s.End = t.since(t.world.now), end
}

// span adds a span whose end is known.
func (t *tracer) span(trace uint16, kind string, where int32, from, to int64) {
	if trace == 0 || from == to {
		return
	}
	s := &t.spans[trace-1]
	*s = append(*s, Span{Kind: kind, Where: t.world.nodes[where].name, From: t.since(from), To: t.since(to)})
}

// best is the followed request with the most to show: the one with the most spans, the first of those.
func (t *tracer) best() []Span {
	var best []Span
	for _, spans := range t.spans {
		if spans[0].To >= 0 && len(spans) > len(best) {
			best = spans
		}
	}
	const most = 200
	best = slices.Clone(best[:min(len(best), most)])
	end := t.since(t.world.now)
	for i := range best {
		if best[i].To < 0 { // still open when the run ended
			best[i].To, best[i].End = end, Unanswered
		}
	}
	slices.SortStableFunc(best, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	callers := make(map[string][]string)
	for k := range t.world.edges {
		edge := &t.world.edges[k]
		callee := t.world.nodes[edge.callee].name
		callers[callee] = append(callers[callee], t.world.nodes[edge.caller].name)
	}
	return nested(best, parents(best, callers))
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
