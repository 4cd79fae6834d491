package lint

import (
	"slices"

	"github.com/abate-go/abate/topology"
)

// Hop is one call of the path that a request takes to the service that fails.
type Hop struct {
	Call    *topology.Call // From is empty for the world outside
	Times   float64        // calls for each request of the caller
	Factors []Factor       // of its layers, outermost first
}

// Factor is how many tries a layer makes of each that reaches it.
type Factor struct {
	Layer *topology.Layer
	Times float64
}

// Path returns the hops from a root to the service of a bound, outermost first, that contribute most: in the worst case
// if worst, else of what is proved. Other paths may add to the bound. It is nil for coarse bounds and cycles.
func (a *Amplified) Path(b Bound, r RootBound, worst bool) []Hop {
	return a.path(b, r, assumed{worst: worst, methods: b.Methods})
}

func (a *Amplified) path(b Bound, r RootBound, k assumed) []Hop {
	f, ok := a.g.index[b.Service]
	root, known := a.g.index[r.Root]
	if !ok || !known || b.Coarse || len(b.Cycle) > 0 {
		return nil
	}
	e := a.tracker(k)
	best := map[int]tracked{} // of each service, the call of it that brings most
	e.track = func(call int, n float64, factors []Factor) {
		v := a.g.calls[call].from
		if t, seen := best[v]; !seen || n > t.n {
			best[v] = tracked{call, n, factors}
		}
	}
	e.rise(f, b.Outcomes[0])
	var hops []Hop
	if r.Outside {
		hops = append(hops, a.outside(e, root, f, b.Outcomes[0]))
	}
	for v := root; v != f; {
		t, seen := best[v]
		if !seen || len(hops) > len(a.g.services) {
			return nil
		}
		c := &a.g.calls[t.call]
		n, _ := e.perRequest(c.call)
		hops = append(hops, Hop{c.call, n, t.factors})
		v = c.to
	}
	return hops
}

// tracker is an evaluation that is told of paths, and remembers nothing.
func (a *Amplified) tracker(k assumed) *evaluation {
	if a.trackers == nil {
		a.trackers = map[assumed]*evaluation{}
	}
	e := evaluationIn(a.trackers, a.g, k)
	e.track, e.outside = nil, nil
	return e
}

type tracked struct {
	call    int
	n       float64
	factors []Factor
}

// outside is the hop from the world outside to a root.
func (a *Amplified) outside(e *evaluation, root, f int, o topology.Outcome) Hop {
	i := slices.IndexFunc(a.g.in[root], func(c int) bool { return a.g.calls[c].from < 0 })
	c := a.g.in[root][i]
	hop := Hop{Call: a.g.calls[c].call, Times: 1}
	most := -1.0
	e.outside = func(call int, n float64, factors []Factor) {
		if a.g.calls[call].to == root && n > most {
			most, hop.Call, hop.Factors = n, a.g.calls[call].call, factors
		}
	}
	e.rise(f, o)
	return hop
}

// alone reports whether one layer of a path repeats, and nothing else makes several calls of one.
func alone(hops []Hop) bool {
	repeats := 0
	for _, h := range hops {
		if h.Times > 1 {
			return false
		}
		for _, f := range h.Factors {
			if f.Times > 1 {
				repeats++
			}
		}
	}
	return repeats == 1
}
