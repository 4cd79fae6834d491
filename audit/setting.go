package audit

import (
	"fmt"
	"slices"
	"time"

	"github.com/abate-go/abate/topology"
)

// setting is one number in a file that says how often something is tried, or that the file leaves out, and the places
// of the form where it holds.
type setting struct {
	edit   Edit
	beside []Edit // what has to go with it
	tries  int    // before
	to     int
	layer  *topology.Layer // one that it is of
	rules  []rule
}

// rule is a number of tries in a form, and how many more they are than the file says.
type rule struct {
	tries *topology.Value[int]
	more  int
}

// merged adds edits to others. Of two at one place the later one counts, and what is removed is not edited.
func merged(all, more []Edit) []Edit {
	for _, e := range more {
		all = slices.DeleteFunc(all, func(old Edit) bool { return old.At == e.At || e.removes(old.At) })
		all = append(all, e)
	}
	return all
}

// removes reports whether an edit takes away what stands at a place.
func (e Edit) removes(at topology.Position) bool {
	return e.New == "" && e.At.File == at.File && e.At.Line == at.Line && e.At.Column <= at.Column &&
		at.Column < e.At.Column+len([]rune(e.Old))
}

// changes are the edits of a setting, with their reasons.
func (s *setting) changes() []Edit {
	e := s.edit
	e.Why = fmt.Sprintf("%s: %s tries become %d", layerName(s.layer), times(float64(s.tries)), s.to)
	all := []Edit{e}
	for _, b := range s.beside {
		b.Why, b.With = layerName(s.layer)+": goes with it", true
		all = append(all, b)
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

// make makes changes in a form and returns their edits.
func (p *plan) make(form *topology.Form, change []*setting) []Edit {
	var all []Edit
	for _, s := range change {
		s.set(s.to)
		if s.take(form) {
			p.taking[s.edit.At] = true
		}
		all = append(all, s.changes()...)
	}
	return all
}

// take takes the limits out of a form that go with the number, and reports whether there are any.
func (s *setting) take(form *topology.Form) (taken bool) {
	if len(s.beside) == 0 {
		return false
	}
	edits := s.changes()
	removed := func(at topology.Position) bool {
		return slices.ContainsFunc(edits, func(e Edit) bool { return e.removes(at) })
	}
	eachLayer(form, func(l *topology.Layer) {
		for _, v := range []*topology.Value[time.Duration]{&l.PerTry, &l.Overall} {
			if stands(*v) && removed(v.At) {
				*v, taken = topology.Value[time.Duration]{}, true
			}
		}
	})
	return taken
}

func (s *setting) restore(was []topology.Value[int]) {
	for i, r := range s.rules {
		*r.tries = was[i]
	}
}
