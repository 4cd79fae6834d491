package lint

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/topology"
)

// Bound is how many attempts one request can become at a service that fails.
type Bound struct {
	Service  string
	Outcomes []topology.Outcome // how it fails, as its callers see it; the numbers are the same for all of these
	Methods  topology.Methods   // the kind of requests, where the form does not say it of a call
	// Roots is what one request at each root becomes, the most proved first; with Least, only those that come to so much.
	Roots []RootBound
	// Cycle is the way round when calls go in a circle above the service; nothing then bounds the attempts, nor is
	// anything else computed.
	Cycle []string
	// Coarse reports that the graph is so large that the numbers were not followed exactly: Proved is a lower bound, and
	// Worst, from all roots together, an upper one.
	Coarse bool
}

// RootBound is the attempts that one request at one root can become.
type RootBound struct {
	Root string // the service at which the request arrives
	// Outside reports that layers in front of the root are counted too.
	Outside bool
	// Proved is what the form says can happen; Worst cannot be exceeded. They are +Inf when nothing bounds the tries.
	Proved, Worst float64
	// Known reports that no unknown value has part in Worst. If not, Proved is all that can be said: at least so many.
	Known bool
	// Repeated reports that a layer on a way from Root to the service repeats calls, or may. Without one, the numbers are
	// those of the calls that are made for one request when nothing fails.
	Repeated bool
	// Mean is the average over many requests during an outage when budgets are obeyed: what is proved.
	Mean float64
	// MeanWorst is the same for the worst case.
	MeanWorst float64
	// Longest is how long the request takes at most until it has failed. Ends reports that something ends it; Longest
	// is 0 otherwise.
	Longest time.Duration
	Ends    bool
}

// Amplified is the answer of Amplification. It is not for use by several goroutines.
type Amplified struct {
	Bounds []Bound // in the order of the form's services

	g         *graph
	o         Options
	classes   [][]topology.Outcome
	evaluated map[assumed]*evaluation
	trackers  map[assumed]*evaluation // for Path
	coarse    []float64
	asked     map[question][]rooted // of written
	rough     int                   // services that were bounded coarsely
}

// question is what written was asked.
type question struct {
	service int
	o       topology.Outcome
	m       topology.Methods
}

type assumed struct {
	worst   bool
	methods topology.Methods
	written bool
}

// Amplification bounds the attempts at each service of the form, for each way in which it can fail. One request is one
// request from outside, of which the calls are repeated as the layers say; sequential calls are all made, because each
// but the last may succeed at its last try; calls of which a form says 0.3 for a request count as one.
//
// The services' own time counts as nothing where it makes tries possible, and as its 99th percentile where it makes
// them late. Ties between limits of time are taken as they are worse.
func Amplification(f topology.Form, o Options) *Amplified {
	return amplify(newGraph(f), o)
}

func amplify(g *graph, o Options) *Amplified {
	o = o.WithDefaults()
	a := &Amplified{g: g, o: o, classes: classes(&g.form), evaluated: map[assumed]*evaluation{}}
	kinds := methods(&g.form)
	for v := range g.services {
		for _, m := range kinds {
			a.service(v, m)
		}
	}
	if o.Steps != nil {
		*o.Steps += a.steps()
	}
	return a
}

func (a *Amplified) evaluation(worst bool, m topology.Methods) *evaluation {
	return evaluationIn(a.evaluated, a.g, assumed{worst: worst, methods: m})
}

func evaluationIn(all map[assumed]*evaluation, g *graph, k assumed) *evaluation {
	if all[k] == nil {
		all[k] = newEvaluation(g, k)
	}
	return all[k]
}

// spent is how much was followed exactly so far.
func (a *Amplified) spent() int { return workOf(a.evaluated) }

// steps is all that was done so far, for bounds and paths.
func (a *Amplified) steps() int { return workOf(a.evaluated) + workOf(a.trackers) }

func workOf(evaluations map[assumed]*evaluation) (work int) {
	for _, e := range evaluations {
		work += e.a.work
	}
	return work
}

// service adds the bounds of one service for one kind of requests.
func (a *Amplified) service(v int, m topology.Methods) {
	s := &a.g.services[v]
	if c := a.g.below[v]; c >= 0 {
		a.Bounds = append(a.Bounds, Bound{Service: s.Name, Outcomes: topology.AllOutcomes(), Methods: m,
			Cycle: a.g.cycles[c]})
		return
	}
	if len(a.g.in[v]) == 0 {
		return // nobody calls it
	}
	first := len(a.Bounds)
	for _, class := range a.of(s) {
		if a.spent() >= a.o.Work {
			a.Bounds = append(a.Bounds[:first], a.roughly(v, m))
			a.rough++
			return
		}
		b := Bound{Service: s.Name, Outcomes: class, Methods: m, Roots: a.roots(v, class[0], m)}
		if n := len(a.Bounds); n > first && sameRoots(a.Bounds[n-1].Roots, b.Roots) {
			a.Bounds[n-1].Outcomes = append(slices.Clone(a.Bounds[n-1].Outcomes), class...)
			continue
		}
		a.Bounds = append(a.Bounds, b)
	}
}

// of returns the classes of outcomes with which a service can fail.
func (a *Amplified) of(s *topology.Service) [][]topology.Outcome {
	if s.Codes() {
		return a.classes
	}
	var out [][]topology.Outcome
	for _, class := range a.classes {
		own := slices.DeleteFunc(slices.Clone(class), topology.Outcome.GRPC)
		if len(own) > 0 {
			out = append(out, own)
		}
	}
	return out
}

func sameRoots(a, b []RootBound) bool { return slices.Equal(a, b) }

// roots returns what the failure of service v comes to at each root.
func (a *Amplified) roots(v int, o topology.Outcome, m topology.Methods) []RootBound {
	proof, worst := a.evaluation(false, m), a.evaluation(true, m)
	proved := proof.rise(v, o)
	bad := worst.rise(v, o)
	known := !worst.a.guessed
	of := map[int]rooted{}
	for _, r := range bad {
		of[r.key()] = r
	}
	var out []RootBound
	for _, p := range proved {
		w := of[p.key()]
		r := RootBound{Root: a.g.services[p.root].Name, Outside: !p.services, Proved: p.n, Worst: max(w.n, p.n),
			Mean: p.mean, MeanWorst: max(w.mean, p.mean), Known: known, Repeated: a.g.repeats(p.root, !p.services)[v]}
		if most := max(w.most, p.most); most < never {
			r.Longest, r.Ends = most, true
		}
		if r.Worst >= a.o.Least {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b RootBound) int {
		return cmp.Or(cmp.Compare(b.Proved, a.Proved), cmp.Compare(b.Worst, a.Worst), strings.Compare(a.Root, b.Root))
	})
	return out
}

// written returns what a bound comes to in the worst case as far as the files say it: numbers that nobody knows count
// as the least that they can be. It is 0 for a coarse bound.
func (a *Amplified) written(b Bound, r RootBound) float64 {
	v, ok := a.g.index[b.Service]
	if !ok || b.Coarse || len(b.Cycle) > 0 {
		return 0
	}
	q := question{v, b.Outcomes[0], b.Methods}
	roots, answered := a.asked[q]
	if !answered {
		if a.asked == nil {
			a.asked = map[question][]rooted{}
		}
		roots = evaluationIn(a.evaluated, a.g, assumed{true, b.Methods, true}).rise(v, b.Outcomes[0])
		a.asked[q] = roots
	}
	for _, found := range roots {
		if a.g.services[found.root].Name == r.Root && found.services != r.Outside {
			return found.n
		}
	}
	return 0
}

func (r rooted) key() int {
	if r.services {
		return 2 * r.root
	}
	return 2*r.root + 1
}

// roughly bounds the attempts at v from what each layer can do at most.
func (a *Amplified) roughly(v int, m topology.Methods) Bound {
	if a.coarse == nil {
		a.coarse = a.g.coarse()
	}
	b := Bound{Service: a.g.services[v].Name, Outcomes: topology.AllOutcomes(), Methods: m, Coarse: true}
	least := 1.0
	e := a.evaluation(false, m)
	for _, class := range a.of(&a.g.services[v]) {
		for _, c := range a.g.in[v] {
			s, _ := e.edge(c, failing(class[0]))
			if n, _ := s.until(0); !a.g.calls[c].shares() { // no limit further out cuts what begins at once
				least = max(least, n)
			}
		}
	}
	if worst := max(a.coarse[v], least); worst >= a.o.Least {
		b.Roots = []RootBound{{Proved: least, Worst: worst, Known: !math.IsInf(worst, 1), Mean: 1, MeanWorst: worst,
			Repeated: true}}
	}
	return b
}

// coarse bounds how often each service is called for one request at each root, all roots together.
func (g *graph) coarse() []float64 {
	n := make([]float64, len(g.services))
	worst := assumption{worst: true}
	for _, v := range g.byOrder() {
		if g.root(v) {
			n[v] = 1
		}
		for _, c := range g.in[v] {
			e := &g.calls[c]
			times := 1.0
			for _, slot := range e.slots {
				most := 1.0
				for _, l := range slot {
					most = max(most, worst.ceiling(l))
				}
				times *= most
			}
			if e.from < 0 {
				n[v] += times - 1
				continue
			}
			per := math.Ceil(e.call.PerRequest.Or(1))
			if e.call.PerRequest.IsUnknown() {
				per = math.Inf(1)
			}
			n[v] += product(n[e.from], product(per, times))
		}
	}
	return n
}

// ceiling returns how often a layer tries at most, whatever happens.
func (a *assumption) ceiling(l *topology.Layer) float64 {
	most := 1.0
	for _, o := range topology.AllOutcomes() {
		most = max(most, a.tries(l, o, topology.Safe), a.tries(l, o, topology.Unsafe))
	}
	copies, _ := a.copies(l, limits{})
	return most * (1 + copies)
}

// methods returns the kinds of requests that the form tells apart.
func methods(f *topology.Form) []topology.Methods {
	for _, c := range f.Calls {
		for _, l := range c.Layers {
			for _, r := range l.Repeats {
				if r.Methods == topology.Safe || r.Methods == topology.Unsafe {
					return []topology.Methods{topology.Safe, topology.Unsafe}
				}
			}
		}
	}
	return []topology.Methods{topology.AllMethods}
}

// classes returns the outcomes in groups of those that no layer of the form tells apart.
func classes(f *topology.Form) [][]topology.Outcome {
	sets := map[uint32]bool{1 << topology.Hang: true}
	for i := range f.Calls {
		for j := range f.Calls[i].Layers {
			l := &f.Calls[i].Layers[j]
			for _, r := range l.Repeats {
				mask := uint32(0)
				for _, o := range r.On {
					mask |= 1 << o
				}
				sets[mask] = true
			}
			for _, an := range l.Answers { // what is answered otherwise is a group of its own
				sets[1<<an.After] = true
			}
		}
	}
	of := map[string]int{}
	var out [][]topology.Outcome
	var masks []uint32
	for m := range sets {
		masks = append(masks, m)
	}
	slices.Sort(masks)
	for _, o := range topology.AllOutcomes() {
		key := make([]byte, len(masks))
		for i, m := range masks {
			key[i] = byte(m >> o & 1)
		}
		i, seen := of[string(key)]
		if !seen {
			i = len(out)
			of[string(key)], out = i, append(out, nil)
		}
		out[i] = append(out[i], o)
	}
	return out
}
