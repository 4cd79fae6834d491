// Package schematest makes the JSON Schema (draft 2020-12) of a kind of file from its structs, their tags and their
// comments, and checks files against it. It serves tests: a schema is a file that a test keeps in step.
package schematest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate/internal/strictyaml"
)

// Object is a JSON object.
type Object = map[string]any

// Durations is a pattern of how they are written. Whether one is in its limits, x-range, a pattern cannot tell.
const Durations = `\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+`

// negativeDurations is Durations for fields whose limits allow values below zero.
const negativeDurations = `[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+`

// Generator makes schemas.
type Generator struct {
	Docs     map[string]string // descriptions, as Comments reads them
	Defaults reflect.Value     // a struct of the outermost shape with every default written out; may be the zero Value
	Extra    map[string]Object // by path, members of lists as "retryOn[]": what no tag says, over what the tags say

	outermost *strictyaml.Shape
}

// Mapping is the schema of a mapping of this shape.
func (g Generator) Mapping(s *strictyaml.Shape) Object {
	g.outermost = s
	return g.mapping(s)
}

func (g Generator) mapping(s *strictyaml.Shape) Object {
	properties := Object{}
	for _, f := range s.Fields {
		p := g.field(f)
		p["title"] = spaced(f.Key)
		p["description"] = g.describe(s, f)
		if f.Example != "" {
			var example any
			if err := yaml.Unmarshal([]byte(f.Example), &example); err != nil {
				panic(fmt.Sprintf("example of %s: %v", f.Path, err))
			}
			p["examples"] = []any{example}
		}
		properties[f.Key] = p
	}
	return Object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

func (g Generator) field(f *strictyaml.Field) Object {
	p := Object{}
	switch f.Kind {
	case strictyaml.Section:
		p = g.mapping(f.Inner)
	case strictyaml.Table:
		p = Object{"type": "object", "additionalProperties": g.mapping(f.Inner), "maxProperties": strictyaml.MaxNames,
			"propertyNames": Object{"minLength": 1, "maxLength": 253}}
	case strictyaml.Sections:
		p = Object{"type": "array", "items": g.item(f.Inner), "maxItems": strictyaml.MaxMembers}
	case strictyaml.List:
		p["type"], p["items"], p["maxItems"] = "array", g.field(f.Member), strictyaml.MaxMembers
		if f.NotEmpty != "" {
			p["minItems"] = 1
		}
	case strictyaml.Raw:
	default:
		p = scalar(f)
		if g.Defaults.IsValid() {
			if value, ok := g.outermost.Value(g.Defaults, f.Path); ok && (!value.IsZero() || f.ZeroAllowed()) {
				p["default"] = jsonValue(f, value)
			}
		}
	}
	maps.Copy(p, g.Extra[f.Path])
	return p
}

// item is the schema of a list member that is a mapping, or one scalar where the shape has a short form.
func (g Generator) item(s *strictyaml.Shape) Object {
	whole := With(g.mapping(s), "type", "object")
	if f := s.Short(); f != nil {
		return Object{"anyOf": []Object{g.field(f), whole}}
	}
	return whole
}

func scalar(f *strictyaml.Field) Object {
	p := Object{}
	switch f.Kind {
	case strictyaml.Toggle:
		p["type"] = "boolean"
	case strictyaml.Whole:
		p["type"] = "integer"
	case strictyaml.Number:
		p["type"] = "number"
	case strictyaml.Duration:
		pattern := Durations
		if strings.HasPrefix(f.Limits, "-") || strings.HasPrefix(f.Limits, "..") {
			pattern = negativeDurations
		}
		p["type"], p["pattern"], p["x-range"] = "string", "^"+pattern+"$", f.Limits
		if f.ZeroAllowed() { // the only number that needs no unit
			p["anyOf"] = []Object{{"type": "string", "pattern": "^(0|" + pattern + ")$"}, {"const": 0}}
			delete(p, "type")
			delete(p, "pattern")
		}
	case strictyaml.Custom: // a number is a text too
		p["type"] = []string{"string", "number", "boolean"}
	case strictyaml.Word:
		p["type"] = "string"
		if f.Allowed != nil {
			p["enum"] = f.Allowed
		}
	}
	if low, high, ok := strings.Cut(f.Limits, ".."); ok && f.Kind != strictyaml.Duration {
		setNumber(p, "minimum", low)
		setNumber(p, "maximum", high)
	}
	if f.Percent {
		return Object{"anyOf": []Object{p, {"type": "string", "pattern": `^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)%$`}}}
	}
	return p
}

func setNumber(p Object, key, limit string) {
	if limit != "" {
		p[key] = json.Number(limit)
	}
}

func jsonValue(f *strictyaml.Field, v reflect.Value) any {
	switch f.Kind {
	case strictyaml.Duration, strictyaml.Custom:
		return f.Text(v)
	}
	return v.Interface()
}

func (g Generator) describe(s *strictyaml.Shape, f *strictyaml.Field) string {
	name := goName(s, f)
	return strings.Replace(g.Docs[name], path.Ext(name)[1:]+" ", f.Key+" ", 1)
}

// Undescribed lists the fields below s, as "package.Type.Field", that have no comment.
func (g Generator) Undescribed(s *strictyaml.Shape) []string {
	var list []string
	for _, f := range s.Fields {
		if name := goName(s, f); g.Docs[name] == "" {
			list = append(list, name)
		}
		if f.Inner != nil {
			list = append(list, g.Undescribed(f.Inner)...)
		}
	}
	return list
}

// goName is "package.Type.Field" of a key.
func goName(s *strictyaml.Shape, f *strictyaml.Field) string {
	owner := s.Type()
	index := f.Index()
	for _, i := range index[:len(index)-1] {
		owner = owner.Field(i).Type
	}
	return path.Base(owner.PkgPath()) + "." + owner.Name() + "." + owner.Field(index[len(index)-1]).Name
}

// Comments reads the comments of the struct fields in Go files, by "package.Type.Field". Tests among the files are left
// out.
func Comments(t testing.TB, patterns ...string) map[string]string {
	t.Helper()
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %d files", pattern, err, len(found))
		}
		files = append(files, found...)
	}
	docs := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range structure.Fields.List {
				for _, name := range f.Names {
					docs[parsed.Name.Name+"."+spec.Name.Name+"."+name.Name] = plainComment(f.Doc.Text())
				}
			}
			return true
		})
	}
	return docs
}

func plainComment(text string) string {
	var p comment.Parser
	printed := (&comment.Printer{TextWidth: -1}).Text(p.Parse(text))
	return strings.Join(strings.Fields(string(printed)), " ")
}

// spaced writes maxRetries as "max retries".
func spaced(key string) string {
	var b strings.Builder
	for _, r := range key {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// With is a copy of an object with more members: keys and values in turn.
func With(o Object, pairs ...any) Object {
	c := maps.Clone(o)
	for i := 0; i < len(pairs); i += 2 {
		c[pairs[i].(string)] = pairs[i+1]
	}
	return c
}
