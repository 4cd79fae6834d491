package lint

import (
	"cmp"
	"slices"

	"github.com/abate-go/abate/topology"
)

// graph is a form by numbers instead of names.
type graph struct {
	form     topology.Form
	services []topology.Service
	index    map[string]int
	calls    []edge
	out, in  [][]int // calls from and to a service
	order    []int   // of a service: callers have lower numbers than what they call, but for those of one cycle
	cycle    []int   // of a service: the number of its cycle, or -1
	cycles   [][]string
	below    []int     // of a service: the cycle through which it can be reached, or -1
	rate     []float64 // requests per second that reach a service when nothing is repeated; 0 when not known

	repeated map[arrival][]bool // by where requests arrive, the services that are called again for one
}

// edge is one call, its layers grouped by place.
type edge struct {
	call     *topology.Call
	from, to int // from is -1 for the world outside
	slots    [][]*topology.Layer
}

// shares reports that a layer of the call is one of ours, which may be told to make no extra attempts.
func (e *edge) shares() bool {
	return slices.ContainsFunc(e.call.Layers, func(l topology.Layer) bool { return !l.Owner.IsZero() })
}

func newGraph(f topology.Form) *graph {
	g := &graph{form: f, services: slices.Clone(f.Services), index: map[string]int{}}
	for i, s := range g.services {
		if _, twice := g.index[s.Name]; !twice {
			g.index[s.Name] = i
		}
	}
	for i := range f.Calls {
		c := &f.Calls[i]
		e := edge{call: c, from: -1, to: g.service(c.To, c.At), slots: slots(c.Layers)}
		if c.From != "" {
			e.from = g.service(c.From, c.At)
		}
		g.calls = append(g.calls, e)
	}
	g.out, g.in = make([][]int, len(g.services)), make([][]int, len(g.services))
	for i, e := range g.calls {
		if e.from >= 0 {
			g.out[e.from] = append(g.out[e.from], i)
		}
		g.in[e.to] = append(g.in[e.to], i)
	}
	g.sort()
	g.taint()
	g.rates()
	return g
}

func (g *graph) service(name string, at topology.Position) int {
	i, ok := g.index[name]
	if !ok {
		i = len(g.services)
		g.services, g.index[name] = append(g.services, topology.Service{Name: name, At: at}), i
	}
	return i
}

// slots groups the layers of a call: those of one slot are alternatives, each for a part of the calls, so that a call
// passes one of them. Slots follow each other, outermost first. What only guards a call is no other way of it: it comes
// last, in slots of its own.
func slots(layers []topology.Layer) (out [][]*topology.Layer) {
	var guards [][]*topology.Layer
	for i := range layers {
		l := &layers[i]
		if Local(l) {
			continue
		}
		if guardsOnly(l) {
			guards = append(guards, []*topology.Layer{l})
			continue
		}
		if n := len(out); n > 0 && alternatives(out[n-1][0], l) {
			out[n-1] = append(out[n-1], l)
			continue
		}
		out = append(out, []*topology.Layer{l})
	}
	return append(out, guards...)
}

// guardsOnly reports that a layer says nothing of tries, of times and of answers: only of what is in flight, and of
// endpoints that are left out.
func guardsOnly(l *topology.Layer) bool {
	return (!l.Limits.Requests.IsZero() || !l.Limits.Pending.IsZero() || !l.Limits.Connections.IsZero() ||
		!l.Ejection.Consecutive.IsZero()) && len(l.Repeats) == 0 && len(l.Answers) == 0 && l.Overall.IsZero() &&
		l.PerTry.IsZero() && l.Hedge.Copies.IsZero() && l.Owner.IsZero()
}

// Local reports whether a layer is a sidecar that only connects to its own application again: what it repeats was not
// sent and never leaves the pod, so it loads nobody. Istio has it everywhere.
func Local(l *topology.Layer) bool {
	if l.Kind != topology.SidecarIn || l.PerTry.Or(0) > 0 || l.Overall.Or(0) > 0 {
		return false
	}
	for _, r := range l.Repeats {
		if slices.ContainsFunc(r.On, processed) && r.Tries.Or(topology.Unbounded) > 1 {
			return false
		}
	}
	return len(l.Repeats) > 0 && l.Hedge.Copies.IsZero()
}

// alternatives reports whether a call passes one of two layers and not both: they are for different parts of the calls,
// or one process has both of them. The sidecar of a service is one process, and so is a gateway of one product.
func alternatives(a, b *topology.Layer) bool {
	if a.Kind != b.Kind {
		return false
	}
	if a.Choice != "" && a.Choice == b.Choice {
		return true
	}
	switch a.Kind {
	case topology.SidecarOut, topology.SidecarIn:
		return true
	case topology.Gateway:
		if a.Product == b.Product && a.Product != "" {
			return true
		}
	}
	same := a.Match.Host == b.Match.Host && a.Match.Path == b.Match.Path && a.Match.Other == b.Match.Other &&
		slices.Equal(a.Match.Methods, b.Match.Methods)
	return a.Product == b.Product && !same
}

// root reports whether requests from outside arrive at a service.
func (g *graph) root(v int) bool {
	if !g.services[v].Rate.IsZero() {
		return true
	}
	called := false
	for _, c := range g.in[v] {
		if g.calls[c].from < 0 {
			return true
		}
		called = called || g.calls[c].from != v // who calls only itself is called from outside
	}
	return !called
}

// sort numbers the services so that callers come first, and finds the cycles: strongly connected components, by
// Tarjan's algorithm without recursion.
func (g *graph) sort() {
	n := len(g.services)
	g.order, g.cycle = make([]int, n), make([]int, n)
	t := tarjan{g: g, found: make([]int, n), low: make([]int, n), next: make([]int, n), on: make([]bool, n), left: n}
	for v := range n {
		g.cycle[v] = -1
	}
	for v := range n {
		if t.found[v] == 0 {
			t.from(v)
		}
	}
}

type tarjan struct {
	g           *graph
	found, low  []int
	next        []int
	on          []bool
	stack, path []int
	clock, left int
}

func (t *tarjan) enter(v int) {
	t.clock++
	t.found[v], t.low[v], t.on[v] = t.clock, t.clock, true
	t.stack, t.path = append(t.stack, v), append(t.path, v)
}

func (t *tarjan) from(v int) {
	for t.enter(v); len(t.path) > 0; {
		v = t.path[len(t.path)-1]
		if t.next[v] < len(t.g.out[v]) {
			w := t.g.calls[t.g.out[v][t.next[v]]].to
			t.next[v]++
			switch {
			case t.found[w] == 0:
				t.enter(w)
			case t.on[w]:
				t.low[v] = min(t.low[v], t.found[w])
			}
			continue
		}
		t.path = t.path[:len(t.path)-1]
		if len(t.path) > 0 {
			u := t.path[len(t.path)-1]
			t.low[u] = min(t.low[u], t.low[v])
		}
		if t.low[v] == t.found[v] {
			t.component(v)
		}
	}
}

// component takes one off the stack. What is called comes out first, so numbers fall from the highest.
func (t *tarjan) component(v int) {
	i := len(t.stack) - 1
	for t.stack[i] != v {
		i--
	}
	members := t.stack[i:]
	t.stack = t.stack[:i]
	for _, w := range members {
		t.on[w] = false
		t.left--
		t.g.order[w] = t.left
	}
	if len(members) > 1 || t.g.callsItself(v) {
		for _, w := range members {
			t.g.cycle[w] = len(t.g.cycles)
		}
		t.g.cycles = append(t.g.cycles, t.g.round(v))
	}
}

func (g *graph) callsItself(v int) bool {
	for _, c := range g.out[v] {
		if g.calls[c].to == v {
			return true
		}
	}
	return false
}

// round returns the names along a shortest cycle through v, v first and last. The members of the component of v are
// those whose cycle number is the newest.
func (g *graph) round(v int) []string {
	came := map[int]int{}
	for queue := []int{v}; len(queue) > 0; queue = queue[1:] {
		for _, c := range g.out[queue[0]] {
			w := g.calls[c].to
			if w == v {
				names := []string{g.services[v].Name}
				for u := queue[0]; u != v; u = came[u] {
					names = append(names, g.services[u].Name)
				}
				names = append(names, g.services[v].Name)
				slices.Reverse(names)
				return names
			}
			if _, seen := came[w]; !seen && g.cycle[w] == g.cycle[v] && g.cycle[v] >= 0 {
				came[w] = queue[0]
				queue = append(queue, w)
			}
		}
	}
	return []string{g.services[v].Name}
}

// byOrder returns the services, callers first.
func (g *graph) byOrder() []int {
	all := make([]int, len(g.services))
	for v := range all {
		all[v] = v
	}
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(g.order[a], g.order[b]) })
	return all
}

// taint marks what can be reached through a cycle.
func (g *graph) taint() {
	g.below = slices.Clone(g.cycle)
	for _, v := range g.byOrder() {
		for _, c := range g.in[v] {
			if u := g.calls[c].from; u >= 0 && g.below[v] < 0 {
				g.below[v] = g.below[u]
			}
		}
	}
}

// rates computes how many requests reach each service while nothing is repeated.
func (g *graph) rates() {
	g.rate = make([]float64, len(g.services))
	known := make([]bool, len(g.services))
	for _, v := range g.byOrder() {
		r, given := g.services[v].Rate.Get()
		known[v] = g.below[v] < 0 && (given || !g.root(v))
		for _, c := range g.in[v] {
			if u := g.calls[c].from; u >= 0 {
				share := g.calls[c].call.PerRequest
				spread := g.services[u].Proxy && len(g.out[u]) > 1 && share.IsZero() // which part goes where nobody says
				known[v] = known[v] && known[u] && !share.IsUnknown() && !spread
				r += g.rate[u] * g.calls[c].call.PerRequest.Or(1)
			}
		}
		if known[v] {
			g.rate[v] = r
		}
	}
}
