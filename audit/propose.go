package audit

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// enough is how many attempts one request may become before further changes are proposed.
const enough = 4

// least are the fewest tries that a product's setting can say. gRPC refuses a retry policy with one attempt.
var least = map[string]int{"grpc": 2}

// Propose looks for the fewest numbers to make smaller, or to write where a default is at fault. It switches off what
// repeats requests that are known to be unsafe, then shortens paths until one request becomes no more than a few
// attempts, and at last lowers limits to what callers wait for. Of a path it takes the number first that shortens the
// worst path most, and of several that do the same for it the one that does most for all paths. It goes on until all
// paths are short or no number is left. Retries that stand nearest to the failure are kept where there is a choice.
//
// It adds the changes to the result, with a diff of the files; nothing is written.
func (r *Result) Propose(files []importer.File, o lint.Options) { r.propose(files, o, effort) }

// propose is Propose with as much effort as is given.
func (r *Result) propose(files []importer.File, o lint.Options, effort int) {
	data := make(map[string][]byte, len(files))
	for _, f := range files {
		data[f.Name] = f.Data
	}
	p := &plan{data: data, effort: effort, inserts: inserts{files: data, assume: r.assume, known: map[question]*Edit{},
		remarks: map[string]int{}}}
	p.inserts.effort = &p.effort
	r.proposed = true
	var changes []Edit
	var form topology.Form
	var a *lint.Amplified
	var before map[string]int // errors
	for _, way := range []caution{bold, limitsFirst, limitsStay} {
		switch {
		case way == limitsFirst && p.effort <= 0:
			continue
		case way == limitsStay:
			p.effort = max(p.effort, effort/4) // what went before is thrown away: it must not leave nothing at all
		}
		changes, form, a = p.propose(r.Form, way, o)
		if len(p.taking) == 0 {
			break
		}
		if before == nil {
			before = mended(p.lint(&r.Form, o))
		}
		if !moreOf(mended(p.lint(&form, o)), before) {
			break
		}
	}
	r.Changes = append(r.Changes, changes...)
	r.After, r.fixed, r.boundless = worst(a), form, boundlessIn(a)
	if w := r.After; w != nil && w.Most > enough {
		r.Left = unwritten(w)
	}
	r.Unfinished = p.effort <= 0
	changed, _ := Apply(files, r.Changes)
	r.Diff = diffs(files, changed)
}

// caution is how limits are treated that go with retries that are switched off. Where somebody waits for one, a rule
// may have more errors without it.
type caution int

const (
	bold        caution = iota
	limitsFirst         // those of other layers are lowered before, so that nobody waits for it any more
	limitsStay          // and the retries with them
)

// propose returns the changes, the form with them, and what its paths are then.
func (p *plan) propose(before topology.Form, way caution, o lint.Options) ([]Edit, topology.Form, *lint.Amplified) {
	p.taking, p.lowered = map[topology.Position]bool{}, map[topology.Position]Edit{}
	p.stay = way == limitsStay
	form := clone(before)
	var all []Edit
	if way == limitsFirst {
		all = p.limits(&form, o)
	}
	all = merged(all, p.once(&form, o))
	short := draft{nil, clone(before), p.amplification(&before, o)}
	for {
		made, a := p.shorten(&form, o)
		all = merged(all, made)
		if p.effort > 0 || lengthOf(a).worst <= lengthOf(short.a).worst {
			short = draft{slices.Clone(all), form, a}
		} // else limits were lowered, and nobody is left to shorten the path that is the worst since
		if p.effort <= 0 {
			return short.edits, short.form, short.a
		}
		lowered := p.limits(&form, o)
		if len(lowered) == 0 {
			return short.edits, short.form, short.a
		}
		all = merged(all, lowered) // a try that ends earlier may make another path the worst
	}
}

// draft is the changes at one time, the form with them, and what its paths are.
type draft struct {
	edits []Edit
	form  topology.Form
	a     *lint.Amplified
}

// mended counts the errors of each rule that a fix must not make more of: not those about paths, which are one for all
// paths with the same cause.
func mended(all []lint.Finding) map[string]int {
	n := errorsOf(all)
	for rule := range n {
		if strings.HasPrefix(rule, "F1") {
			delete(n, rule)
		}
	}
	return n
}

// shorten makes numbers of tries smaller until all paths are short or no number is left. It returns the changes, which
// are made in the form too, and what the paths are then.
func (p *plan) shorten(form *topology.Form, o lint.Options) ([]Edit, *lint.Amplified) {
	var all []Edit
	a, given, again := p.amplification(form, o), map[way]bool{}, false
	for p.effort > 0 {
		w := worstBut(a, given)
		if w == nil || w.Most <= enough || len(given) >= givenUp {
			if !again {
				break
			}
			clear(given) // since then other changes were made, and what did not help may
			again = false
			continue
		}
		best, after := p.step(form, w, a, o)
		if best == nil {
			given[way{w.Service, w.Root}] = true
			continue
		}
		all = append(all, p.make(form, best)...)
		a, again = after, len(given) > 0
	}
	return all, a
}

// givenUp is for how many paths that no number can shorten others are looked at.
const givenUp = 50

// step returns the change of the layers of a path that leaves the shortest paths, and these. It is one number if one
// does, else those of a layer and of the ones beside it together: two routes of a sidecar, two copies of a
// configuration, of which the other goes on as before if one is changed.
func (p *plan) step(form *topology.Form, w *Worst, a *lint.Amplified, o lint.Options) ([]*setting, *lint.Amplified) {
	if len(w.Cycle) > 0 {
		return nil, nil
	}
	var one, beside [][]*setting
	for _, s := range p.settings(form, p.places(w), p.fewest) {
		one = append(one, []*setting{s})
	}
	if best, after := p.best(form, one, a, w, o); best != nil {
		return best, after
	}
	for _, places := range p.besides(w) {
		beside = append(beside, p.settings(form, places, p.fewest))
	}
	return p.best(form, beside, a, w, o)
}

// best returns the one of several changes of a path that leaves the shortest paths, nil if none makes them shorter. A
// path without a bound needs one that gives it a bound: what makes others shorter is found for these.
func (p *plan) best(form *topology.Form, changes [][]*setting, a *lint.Amplified, w *Worst, o lint.Options) (
	best []*setting, after *lint.Amplified,
) {
	least := lengthOf(a)
	endless := least.endless
	for _, change := range changes {
		if p.effort <= 0 {
			break
		}
		was := make([][]topology.Value[int], len(change))
		for i, s := range change {
			was[i] = s.set(s.to)
		}
		next := p.amplification(form, o)
		for i, s := range change {
			s.restore(was[i])
		}
		n := lengthOf(next)
		if math.IsInf(w.certain(), 1) && n.endless >= endless {
			continue
		}
		if n.below(least) {
			best, after, least = change, next, n
		}
	}
	return best, after
}

// plan finds the numbers that can be changed.
type plan struct {
	data    map[string][]byte
	inserts inserts
	effort  int                        // what is left of it
	lowered map[topology.Position]Edit // limits, by where they stand
	taking  map[topology.Position]bool // numbers with which limits were taken away
	stay    bool                       // whether none is to be taken away
}

// place returns where the number of a rule would be changed: where it is written, or the block that leaves it out, or,
// of nginx, the line beside which its directive may stand.
func (p *plan) place(l *topology.Layer, r *topology.Repeat) topology.Position {
	r = ruled(l, r)
	if l.Product != "nginx" || r.At.IsZero() {
		return r.Tries.At
	}
	if _, written := number(p.data, r.Tries.At); written {
		return r.Tries.At
	}
	at := r.At
	at.Column = 1
	return at
}

// ruled returns the rule that another follows: nginx gives a request one try more than it says when a connection breaks
// that was kept.
func ruled(l *topology.Layer, r *topology.Repeat) *topology.Repeat {
	if l.Product == "nginx" && r.Word == "keepalive" {
		return &l.Repeats[0]
	}
	return r
}

// edit returns the change of a rule's number.
func (p *plan) edit(l *topology.Layer, r *topology.Repeat, to int) (Edit, bool) {
	r = ruled(l, r)
	if e, ok := triesEdit(p.data, r.Tries, to); ok {
		return e, to > 1 || p.inserts.quiet(e)
	}
	if r.Tries.Origin != topology.Default && l.Product != "nginx" {
		return Edit{}, false
	}
	return p.inserts.edit(l.Product, p.place(l, r), to)
}

// fewest returns the change to the fewest tries that a product takes, what has to go with it, and how many these are.
// Some refuse a policy that is switched off, or mean something else by its 0: Polly, Contour. One retry is left then.
// Istio takes a 0 if nothing stands beside it.
func (p *plan) fewest(l *topology.Layer, r *topology.Repeat) (e Edit, beside []Edit, to int, ok bool) {
	for to = max(1, least[l.Product]); to <= 2 && to < r.Tries.Or(0); to++ {
		if e, ok = p.edit(l, r, to); ok {
			return e, nil, to, true
		}
		if e.Old == "" {
			continue
		}
		if beside = p.inserts.beside(l.Product, e); len(beside) > 0 && !p.stay {
			return e, beside, to, true
		}
	}
	return Edit{}, nil, 0, false
}

// places returns where the numbers of a path's layers stand.
func (p *plan) places(w *Worst) map[topology.Position]bool {
	onPath := map[topology.Position]bool{}
	for _, h := range w.Hops {
		for _, f := range h.Factors {
			for i := range f.Layer.Repeats {
				at := p.place(f.Layer, &f.Layer.Repeats[i])
				onPath[at] = f.Times > 1 || onPath[at]
			}
		}
	}
	return onPath
}

// besides returns, for each layer of a path that repeats, where the numbers stand of all layers that are of its kind
// and product for the same call: a request that does not meet one of them meets another.
func (p *plan) besides(w *Worst) []map[topology.Position]bool {
	var all []map[topology.Position]bool
	for _, h := range w.Hops {
		for _, f := range h.Factors {
			if f.Times <= 1 {
				continue
			}
			places := map[topology.Position]bool{}
			for i := range h.Call.Layers {
				if l := &h.Call.Layers[i]; l.Kind == f.Layer.Kind && l.Product == f.Layer.Product {
					for k := range l.Repeats {
						places[p.place(l, &l.Repeats[k])] = true
					}
				}
			}
			all = append(all, places)
		}
	}
	return all
}

// settings returns the numbers at places that can be made smaller, the outermost first, and how smaller says to.
func (p *plan) settings(form *topology.Form, onPath map[topology.Position]bool,
	smaller func(*topology.Layer, *topology.Repeat) (Edit, []Edit, int, bool),
) []*setting {
	byPlace := map[topology.Position]*setting{}
	var all []*setting
	for i := range form.Calls {
		for j := range form.Calls[i].Layers {
			l := &form.Calls[i].Layers[j]
			for k := range l.Repeats {
				rep := &l.Repeats[k]
				at := p.place(l, rep)
				if !onPath[at] {
					continue
				}
				s := byPlace[at]
				if s == nil && p.effort <= 0 {
					continue
				}
				e, beside, to, editable := smaller(l, rep)
				if !editable {
					continue
				}
				if s == nil {
					s = &setting{edit: e, beside: beside, to: to, layer: l, tries: ruled(l, rep).Tries.V}
					byPlace[at] = s
					all = append(all, s)
				}
				s.rules = append(s.rules, rule{&rep.Tries, rep.Tries.V - ruled(l, rep).Tries.V})
			}
		}
	}
	return all
}

// clone copies a form as far as changes reach.
func clone(f topology.Form) topology.Form {
	f.Policies, f.Calls = slices.Clone(f.Policies), slices.Clone(f.Calls)
	for i := range f.Calls {
		f.Calls[i].Layers = slices.Clone(f.Calls[i].Layers)
		for j := range f.Calls[i].Layers {
			f.Calls[i].Layers[j].Repeats = slices.Clone(f.Calls[i].Layers[j].Repeats)
		}
	}
	return f
}

// unwritten says which retries of a path no number in a file stands for.
func unwritten(w *Worst) []string {
	found := map[string]bool{}
	for _, h := range w.Hops {
		for _, f := range h.Factors {
			if f.Times > 1 {
				text := layerName(f.Layer) + ": " + times(f.Times) + " tries, " + triesSource(f.Layer)
				if at := lint.Elsewhere(f.Layer, h.Call.To); at != "" {
					text += "; it is set " + at
				}
				found[text] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func layerName(l *topology.Layer) string {
	switch {
	case l.Name != "":
		return l.Name
	case l.Product != "":
		return l.Product
	}
	return l.Kind.String()
}
