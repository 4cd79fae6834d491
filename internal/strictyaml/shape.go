package strictyaml

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/check"
)

// Kind says how a field is written in the file.
type Kind uint8

// The kinds of fields.
const (
	Section  Kind = iota // a mapping
	Table                // a mapping from names to mappings
	Sections             // a list of mappings
	List                 // a list of one of the kinds below
	Word                 // text
	Toggle               // true or false
	Whole                // a whole number
	Number               // a number
	Duration             // text such as 100ms
	Custom               // text that the type reads itself
	Raw                  // anything
)

// Field is one key of the file: a field of a struct, and what its tags say.
type Field struct {
	Key string
	// from the outermost struct: "circuitBreaker.rampUp"; below a list member "routes[].path", in a table
	// "services[].queue"
	Path    string
	Kind    Kind
	Limits  string   // the range tag; without it "0s.." of durations and "0.." of uint64
	Allowed []string // the enum tag
	Example string
	Percent bool   // a Number that may be a percentage
	Inner   *Shape // of Section, Table and Sections
	Member  *Field // of List

	// Longest is how many bytes its text may have; 0 means 1024.
	Longest int
	// NotEmpty, when it is set, is the fix for an empty list, which would mean the default.
	NotEmpty string

	index []int // for reflect.Value.FieldByIndex, from the struct it stands in
}

// Shape is the keys of one mapping.
type Shape struct {
	Fields []*Field

	typ    reflect.Type
	prefix string // of the paths of its fields
	keys   []string
	byKey  map[string]*Field
	short  *Field // that a scalar in place of the mapping sets; nil when there is none
	member *Shape // of the list member that the mapping is a part of, or of the outermost struct
}

// ShapeOf is the shape of a struct type. It panics for a type that a file cannot hold.
func ShapeOf(t reflect.Type) *Shape { return newShape(t, "", nil) }

func newShape(t reflect.Type, prefix string, member *Shape) *Shape {
	s := &Shape{typ: t, prefix: prefix, byKey: map[string]*Field{}, member: member}
	if member == nil {
		s.member = s
	}
	s.add(t, nil)
	return s
}

func (s *Shape) add(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Anonymous && key == "":
			s.add(f.Type, at)
		case key != "" && key != "-":
			n := s.newField(f, key)
			n.index = at
			s.Fields = append(s.Fields, n)
			s.keys = append(s.keys, key)
			s.byKey[key] = n
			if f.Tag.Get("short") == "true" {
				s.short = n
			}
		}
	}
}

func (s *Shape) newField(f reflect.StructField, key string) *Field {
	n := &Field{Key: key, Path: s.prefix + key, Limits: f.Tag.Get("range"), Example: f.Tag.Get("example")}
	if list := f.Tag.Get("enum"); list != "" {
		n.Allowed = strings.Split(list, "|")
	}
	switch t := f.Type; {
	case n.scalarOf(t):
		n.Percent = n.Kind == Number && f.Tag.Get("percent") == "true"
	case t == reflect.TypeFor[yaml.Node](), t == reflect.TypeFor[*yaml.Node]():
		n.Kind = Raw
	case t.Kind() == reflect.Struct:
		n.Kind, n.Inner = Section, newShape(t, n.Path+".", s.member)
	case t.Kind() == reflect.Slice:
		n.list(t.Elem(), f.Tag.Get("keyed") == "true")
	default:
		panic(fmt.Sprintf("strictyaml: the file has no way to write %s, a %s", n.Path, t))
	}
	return n
}

// list makes n the kind for a slice of this type.
func (n *Field) list(t reflect.Type, keyed bool) {
	member := *n
	member.Path += "[]"
	switch {
	case member.scalarOf(t):
		n.Kind, n.Member = List, &member
	case t.Kind() != reflect.Struct:
		panic(fmt.Sprintf("strictyaml: the file has no way to write %s, a list of %s", n.Path, t))
	default:
		n.Kind, n.Inner = Sections, newShape(t, n.Path+"[].", nil)
		if keyed {
			if name, ok := t.FieldByName("Name"); !ok || name.Type.Kind() != reflect.String {
				panic(fmt.Sprintf("strictyaml: %s is keyed, but %s has no text field Name", n.Path, t))
			}
			n.Kind = Table
		}
	}
}

// scalarOf makes n the kind for a type that is written as one scalar, and reports whether t is such a type.
func (n *Field) scalarOf(t reflect.Type) bool {
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		n.Kind = Custom
	case t == reflect.TypeFor[time.Duration]():
		n.Kind = Duration
		if n.Limits == "" {
			n.Limits = "0s.."
		}
	case t.Kind() == reflect.String:
		n.Kind = Word
	case t.Kind() == reflect.Bool:
		n.Kind = Toggle
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64, t.Kind() == reflect.Uint64:
		n.Kind = Whole
		if n.Limits == "" && t.Kind() == reflect.Uint64 {
			n.Limits = "0.."
		}
	case t.Kind() == reflect.Float64:
		n.Kind = Number
	default:
		return false
	}
	return true
}

// Type is the struct type whose shape it is.
func (s *Shape) Type() reflect.Type { return s.typ }

// Short is the field that a scalar in place of the mapping sets, or nil.
func (s *Shape) Short() *Field { return s.short }

// Index is where the field stands in the struct of its shape, for reflect.Value.FieldByIndex.
func (f *Field) Index() []int { return f.index }

// Find is the field with a path such as "circuitBreaker.rampUp", or nil. It does not look into lists.
func (s *Shape) Find(path string) *Field {
	var found *Field
	for key := range strings.SplitSeq(path, ".") {
		if s == nil || s.byKey[key] == nil {
			return nil
		}
		found = s.byKey[key]
		if s = nil; found.Kind == Section {
			s = found.Inner
		}
	}
	return found
}

// Value is the value, in v of the shape's type, of the field that Find finds.
func (s *Shape) Value(v reflect.Value, path string) (value reflect.Value, ok bool) {
	if s.Find(path) == nil {
		return reflect.Value{}, false
	}
	for key := range strings.SplitSeq(path, ".") {
		v, s = v.FieldByIndex(s.byKey[key].index), s.byKey[key].Inner
	}
	return v, true
}

// ZeroAllowed reports whether an explicit zero is in the field's limits.
func (f *Field) ZeroAllowed() bool { return f.Allowed == nil && f.Kind != Custom && f.holds(0) }

// holds reports whether v, in the field's unit, is in its limits.
func (f *Field) holds(v float64) bool {
	if f.Limits == "" {
		return true
	}
	low, high := check.ParseRange(f.Limits)
	from, to, _ := strings.Cut(f.Limits, "..")
	return (from == "" || v >= low) && (to == "" || v <= high)
}

// Fix says what may be written for the field, with an example.
func (f *Field) Fix() string {
	parts := make([]string, 0, 2)
	switch {
	case f.Allowed != nil:
		parts = append(parts, "allowed: "+strings.Join(f.Allowed, ", "))
	case f.Limits != "":
		parts = append(parts, "allowed: "+check.DescribeRange(f.Limits))
	case f.Kind == Toggle:
		parts = append(parts, "allowed: true or false")
	}
	if f.Example != "" {
		parts = append(parts, "for example "+f.Example)
	}
	return strings.Join(parts, "; ")
}

// mendNothing is Fix for a key without a value.
func (f *Field) mendNothing() string {
	return strings.TrimSuffix("write "+f.noun()+" or remove the key; "+f.Fix(), "; ")
}

// noun is what the field wants to be.
func (f *Field) noun() string {
	switch f.Kind {
	case Section, Table:
		return "a mapping"
	case Sections, List:
		return "a list"
	case Toggle:
		return "true or false"
	case Whole:
		return "a whole number"
	case Number:
		if f.Percent {
			return "a number or a percentage"
		}
		return "a number"
	case Duration:
		return "a duration"
	}
	return "text"
}

// each calls visit for every field below s, sections before their members.
func (s *Shape) each(visit func(*Field)) {
	for _, f := range s.Fields {
		visit(f)
		if f.Inner != nil {
			f.Inner.each(visit)
		}
	}
}
