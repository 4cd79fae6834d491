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
	return brings(hops) < r.Worst && len(a.g.guessed(hops, b.Service)) > 0
}

// guessed returns calls that one request need not make: where several calls of one service lead to the service that
// fails, those by an address in a variable only. Where all are such, one of them is not among these: that of the way
// that is given, or the first.
func (g *graph) guessed(hops []Hop, fails string) map[int]bool {
	f, known := g.index[fails]
	if !known || len(hops) == 0 {
		return nil
	}
	onWay := map[*topology.Call]bool{}
	for _, h := range hops {
		onWay[h.Call] = true
	}
	root := g.index[hops[0].Call.From]
	if hops[0].Call.From == "" {
		root = g.index[hops[0].Call.To]
	}
	toward, all := g.above(f), map[int]bool{}
	from := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		several, guesses, kept := 0, []int(nil), 0
		for _, c := range g.out[v] {
			e := &g.calls[c]
			if !toward[e.to] {
				continue
			}
			several++
			if e.call.PerRequest.Origin == topology.Assumed {
				if onWay[e.call] {
					kept = len(guesses)
				}
				guesses = append(guesses, c)
			}
			if !from[e.to] {
				from[e.to] = true
				todo = append(todo, e.to)
			}
		}
		if several < 2 || g.services[v].Proxy {
			continue
		}
		for i, c := range guesses {
			if len(guesses) < several || i != kept {
				all[c] = true
			}
		}
	}
	return all
}

// above returns a service and all from which calls lead to it.
func (g *graph) above(f int) map[int]bool {
	found, todo := map[int]bool{f: true}, []int{f}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range g.in[v] {
			if from := g.calls[c].from; from >= 0 && !found[from] {
				found[from] = true
				todo = append(todo, from)
			}
		}
	}
	return found
}

// without returns what is proved at the same root without some calls.
func (r *run) without(calls map[int]bool, l loudest) float64 {
	form := r.g.form
	form.Calls = nil
	for c := range r.g.calls {
		if !calls[c] {
			form.Calls = append(form.Calls, *r.g.calls[c].call)
		}
	}
	g := newGraph(form)
	v, there := g.index[l.b.Service]
	if !there {
		return 0
	}
	for _, found := range newEvaluation(g, assumed{methods: l.b.Methods}).rise(v, l.b.Outcomes[0]) {
		if g.services[found.root].Name == l.r.Root && found.services != l.r.Outside {
			return found.n
		}
	}
	return 0
}

// apart says of a number that adds up calls of which only addresses in variables tell what it is without them, and
// whether that is within the limit.
func (r *run) apart(hops []Hop, l loudest) (text string, within bool) {
	most := brings(hops)
	if most > r.o.MaxAmplification {
		return "", false
	}
	calls := r.g.guessed(hops, l.b.Service)
	if len(calls) == 0 {
		return "", false
	}
	if rest := r.without(calls, l); rest > r.o.MaxAmplification {
		return fmt.Sprintf(" (%s without those that it need not make)", number(rest)), false
	}
	return fmt.Sprintf(" (no one way brings more than %s)", number(most)), true
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
