package policyfile

import (
	"reflect"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
)

// Setting is one key of a policy: a value, or a section with its parts.
type Setting struct {
	Key  string // with those of its sections: "retryBudget.ratio"
	Text string // as YAML on one line
	// Without is the policy without the key, as if it had its zero value; what follows from others is in it.
	Without Policy
	Parts   []Setting
}

// Settings returns the keys of the policy that change it: for each, the policy without it is another one. It takes a
// copy of the policy for each.
func (p *Policy) Settings() []Setting {
	full := p.WithDefaults()
	return settings(p, &full, policyShape, nil)
}

func settings(p, full *Policy, shape *strictyaml.Shape, at []int) []Setting {
	var all []Setting
	for _, f := range shape.Fields {
		if f.Key == "preset" {
			continue // of the entry, not of the policy
		}
		index := append(at[:len(at):len(at)], f.Index()...)
		e := entry{Policy: p.own()}
		value := reflect.ValueOf(&e).Elem().FieldByIndex(index)
		if value.IsZero() {
			continue
		}
		s := Setting{Key: f.Path, Text: onOneLine(f, value)}
		if f.Kind == strictyaml.Section {
			s.Parts = settings(p, full, f.Inner, index)
		}
		value.SetZero()
		if s.Without = e.WithDefaults(); !reflect.DeepEqual(&s.Without, full) {
			all = append(all, s)
		}
	}
	return all
}

// onOneLine writes a value as YAML, without the keys that are not set.
func onOneLine(f *strictyaml.Field, v reflect.Value) string {
	var words []string
	switch f.Kind {
	case strictyaml.Sections:
		for i := range v.Len() {
			words = append(words, inBraces(f.Inner, v.Index(i)))
		}
		return "[" + strings.Join(words, ", ") + "]"
	case strictyaml.Section:
		return inBraces(f.Inner, v)
	}
	return f.Text(v)
}

func inBraces(s *strictyaml.Shape, v reflect.Value) string {
	var words []string
	for _, f := range s.Fields {
		if value := v.FieldByIndex(f.Index()); !value.IsZero() {
			words = append(words, f.Key+": "+onOneLine(f, value))
		}
	}
	return "{" + strings.Join(words, ", ") + "}"
}
