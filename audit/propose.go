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

// setting is one number in a file that says how often something is tried, and the places of the form where it holds.
type setting struct {
	tries  topology.Value[int]
	to     int
	layers []*topology.Layer
}

// Propose looks for the fewest numbers to make smaller so that one request becomes no more than a few attempts: it
// takes the one first that shortens the worst path most, and goes on until the path is short or no number is left.
// Retries that stand nearest to the failure are kept where there is a choice. It adds the changes to the result, with
// a diff of the files; nothing is written.
func (r *Result) Propose(files []importer.File, o lint.Options) {
	data := make(map[string][]byte, len(files))
	for _, f := range files {
		data[f.Name] = f.Data
	}
	form := clone(r.Form)
	w := r.Worst
	for w != nil && w.Most > enough && len(w.Cycle) == 0 {
		best, after := r.step(&form, w, data, o)
		if best == nil {
			break
		}
		e, _ := triesEdit(data, best.tries, best.to)
		e.Why = fmt.Sprintf("%s: %d tries become %d", layerName(best.layers[0]), best.tries.V, best.to)
		r.Changes = append(r.Changes, e)
		best.set(best.to)
		w = after
	}
	r.After, r.fixed = w, form
	if w != nil && w.Most > enough {
		r.Left = unwritten(w)
	}
	changed, _ := Apply(files, r.Changes)
	for i := range files {
		r.Diff += Diff(files[i].Name, files[i].Data, changed[i].Data)
	}
}

// step returns the change of the worst path's layers that leaves the shortest worst path, and that path.
func (r *Result) step(form *topology.Form, w *Worst, data map[string][]byte, o lint.Options) (*setting, *Worst) {
	var best *setting
	var after *Worst
	for _, s := range settings(form, w, data) {
		s.set(s.to)
		next := worst(lint.Amplification(*form, o))
		s.set(s.tries.V)
		if next == nil || after == nil && next.Most < w.Most || after != nil && next.Most < after.Most {
			best, after = s, next
			if next == nil {
				break
			}
		}
	}
	return best, after
}

// settings returns the numbers on a path that can be made smaller, the outermost first.
func settings(form *topology.Form, w *Worst, data map[string][]byte) []*setting {
	onPath := map[topology.Position]bool{}
	for _, h := range w.Hops {
		for _, f := range h.Factors {
			for _, rep := range f.Layer.Repeats {
				onPath[rep.Tries.At] = f.Times > 1 || onPath[rep.Tries.At]
			}
		}
	}
	byPlace := map[topology.Position]*setting{}
	var all []*setting
	for i := range form.Calls {
		for j := range form.Calls[i].Layers {
			l := &form.Calls[i].Layers[j]
			for _, rep := range l.Repeats {
				to := max(1, least[l.Product])
				_, editable := triesEdit(data, rep.Tries, to)
				if !editable || !onPath[rep.Tries.At] || rep.Tries.V <= to {
					continue
				}
				s := byPlace[rep.Tries.At]
				if s == nil {
					s = &setting{tries: rep.Tries, to: to}
					byPlace[rep.Tries.At] = s
					all = append(all, s)
				}
				if !slices.Contains(s.layers, l) {
					s.layers = append(s.layers, l)
				}
			}
		}
	}
	return all
}

// set changes the number wherever the form has it.
func (s *setting) set(to int) {
	for _, l := range s.layers {
		for i := range l.Repeats {
			if l.Repeats[i].Tries.At == s.tries.At {
				l.Repeats[i].Tries.V = to
			}
		}
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
