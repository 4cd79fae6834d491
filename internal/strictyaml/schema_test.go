package strictyaml_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/internal/strictyaml/schematest"
)

func schema(t *testing.T) []byte {
	t.Helper()
	g := schematest.Generator{Docs: map[string]string{"strictyaml_test.plant.Title": "Title names the plant."},
		Defaults: reflect.ValueOf(plant{Runs: 100})}
	root := g.Mapping(strictyaml.ShapeOf(reflect.TypeFor[plant]()))
	root["patternProperties"] = schematest.Object{"^x-.": schematest.Object{}}
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What an editor marks by the schema is what Decode refuses, and nothing else, but for limits of durations and names.
func TestSchemaAndDecodeAgree(t *testing.T) {
	made := schema(t)
	if problems := schematest.Validate(t, made, "good", []byte(good)); len(problems) > 0 {
		t.Errorf("the good file: %q", problems)
	}
	for key, values := range map[string][]string{
		"title: %s": {"a", "1", "[a]", "~"}, "runs: %s": {"1", "0", "1.5", "a"}, "seed: %s": {"0", "-1"},
		"share: %s":  {"0.3", "30%", `"30%"`, "30 %", `"%"`, "x", "2", ".5%", "1e1%", "0x1p3%"},
		"factor: %s": {"1", "30%", "0.5"}, "wait: %s": {"1s", "0", "-1s", "1"}, "skew: %s": {"-1s", "0", "1s", "1"},
		"marks: %s": {"[1s, 0]", "[]", "1s", "[1]", "[-1s]"}, "expect: %s": {"[a < b]", "[]", "a < b", "[[]]", "[~]"},
		"services: %s": {
			"{}", "{a: }", "{a: {}}", "{a: 1}", "[]", "~", "{a: {workers: 0}}", "{a: {wrkers: 1}}",
		},
		"services: {a: {calls: %s}}": {"[b]", "[{to: b}, c]", "[1]", "[{}]", "[[b]]", "[{too: b}]", "b"},
		"policy: %s":                 {"{a: b}", "a", "[1]", "1"}, "mode: %s": {"open", "opened"}, "fast: %s": {"true", "1"},
	} {
		for _, value := range values {
			text := fmt.Sprintf(key, value)
			var p plant
			_, errs := form.Decode("p.yaml", []byte(text), &p)
			if problems := schematest.Validate(t, made, "p.yaml", []byte(text)); (len(problems) == 0) != (errs == nil) {
				t.Errorf("%s: the schema says %q, Decode %v", text, problems, errs)
			}
		}
	}
}

func TestSchemaHasCommentsDefaultsAndExamples(t *testing.T) {
	var root struct{ Properties map[string]map[string]any }
	if err := json.Unmarshal(schema(t), &root); err != nil {
		t.Fatal(err)
	}
	title, runs := root.Properties["title"], root.Properties["runs"]
	if title["description"] != "title names the plant." || title["title"] != "title" || runs["default"] != 100.0 ||
		fmt.Sprint(runs["examples"]) != "[100]" {
		t.Errorf("%v\n%v", title, runs)
	}
}

func TestUndescribedFieldsAreFound(t *testing.T) {
	s := strictyaml.ShapeOf(reflect.TypeFor[plant]())
	g := schematest.Generator{Docs: schematest.Comments(t, "*.go", "schematest/*.go")}
	all := g.Undescribed(s)
	if !slices.Contains(all, "strictyaml_test.plant.Title") || !slices.Contains(all, "strictyaml_test.queue.Limit") ||
		len(all) != 34 {
		t.Errorf("%d: %q", len(all), all)
	}
	g.Docs = map[string]string{"strictyaml_test.queue.Limit": "is its length"}
	if got := g.Undescribed(s); len(got) != len(all)-1 {
		t.Errorf("%q", got)
	}
}

func TestValuesAreWrittenAsTheyAreRead(t *testing.T) {
	p, _ := decode(t, good)
	s, v := strictyaml.ShapeOf(reflect.TypeFor[plant]()), reflect.ValueOf(p)
	for path, want := range map[string]string{
		"title": "north", "seed": "18446744073709551615", "offset": "-9223372036854775808", "share": "0.3", "wait": "1m30s",
		"fast": "true",
		"tags": "[a, b]", "marks": "[1s, 0s]", "expect": `["recovery < 10s", "goodput(after) > 95%"]`, "first": "1 > 0",
	} {
		value, ok := s.Value(v, path)
		if got := s.Find(path).Text(value); !ok || got != want {
			t.Errorf("%s is written %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"", "no", "title.x", "services.workers", "services[].workers", "limits.no"} {
		if _, ok := s.Value(v, path); ok || s.Find(path) != nil {
			t.Errorf("found %q", path)
		}
	}
}
