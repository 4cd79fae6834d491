package audit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// enough is how many attempts one request may become before further changes are proposed.
const enough = 4

// least are the fewest tries that a product's setting can say. gRPC refuses a retry policy with one attempt.
var least = map[string]int{"grpc": 2}

// setting is one number in a file that says how often something is tried, or that the file leaves out, and the places
// of the form where it holds.
type setting struct {
	edit  Edit
	tries int // before
	to    int
	layer *topology.Layer // one that it is of
	rules []rule
}

// rule is a number of tries in a form, and how many more they are than the file says.
type rule struct {
	tries *topology.Value[int]
	more  int
}

// Propose looks for the fewest numbers to make smaller, or to write where a default is at fault, so that one request
// becomes no more than a few attempts: it takes the one first that shortens the worst path most, and goes on until the
// path is short or no number is left. Retries that stand nearest to the failure are kept where there is a choice. It
// adds the changes to the result, with a diff of the files; nothing is written.
func (r *Result) Propose(files []importer.File, o lint.Options) {
	data := make(map[string][]byte, len(files))
	for _, f := range files {
		data[f.Name] = f.Data
	}
	form := clone(r.Form)
	p := &plan{data, inserts{files: data, assume: r.assume, known: map[question]*Edit{}}}
	w := r.Worst
	for w != nil && w.Most > enough && len(w.Cycle) == 0 {
		best, after := p.step(&form, w, o)
		if best == nil {
			break
		}
		e := best.edit
		e.Why = fmt.Sprintf("%s: %s tries become %d", layerName(best.layer), times(float64(best.tries)), best.to)
		r.Changes = append(r.Changes, e)
		best.set(best.to)
		w = after
	}
	r.After, r.fixed = w, form
	if w != nil && w.Most > enough {
		r.Left = unwritten(w)
	}
	changed, _ := Apply(files, r.Changes)
	r.Diff = diffs(files, changed)
}

// step returns the change of the worst path's layers that leaves the shortest worst path, and that path.
func (p *plan) step(form *topology.Form, w *Worst, o lint.Options) (*setting, *Worst) {
	var best *setting
	var after *Worst
	for _, s := range p.settings(form, w) {
		was := s.set(s.to)
		next := worst(lint.Amplification(*form, o))
		s.restore(was)
		if next == nil || after == nil && next.Most < w.Most || after != nil && next.Most < after.Most {
			best, after = s, next
			if next == nil {
				break
			}
		}
	}
	return best, after
}

// plan finds the numbers that can be changed.
type plan struct {
	data    map[string][]byte
	inserts inserts
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
		return e, true
	}
	if r.Tries.Origin != topology.Default && l.Product != "nginx" {
		return Edit{}, false
	}
	return p.inserts.edit(l.Product, p.place(l, r), to)
}

// settings returns the numbers on a path that can be made smaller, the outermost first.
func (p *plan) settings(form *topology.Form, w *Worst) []*setting {
	onPath := map[topology.Position]bool{}
	for _, h := range w.Hops {
		for _, f := range h.Factors {
			for i := range f.Layer.Repeats {
				at := p.place(f.Layer, &f.Layer.Repeats[i])
				onPath[at] = f.Times > 1 || onPath[at]
			}
		}
	}
	byPlace := map[topology.Position]*setting{}
	var all []*setting
	for i := range form.Calls {
		for j := range form.Calls[i].Layers {
			l := &form.Calls[i].Layers[j]
			for k := range l.Repeats {
				rep := &l.Repeats[k]
				at, to := p.place(l, rep), max(1, least[l.Product])
				if !onPath[at] || rep.Tries.Or(0) <= to {
					continue
				}
				e, editable := p.edit(l, rep, to)
				if !editable {
					continue
				}
				s := byPlace[at]
				if s == nil {
					s = &setting{edit: e, to: to, layer: l, tries: ruled(l, rep).Tries.V}
					byPlace[at] = s
					all = append(all, s)
				}
				s.rules = append(s.rules, rule{&rep.Tries, rep.Tries.V - ruled(l, rep).Tries.V})
			}
		}
	}
	return all
}

// set changes the number wherever the form has it, and returns what it was there.
func (s *setting) set(to int) []topology.Value[int] {
	was := make([]topology.Value[int], len(s.rules))
	for i, r := range s.rules {
		was[i] = *r.tries
		r.tries.V = to + r.more
	}
	return was
}

func (s *setting) restore(was []topology.Value[int]) {
	for i, r := range s.rules {
		*r.tries = was[i]
	}
}

// clone copies a form as far as changes reach.
func clone(f topology.Form) topology.Form {
	f.Calls = slices.Clone(f.Calls)
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
				found[layerName(f.Layer)+": "+times(f.Times)+" tries, "+triesSource(f.Layer)] = true
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
