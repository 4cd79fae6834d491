package lint

import (
	"fmt"
	"slices"

	"github.com/abate-go/abate/topology"
)

// allCalls is what a number rests on that adds calls up whose addresses stand in variables.
const allCalls = "one request makes every call whose address stands in a variable"

// brings returns how many attempts one way brings.
func brings(hops []Hop) float64 {
	n := 1.0
	for _, h := range hops {
		n *= h.Times
		for _, f := range h.Factors {
			n *= f.Times
		}
	}
	return n
}

// Guessed reports whether a bound adds up calls of which only addresses in variables tell, and whose one request need
// not make them all: the way that is given, which brings most, brings less.
func (a *Amplified) Guessed(hops []Hop, b Bound, r RootBound) bool {
	return brings(hops) < r.Worst && a.g.guessed(hops, b.Service)
}

// guessed reports whether several calls of one service lead to the service that fails, one of them by an address in a
// variable only: nobody says that the same request makes them all. The way that is given is one of theirs.
func (g *graph) guessed(hops []Hop, fails string) bool {
	f, known := g.index[fails]
	if !known || len(hops) == 0 {
		return false
	}
	toward, todo := map[int]bool{f: true}, []int{f}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range g.in[v] {
			if from := g.calls[c].from; from >= 0 && !toward[from] {
				toward[from] = true
				todo = append(todo, from)
			}
		}
	}
	root := g.index[hops[0].Call.From]
	if hops[0].Call.From == "" {
		root = g.index[hops[0].Call.To]
	}
	from := map[int]bool{root: true}
	for todo = []int{root}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		several, guess := 0, false
		for _, c := range g.out[v] {
			e := &g.calls[c]
			if !toward[e.to] {
				continue
			}
			several++
			guess = guess || e.call.PerRequest.Origin == topology.Assumed
			if !from[e.to] {
				from[e.to] = true
				todo = append(todo, e.to)
			}
		}
		if several > 1 && guess && !g.services[v].Proxy {
			return true
		}
	}
	return false
}

// fewer says what makes a path shorter: one layer of it is to retry, and if there is one only, less often.
func fewer(hops []Hop, cause *topology.Layer, tries int) string {
	var repeat []*topology.Layer
	for _, h := range hops {
		for _, f := range h.Factors {
			if f.Times > 1 && !slices.Contains(repeat, f.Layer) {
				repeat = append(repeat, f.Layer)
			}
		}
	}
	if len(repeat) == 1 {
		return fmt.Sprintf("lower the tries of %s (%s), which alone repeats calls on this path, or make fewer calls for "+
			"one request", name(cause), triesText(tries))
	}
	return fmt.Sprintf("let one layer of this path retry and switch it off in the others, first in %s, which tries %s; "+
		"with Abate, retryOwner: nearest does it", name(cause), triesText(tries))
}
