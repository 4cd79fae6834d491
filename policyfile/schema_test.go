package policyfile // not policyfile_test: the generator walks the same shapes as the decoder

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate"
)

var update = flag.Bool("update", false, "write schema.json anew")

func TestSchemaIsInStepWithTheStructs(t *testing.T) {
	want, err := json.MarshalIndent(generate(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, Schema()) {
		t.Error("schema.json is out of step with the structs and their comments; run: go test ./policyfile -run Schema -update")
	}
}

func TestSchemaAcceptsTheGoodFiles(t *testing.T) {
	if *update {
		return // the schema that is compiled in is the old one
	}
	for _, file := range glob(t, "testdata/good/*.yaml") {
		if strings.Contains(file, "configmap") || strings.Contains(file, "bomb") {
			continue // the schema is of the plain form; the YAML library alone does not read so many aliases
		}
		if problems := validate(t, file); len(problems) > 0 {
			t.Errorf("%s: %q", file, problems)
		}
	}
}

func TestSchemaRefusesWhatIsStructurallyWrong(t *testing.T) {
	if *update {
		return // the schema that is compiled in is the old one
	}
	for _, name := range []string{"unknown-key", "unknown-top-key", "unknown-section-key", "misplaced-key", "duration-without-unit",
		"duration-word", "negative-duration", "multiplier-below-one", "jitter-factor-outside", "bad-word", "wrong-type", "no-value",
		"null-member", "fallback-status", "condition-unknown", "method-lower-case", "empty-list", "cut-off", "quoted", "window-text", "not-a-mapping", "services-a-list", "service-not-a-mapping", "gateway-retries"} {
		if problems := validate(t, "testdata/"+name+".bad.yaml"); len(problems) == 0 {
			t.Errorf("%s.bad.yaml conforms to the schema", name)
		}
	}
}

// What an editor marks by the schema is what Parse refuses, and nothing else.
func TestSchemaAndParseAgreeOnWordsAndDurations(t *testing.T) {
	if *update {
		return // the schema that is compiled in is the old one
	}
	conditions := []string{"503", "400", "599", "399", "600", "4xx", "5xx", "3xx", "5XX", "gateway-error", "connect-failure", "reset",
		"timeout", "error", "errors", "retriable-4xx", ""}
	durations := []string{"0", "0s", "5", "5s", "1.5", "1.5s", ".5s", "5.s", "+5s", "-5s", "1m30s", "1d", "1µs", "soon", "s", "."}
	for key, values := range map[string][]string{
		"retryOn: [%q]": conditions, "neverRetryOn: [%q]": conditions, "retryOn: %s": {"[]", "[reset]", "[503]", "reset"},
		"neverRetryOn: %s": {"[]"}, "retryMethods: %s": {"[]", "[GET]"}, "retryMethods: [%q]": {"GET", "PUT", "put", "Put", "X-Y", "A B", ""},
		"timeout: %s": durations, "timeout: %q": durations, "initialDelay: %s": {"5", "5ms", "1.5"}, "backoff: %s": {"linear", "Linear"},
		"circuitBreaker: {slidingWindow: %s}": {"100", "10s", "1m30s", "0", "-1", "ten", "10 calls", "1000000", "1000001", `"100"`, `""`},
	} {
		for _, value := range values {
			text := fmt.Sprintf("services: {a: {"+key+"}}", value)
			_, err := Parse("p.yaml", []byte(text))
			if problems := validateText(t, "p.yaml", []byte(text)); (len(problems) == 0) != (err == nil) {
				t.Errorf("%s: the schema says %q, Parse %v", text, problems, err)
			}
		}
	}
}

// TestSchemaDescribesEveryKey keeps the published reference complete.
func TestSchemaDescribesEveryKey(t *testing.T) {
	docs := fieldComments(t)
	var check func(s *shape)
	check = func(s *shape) {
		for _, f := range s.fields {
			if docs[f.goName(s)] == "" {
				t.Errorf("%s has no comment", f.goName(s))
			}
			if f.inner != nil {
				check(f.inner)
			}
		}
	}
	check(policyShape)
}

type object = map[string]any

// generate makes the schema of a policy file.
func generate(t *testing.T) object {
	g := generator{docs: fieldComments(t)}
	full := abate.DefaultPolicy().WithDefaults()
	g.full = &full
	policy := g.mapping(policyShape)
	policy["title"] = "policy"
	policy["description"] = "What is done about one dependency. A key left out is inherited: a service from defaults, defaults from the built-in policy."
	ref := object{"$ref": "#/$defs/policy"}
	return object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         "https://github.com/abate-go/abate/policyfile/schema.json",
		"title":       "Abate policy file",
		"description": "Retry, budget, circuit breaker, bulkhead and hedge policies of the services that are called. Rules between fields are checked by abate check.",
		"type":        "object",
		"properties": object{
			"defaults":       with(ref, "type", "object", "title", "defaults", "description", "The policy of services that are not listed, and what listed ones inherit. It has no upstreams and routes."),
			"services":       object{"title": "services", "description": "The policy of each service by its name.", "type": "object", "additionalProperties": ref, "maxProperties": MaxServices, "propertyNames": object{"minLength": 1, "maxLength": 253}},
			"gatewayRetries": object{"title": "gateway retries", "description": "Whether a gateway in front of the services may retry too. Default: false.", "type": "boolean", "default": false},
		},
		"patternProperties":    object{"^x-.": object{"description": "Not looked at: a place for YAML anchors."}},
		"additionalProperties": false,
		"anyOf":                []object{{"required": []string{"defaults"}}, {"required": []string{"services"}}, {"required": []string{"gatewayRetries"}}},
		"$defs":                object{"policy": policy},
	}
}

type generator struct {
	docs map[string]string // by "package.Type.Field"
	full *abate.Policy     // the built-in policy, every default written out
}

func (g generator) mapping(s *shape) object {
	properties := object{}
	for _, f := range s.fields {
		p := g.field(f)
		p["title"] = spaced(f.key)
		p["description"] = g.describe(s, f)
		if f.example != "" {
			var example any
			if err := yaml.Unmarshal([]byte(f.example), &example); err != nil {
				panic(fmt.Sprintf("example of %s: %v", f.path, err))
			}
			p["examples"] = []any{example}
		}
		properties[f.key] = p
	}
	return object{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

func (g generator) field(f *field) object {
	p := object{}
	switch f.kind {
	case section:
		return g.mapping(f.inner)
	case sections:
		return object{"type": "array", "items": with(g.mapping(f.inner), "type", "object"), "maxItems": 1000}
	case words:
		p["type"], p["items"], p["maxItems"] = "array", object{"type": "string"}, 1000
		if pattern := patterns[f.path]; pattern != "" {
			p["items"] = object{"type": "string", "pattern": pattern}
		}
		if f.emptyMeansDefault() {
			p["minItems"] = 1
		}
		return p
	case toggle:
		p["type"] = "boolean"
	case whole:
		p["type"] = "integer"
	case number:
		p["type"] = "number"
	case duration:
		p["type"], p["pattern"], p["x-range"] = "string", "^"+durations+"$", f.limits
		if f.zeroAllowed() { // the only number that needs no unit
			p["anyOf"] = []object{{"type": "string", "pattern": "^(0|" + durations + ")$"}, {"const": 0}}
			delete(p, "type")
			delete(p, "pattern")
		}
	case custom: // a number is a text too
		p["type"], p["pattern"], p["minimum"], p["maximum"] = []string{"string", "integer"}, patterns[f.path], 1, 1_000_000
	case word:
		p["type"] = "string"
		if f.allowed != nil {
			p["enum"] = f.allowed
		}
	}
	if low, high, ok := strings.Cut(f.limits, ".."); ok && f.kind != duration {
		setNumber(p, "minimum", low)
		setNumber(p, "maximum", high)
	}
	if value, ok := at(g.full, f.path); ok && (!value.IsZero() || f.zeroAllowed()) {
		p["default"] = jsonValue(f, value)
	}
	return p
}

// durations is how they are written. Whether one is in its limits, x-range, a pattern cannot tell.
const durations = `\+?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+`

const conditions = `^([45][0-9][0-9]|4xx|5xx|gateway-error|connect-failure|reset|timeout|error)$`

// patterns is what Parse takes where no tag says it.
var patterns = map[string]string{
	"retryOn":                      conditions,
	"neverRetryOn":                 conditions,
	"retryMethods":                 `^[^a-z \t\r\n]+$`,
	"circuitBreaker.slidingWindow": "^([1-9][0-9]*|" + durations + ")$",
}

func setNumber(p object, key, limit string) {
	if limit != "" {
		p[key] = json.Number(limit)
	}
}

func jsonValue(f *field, v reflect.Value) any {
	switch f.kind {
	case duration:
		return shortDuration(time.Duration(v.Int()))
	case custom:
		return f.text(v)
	}
	return v.Interface()
}

func (g generator) describe(s *shape, f *field) string {
	name := f.goName(s)
	return strings.Replace(g.docs[name], path.Ext(name)[1:]+" ", f.key+" ", 1)
}

// goName is "package.Type.Field" of a key.
func (f *field) goName(s *shape) string {
	owner := s.typ
	for _, i := range f.index[:len(f.index)-1] {
		owner = owner.Field(i).Type
	}
	return path.Base(owner.PkgPath()) + "." + owner.Name() + "." + owner.Field(f.index[len(f.index)-1]).Name
}

// fieldComments reads the comments of all struct fields a policy is made of.
func fieldComments(t *testing.T) map[string]string {
	docs := map[string]string{}
	for _, file := range slices.Concat(glob(t, "../*.go"), glob(t, "../policy/*/*.go")) {
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

func with(o object, pairs ...any) object {
	c := object{}
	for k, v := range o {
		c[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		c[pairs[i].(string)] = pairs[i+1]
	}
	return c
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", pattern, err, len(files))
	}
	return files
}
