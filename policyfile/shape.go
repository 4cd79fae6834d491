package policyfile

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/abate-go/abate"
)

// kind says how a field is written in the file.
type kind uint8

const (
	section  kind = iota // a mapping
	sections             // a list of mappings
	words                // a list of text
	word                 // text
	toggle               // true or false
	whole                // a whole number
	number               // a number
	duration             // text such as 100ms
	custom               // text that the type reads itself
)

// field is one key of the file: a field of abate.Policy or of a struct in it, and what its tags say.
type field struct {
	key     string
	path    string // from the policy: "circuitBreaker.rampUp"; of a list member "routes[].path"
	index   []int  // for reflect.Value.FieldByIndex, from the struct it stands in
	typ     reflect.Type
	kind    kind
	limits  string   // the range tag
	allowed []string // the enum tag
	example string
	inner   *shape // of section and sections
	member  *field // of words
}

// shape is the keys of one mapping.
type shape struct {
	typ    reflect.Type
	fields []*field
	keys   []string
	byKey  map[string]*field
}

var policyShape = shapeOf(reflect.TypeFor[abate.Policy](), "")

func shapeOf(t reflect.Type, prefix string) *shape {
	s := &shape{typ: t, byKey: map[string]*field{}}
	s.add(t, nil, prefix)
	return s
}

func (s *shape) add(t reflect.Type, index []int, prefix string) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int(nil), index...), i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Anonymous && key == "":
			s.add(f.Type, at, prefix)
		case key != "" && key != "-":
			s.fields = append(s.fields, newField(f, key, prefix, at))
			s.keys = append(s.keys, key)
			s.byKey[key] = s.fields[len(s.fields)-1]
		}
	}
}

func newField(f reflect.StructField, key, prefix string, index []int) *field {
	n := &field{key: key, path: prefix + key, index: index, typ: f.Type, limits: f.Tag.Get("range"), example: f.Tag.Get("example")}
	if list := f.Tag.Get("enum"); list != "" {
		n.allowed = strings.Split(list, "|")
	}
	switch t := f.Type; {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		n.kind = custom
	case t == reflect.TypeFor[time.Duration]():
		n.kind = duration
	case t.Kind() == reflect.Struct:
		n.kind, n.inner = section, shapeOf(t, n.path+".")
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		n.kind, n.inner = sections, shapeOf(t.Elem(), n.path+"[].")
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		n.kind = words
		n.member = &field{key: key, path: n.path + "[]", typ: t.Elem(), kind: word, example: n.example}
	case t.Kind() == reflect.String:
		n.kind = word
	case t.Kind() == reflect.Bool:
		n.kind = toggle
	case t.Kind() == reflect.Int:
		n.kind = whole
	case t.Kind() == reflect.Float64:
		n.kind = number
	default:
		panic(fmt.Sprintf("policyfile: the file has no way to write %s, a %s", n.path, t))
	}
	return n
}

// zeroAllowed tells whether an explicit zero is in the field's limits.
func (f *field) zeroAllowed() bool {
	if f.allowed != nil || f.kind == custom {
		return false
	}
	if f.limits == "" {
		return true
	}
	low, high := abate.ParseRange(f.limits)
	return low <= 0 && high >= 0
}

// emptyMeansDefault tells whether a guard takes an empty list for one that is not set.
func (f *field) emptyMeansDefault() bool { return f.path == "retryOn" || f.path == "retryMethods" }

// mend says what may be written for the field, with an example.
func (f *field) mend() string {
	parts := make([]string, 0, 2)
	switch {
	case f.allowed != nil:
		parts = append(parts, "allowed: "+strings.Join(f.allowed, ", "))
	case f.limits != "":
		parts = append(parts, "allowed: "+abate.DescribeRange(f.limits))
	case f.kind == toggle:
		parts = append(parts, "allowed: true or false")
	}
	if f.example != "" {
		parts = append(parts, "for example "+f.example)
	}
	return strings.Join(parts, "; ")
}

// mendNothing is mend for a key without a value.
func (f *field) mendNothing() string {
	return strings.TrimSuffix("write "+f.noun()+" or remove the key; "+f.mend(), "; ")
}

// each calls visit for every field below s, sections before their members.
func (s *shape) each(visit func(*field)) {
	for _, f := range s.fields {
		visit(f)
		if f.inner != nil {
			f.inner.each(visit)
		}
	}
}
