package topology

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"

	"github.com/abate-go/abate/internal/strictyaml"
	"go.yaml.in/yaml/v3"
)

var form = strictyaml.Form{Noun: "topology", Key: "perRequest",
	Least: "at least one call, for example: calls: [{from: checkout, to: orders}]",
	Scale: 64} // an audit writes the form of a whole company, and reads it again

// Parse reads the YAML form. file stands in errors and in the positions of values that name no other place. The error
// has every mistake, each with its place and what would be right.
func Parse(file string, data []byte) (Form, error) {
	return ParseAt(file, data, func(line, column int) Position { return Position{file, line, column} })
}

// ParseAt is Parse for a text that stands inside another file: place returns where a line and column of data, from 1,
// stand in it. The places of errors are those in data.
func ParseAt(file string, data []byte, place func(line, column int) Position) (Form, error) {
	var f Form
	places, errs := form.Decode(file, data, &f)
	if len(errs) == 0 {
		errs = append(f.uncounted(file, places.Place), f.unspoken(file, places.Place)...)
	}
	fill(reflect.ValueOf(&f).Elem(), "", func(path string) Position { return place(places.Place(path)) })
	if len(errs) > 0 {
		return f, errs
	}
	return f, nil
}

// uncounted returns the rules that do not say how many tries there are: they would count as no repeats at all. Only who
// writes them can know whether that is meant.
func (f *Form) uncounted(file string, place func(path string) (line, column int)) (errs strictyaml.Errors) {
	check := func(l *Layer, path string) {
		for i := range l.Repeats {
			if r := &l.Repeats[i]; r.Tries.Origin == Absent {
				field := path + ".repeats[" + strconv.Itoa(i) + "]"
				line, column := place(field)
				errs = append(errs, strictyaml.Error{File: file, Line: line, Col: column, Field: field,
					Problem: "a rule says how many tries there are in all",
					Fix:     "write for example tries: 3, or tries: unknown"})
			}
		}
	}
	for i := range f.Calls {
		for j := range f.Calls[i].Layers {
			check(&f.Calls[i].Layers[j], "calls["+strconv.Itoa(i)+"].layers["+strconv.Itoa(j)+"]")
		}
	}
	for i := range f.Policies {
		check(&f.Policies[i].Layer, "policies["+strconv.Itoa(i)+"].layer")
	}
	return errs
}

// unspoken returns what is said to be spoken and is not known: it would count as gRPC, and nobody would hear of it.
func (f *Form) unspoken(file string, place func(path string) (line, column int)) (errs strictyaml.Errors) {
	check := func(v Value[string], path string) {
		what, known := v.Get()
		if known && !slices.Contains([]string{SpeaksGRPC, SpeaksHTTP, SpeaksOther}, what) {
			line, column := place(path + ".speaks")
			errs = append(errs, strictyaml.Error{File: file, Line: line, Col: column, Field: path + ".speaks",
				Problem: strconv.Quote(what) + " is nothing that a service speaks", Fix: "write grpc, http or other"})
		}
	}
	for i := range f.Services {
		check(f.Services[i].Speaks, "services["+strconv.Itoa(i)+"]")
	}
	for i := range f.Calls {
		for j := range f.Calls[i].Layers {
			check(f.Calls[i].Layers[j].Speaks, "calls["+strconv.Itoa(i)+"].layers["+strconv.Itoa(j)+"]")
		}
	}
	for i := range f.Policies {
		check(f.Policies[i].Layer.Speaks, "policies["+strconv.Itoa(i)+"].layer")
	}
	return errs
}

// located is a Value of any type.
type located interface{ setPlace(Position) }

func (v *Value[T]) setPlace(at Position) {
	if v.Origin == Written && v.At.IsZero() {
		v.At = at
	}
}

// fill gives each value that has no place the one of its key.
func fill(v reflect.Value, path string, place func(string) Position) {
	if v.CanAddr() {
		if l, ok := v.Addr().Interface().(located); ok {
			l.setPlace(place(path))
			return
		}
		if p, ok := v.Addr().Interface().(*Position); ok {
			if p.IsZero() && path != "" {
				*p = place(parent(path))
			}
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			key := v.Type().Field(i).Tag.Get("yaml")
			if at := bytes.IndexByte([]byte(key), ','); at >= 0 {
				key = key[:at]
			}
			if path != "" {
				key = path + "." + key
			}
			fill(v.Field(i), key, place)
		}
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i), path+"["+strconv.Itoa(i)+"]", place)
		}
	}
}

func parent(path string) string {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '.' {
			return path[:i]
		}
	}
	return path
}

// YAML returns the form as Parse reads it, each value with its source.
func (f Form) YAML() []byte {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(f); err != nil {
		panic("topology: " + err.Error()) // every field is a scalar, a list or a struct
	}
	return b.Bytes()
}

// Error is one mistake in a file, and where it stands.
type Error = strictyaml.Error

// Errors is every mistake in a file, in the order of the file.
type Errors = strictyaml.Errors
