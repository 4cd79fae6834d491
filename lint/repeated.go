package lint

import (
	"slices"

	"github.com/abate-go/abate/topology"
)

// arrival is where requests arrive: at a service, or in front of its layers.
type arrival struct {
	service int
	outside bool
}

// repeats returns of each service whether a layer on a way to it repeats calls, or may, when a request arrives.
func (g *graph) repeats(service int, outside bool) []bool {
	at := arrival{service, outside}
	if again, ok := g.repeated[at]; ok {
		return again
	}
	type step struct {
		service int
		again   bool
	}
	again, once := make([]bool, len(g.services)), make([]bool, len(g.services))
	begin := step{service: service, again: outside && slices.ContainsFunc(g.in[service], func(c int) bool {
		return g.calls[c].from < 0 && g.calls[c].repeats()
	})}
	for todo := []step{begin}; len(todo) > 0; {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		seen := once
		if s.again {
			seen = again
		}
		if seen[s.service] {
			continue
		}
		seen[s.service] = true
		for _, c := range g.out[s.service] {
			e := &g.calls[c]
			todo = append(todo, step{e.to, s.again || e.repeats()})
		}
	}
	if g.repeated == nil {
		g.repeated = map[arrival][]bool{}
	}
	g.repeated[at] = again
	return again
}

// repeats reports whether a layer of the call tries more than once, or may.
func (e *edge) repeats() bool {
	for _, slot := range e.slots {
		for _, l := range slot {
			many := func(r topology.Repeat) bool { return r.Tries.IsUnknown() || r.Tries.Or(topology.Unbounded) > 1 }
			if !l.Hedge.Copies.IsZero() || slices.ContainsFunc(l.Repeats, many) {
				return true
			}
		}
	}
	return false
}
