package scenario_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/internal/strictyaml/schematest"
	"github.com/abate-go/abate/sim/scenario"
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
	if !bytes.Equal(want, scenario.Schema()) {
		t.Error("schema.json is out of step with the structs and their comments; run: go test ./sim/scenario -run Schema " +
			"-update")
	}
}

func TestSchemaAcceptsTheGoodFiles(t *testing.T) {
	if *update {
		return // the schema that is compiled in is the old one
	}
	for _, file := range glob(t, "testdata/good/*.yaml") {
		if problems := schematest.Validate(t, scenario.Schema(), file, read(t, file)); len(problems) > 0 {
			t.Errorf("%s: %q", file, problems)
		}
	}
}

func TestSchemaRefusesWhatIsStructurallyWrong(t *testing.T) {
	if *update {
		return // the schema that is compiled in is the old one
	}
	for _, name := range []string{"not-a-mapping", "unknown-key", "nothing-else", "no-duration", "duration-word",
		"rate-negative", "rate-zero",
		"users-zero", "replicas-zero", "mode-unknown", "model-word", "fault-for-negative"} {
		file := "testdata/" + name + ".bad.yaml"
		if problems := schematest.Validate(t, scenario.Schema(), file, read(t, file)); len(problems) == 0 {
			t.Errorf("%s conforms to the schema", file)
		}
	}
	text := good + "variants: {x: {services: {db: {worker: 3}}}}\n"
	if problems := schematest.Validate(t, scenario.Schema(), "s.yaml", []byte(text)); len(problems) == 0 {
		t.Error("an unknown key in a variant's services conforms to the schema")
	}
}

// TestSchemaDescribesEveryKey keeps the published reference complete.
func TestSchemaDescribesEveryKey(t *testing.T) {
	for _, name := range generator(t).Undescribed(shape) {
		t.Errorf("%s has no comment", name)
	}
}

var shape = strictyaml.ShapeOf(reflect.TypeFor[scenario.Scenario]())

type object = schematest.Object

// generator makes the schema of a scenario from its structs, and knows what Parse takes where no tag says it.
func generator(t *testing.T) schematest.Generator {
	t.Helper()
	defaults := parse(t, good)
	defaults.Name, defaults.Duration = "", 0
	service := object{"additionalProperties": object{"$ref": "#/$defs/service"}}
	return schematest.Generator{
		Docs:     schematest.Comments(t, "*.go"),
		Defaults: reflect.ValueOf(*defaults),
		Extra: map[string]object{
			"clients": {"minProperties": 1, "maxProperties": 1000},
			"services": {
				"additionalProperties": service["additionalProperties"], "minProperties": 1, "maxProperties": 1000,
			},
			"variants":            {"maxProperties": 50},
			"variants[].services": schematest.With(service, "type", "object"),
			"variants[].policy": {"type": "object", "additionalProperties": false, "patternProperties": object{"^x-.": object{}},
				"properties": object{
					"defaults": object{"type": "object"}, "services": object{"type": "object"},
					"gatewayRetries": object{"type": "boolean"},
					"ambiguousPaths": object{"type": "string"},
					"protect":        object{"type": "object"}, "redis": object{"type": "object"}}},
		},
	}
}

// generate makes the schema of a scenario file.
func generate(t *testing.T) object {
	service := generator(t)
	service.Defaults = reflect.Value{}
	return schematest.With(generator(t).Mapping(shape),
		"$schema", "https://json-schema.org/draft/2020-12/schema",
		"$id", "https://github.com/abate-go/abate/sim/scenario/schema.json",
		"title", "Abate scenario file",
		"description", "A storm to rehearse with abate sim: who calls whom, how fast they are, what goes wrong, and what "+
			"should hold. Rules between fields are checked by abate sim.",
		"type", "object",
		"required", []string{"duration", "clients", "services"},
		"patternProperties", object{"^x-.": object{"description": "Not looked at: a place for YAML anchors."}},
		"$defs", object{"service": service.Mapping(strictyaml.ShapeOf(reflect.TypeFor[scenario.Service]()))},
	)
}

// good is a scenario to which more keys can be added.
const good = "duration: 3m\nclients: {shop: {rate: 100, calls: [db]}}\nservices: {db: {workers: 50, serviceTime: " +
	"10ms}}\n"

func parse(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse(filepath.Join("testdata", "s.yaml"), []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return s
}

func glob(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", pattern, err, len(files))
	}
	return files
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.ReplaceAll(string(data), "\r\n", "\n"))
}
