package lint

import (
	"container/heap"
	"encoding/binary"
	"math"
	"time"

	"github.com/abate-go/abate/topology"
)

// rooted is what the failure of one service comes to at one root.
type rooted struct {
	root     int
	n, mean  float64
	most     time.Duration
	services bool // it is a service of the form and not the world outside of it
}

// evaluation follows failures from the service that fails up to the roots.
type evaluation struct {
	g *graph
	a assumption

	states []state
	ready  []bool
	touch  []int // services whose state is set
	queue  byCallee
	queued []bool
	memory map[string]remembered
	marks  []mark
	// Told of the calls of a path, and of those from outside; nil for nobody.
	track, outside func(call int, n float64, factors []Factor)
}

type remembered struct {
	roots   []rooted
	guessed bool
}

// mark is a service through which everything goes that comes after it.
type mark struct {
	key  string
	unit float64
	from int // in the list of roots
}

func newEvaluation(g *graph, k assumed) *evaluation {
	n := len(g.services)
	return &evaluation{g: g, a: assumption{worst: k.worst, methods: k.methods, written: k.written},
		states: make([]state, n), ready: make([]bool, n), queued: make([]bool, n), queue: byCallee{g: g},
		memory: map[string]remembered{}}
}

// rise returns what comes to each root when service f fails with o.
func (e *evaluation) rise(f int, o topology.Outcome) []rooted {
	e.a.guessed, e.marks = false, e.marks[:0]
	e.states[f] = failing(o)
	e.ready[f] = true
	e.touch = append(e.touch[:0], f)
	var roots []rooted
	for v := f; ; {
		roots = e.arrived(v, roots)
		e.callers(v)
		if e.queue.Len() == 0 {
			break
		}
		v = heap.Pop(&e.queue).(int)
		e.queued[v] = false
		e.service(v)
		if e.queue.Len() == 0 && e.track == nil {
			if found, ok := e.recall(v, len(roots)); ok {
				roots = append(roots, found...)
				break
			}
		}
	}
	e.remember(roots)
	for _, v := range e.touch {
		e.states[v], e.ready[v] = state{}, false
	}
	return roots
}

// failing is the state of a service that fails.
func failing(o topology.Outcome) state {
	s := state{steps: []step{{0, 1, 1}}, fails: []failure{{seen: o}}, cancels: true, base: 1}
	if o == topology.Hang {
		s.fails[0], s.longest = failure{o, never, never}, never
	}
	return s
}

// recall looks up what comes of a service's state when nothing else is under way.
func (e *evaluation) recall(v, at int) ([]rooted, bool) {
	s := &e.states[v]
	unit, _ := s.total()
	if unit == 0 || math.IsInf(unit, 1) || math.IsNaN(unit) {
		return nil, false
	}
	key := s.key(v, unit)
	if found, ok := e.memory[key]; ok {
		e.a.guessed = e.a.guessed || found.guessed
		scaled := make([]rooted, len(found.roots))
		for i, r := range found.roots {
			scaled[i] = rooted{r.root, math.Round(r.n * unit), r.mean * unit, r.most, r.services} // attempts are whole
		}
		return scaled, true
	}
	e.marks = append(e.marks, mark{key, unit, at})
	return nil, false
}

// maxRemembered bounds how much recall keeps.
const maxRemembered = 1 << 16

func (e *evaluation) remember(roots []rooted) {
	for _, m := range e.marks {
		if len(e.memory) >= maxRemembered || len(roots)-m.from > 64 {
			continue
		}
		kept := make([]rooted, len(roots)-m.from)
		for i, r := range roots[m.from:] {
			kept[i] = rooted{r.root, r.n / m.unit, r.mean / m.unit, r.most, r.services}
		}
		e.memory[m.key] = remembered{kept, e.a.guessed}
	}
}

// key tells states apart but for how many attempts they are in all.
func (s *state) key(v int, unit float64) string {
	b := binary.AppendUvarint(nil, uint64(v))
	number := func(f float64) { b = binary.BigEndian.AppendUint64(b, math.Float64bits(f/unit)) }
	number(s.base)
	number(s.best)
	for _, st := range s.steps {
		b = binary.AppendVarint(b, int64(st.at))
		number(st.n)
		number(st.mean)
	}
	b = binary.AppendVarint(append(b, 0xff), int64(s.longest))
	for _, f := range s.fails {
		b = append(b, byte(f.seen))
		b = binary.AppendVarint(b, int64(f.least))
		b = binary.AppendVarint(b, int64(f.most))
	}
	for _, is := range []bool{s.cancels, s.vague} {
		if is {
			b = append(b, 1)
			continue
		}
		b = append(b, 0)
	}
	return string(b)
}

// callers puts those who call v into the queue.
func (e *evaluation) callers(v int) {
	for _, c := range e.g.in[v] {
		if u := e.g.calls[c].from; u >= 0 && !e.queued[u] && !e.ready[u] {
			e.queued[u] = true
			heap.Push(&e.queue, u)
		}
	}
}

// arrived notes what a service's state is to the requests from outside.
func (e *evaluation) arrived(v int, roots []rooted) []rooted {
	if !e.g.root(v) {
		return roots
	}
	outside := state{}
	called := false
	for _, c := range e.g.in[v] {
		if e.g.calls[c].from >= 0 {
			continue
		}
		s, factors := e.edge(c, e.states[v])
		if e.outside != nil {
			n, _ := s.total()
			e.outside(c, n, factors)
		}
		if called { // a request comes one way or the other
			s = either(outside, s)
		}
		outside, called = s, true
	}
	if called {
		n, mean := outside.total()
		roots = append(roots, rooted{v, n, mean, outside.longest, false})
	}
	if !called {
		n, mean := e.states[v].total()
		roots = append(roots, rooted{v, n, mean, e.states[v].longest, true})
	}
	return roots
}

// edge returns the state of a call, seen from its caller: of one call, however many it makes.
func (e *evaluation) edge(c int, callee state) (state, []Factor) {
	e.a.work += 8
	call := &e.g.calls[c]
	methods := e.a.methods
	if unsafe, known := call.call.Unsafe.Get(); known {
		methods = topology.Safe
		if unsafe {
			methods = topology.Unsafe
		}
	}
	all := []variant{{s: callee}}
	for i := len(call.slots) - 1; i >= 0; i-- {
		var next []variant
		for _, v := range all {
			for _, l := range call.slots[i] {
				next = append(next, e.through(call, l, v, methods))
			}
		}
		if all = next; len(all) > maxVariants {
			all = []variant{merged(all)}
		}
	}
	for i := range all {
		if s := &all[i].s; !all[i].ours { // nobody tells the callee of an allowance
			s.base, _ = s.total()
			s.best = 0
		}
	}
	one := merged(all)
	return one.s, one.factors
}

// variant is one way of a call through its layers: where they are for parts of the calls, there are several.
type variant struct {
	s       state
	factors []Factor // outermost first; only while somebody is told of them
	ours    bool     // a layer is one of ours
}

// maxVariants is how many ways of a call are told apart.
const maxVariants = 16

func (e *evaluation) through(call *edge, l *topology.Layer, in variant, methods topology.Methods) variant {
	out := variant{s: e.a.layer(l, in.s, methods, e.g.paid(call, l)), ours: in.ours || !l.Owner.IsZero()}
	if e.track != nil {
		out.factors = append([]Factor{{Layer: l, Times: e.factor(l, &in.s, &out.s, methods)}}, in.factors...)
	}
	return out
}

// factor is how many times what reaches a layer it becomes behind it. Of what nothing bounds already, the layer's own
// tries are left to say.
func (e *evaluation) factor(l *topology.Layer, in, out *state, methods topology.Methods) float64 {
	before, _ := in.total()
	after, _ := out.total()
	if !math.IsInf(before, 1) {
		return after / before
	}
	most := 1.0
	for _, f := range in.fails {
		most = max(most, e.a.tries(l, f.seen, methods))
	}
	return most
}

// merged is the state of a call that is one of several, and the factors of the one that comes to most.
func merged(all []variant) variant {
	one := all[0]
	most, _ := one.s.total()
	for _, v := range all[1:] {
		if n, _ := v.s.total(); n > most {
			most, one.factors = n, v.factors
		}
		one.s, one.ours = either(one.s, v.s), one.ours && v.ours
	}
	return one
}

// service computes the state of a service from those of what it calls.
func (e *evaluation) service(v int) {
	out := state{}
	if all := e.g.out[v]; !e.g.services[v].Proxy {
		out = e.made(v, all)
	} else {
		first := true
		for i, c := range all { // a request takes one of them
			if !e.ready[e.g.calls[c].to] {
				continue
			}
			one := e.made(v, all[i:i+1])
			if !first {
				one = either(out, one)
			}
			out, first = one, false
		}
	}
	e.states[v], e.ready[v] = out, true
	e.touch = append(e.touch, v)
}

// made is the state of a service that makes some calls for one request.
func (e *evaluation) made(v int, calls []int) state {
	svc := &e.g.services[v]
	out, anything := state{cancels: e.a.truth(svc.Cancels, false)}, failure{least: never}
	groups := map[int]*group{}
	for _, c := range calls {
		call := &e.g.calls[c]
		if !e.ready[call.to] || call.to == v {
			continue
		}
		n, mean := e.perRequest(call.call)
		if n == 0 {
			continue
		}
		s, factors := e.edge(c, e.states[call.to])
		if e.track != nil {
			total, _ := s.total()
			e.track(c, total*n, factors)
		}
		order := call.call.Order.Or(math.MinInt)
		g := groups[order]
		if g == nil {
			g = &group{order: order}
			groups[order] = g
		}
		g.add(&s, n, mean)
		out.base, out.best = out.base+product(n, s.base), max(out.best, s.best)
		for _, f := range s.fails {
			e.answer(&out, f, svc, &anything)
		}
	}
	out.spread(anything, svc)
	e.follow(&out, groups, svc)
	if !e.a.truth(svc.CallTree, false) {
		out.base, _ = out.total()
		out.best = 0
	}
	return out
}

// perRequest returns how many calls one request makes, at most and on average.
func (e *evaluation) perRequest(c *topology.Call) (n, mean float64) {
	mean = c.PerRequest.Or(1)
	if c.PerRequest.IsUnknown() && e.a.worst && !e.a.written {
		e.a.guessed, mean = true, math.Inf(1)
	}
	return math.Ceil(mean), mean
}
