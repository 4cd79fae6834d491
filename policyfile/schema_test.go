package policyfile // not policyfile_test: the generator walks the same shapes as the decoder

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/strictyaml/schematest"
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
			if problems := schematest.Validate(t, Schema(), "p.yaml", []byte(text)); (len(problems) == 0) != (err == nil) {
				t.Errorf("%s: the schema says %q, Parse %v", text, problems, err)
			}
		}
	}
}

// TestSchemaDescribesEveryKey keeps the published reference complete.
func TestSchemaDescribesEveryKey(t *testing.T) {
	for _, name := range generator(t).Undescribed(policyShape) {
		t.Errorf("%s has no comment", name)
	}
}

type object = schematest.Object

// generator makes the schema of a policy from its structs, and knows what Parse takes where no tag says it.
func generator(t *testing.T) schematest.Generator {
	const conditions = `^([45][0-9][0-9]|4xx|5xx|gateway-error|connect-failure|reset|timeout|error)$`
	return schematest.Generator{
		Docs:     schematest.Comments(t, "../*.go", "../policy/*/*.go"),
		Defaults: reflect.ValueOf(abate.DefaultPolicy().WithDefaults()),
		Extra: map[string]object{
			"retryOn[]":      {"pattern": conditions},
			"neverRetryOn[]": {"pattern": conditions},
			"retryMethods[]": {"pattern": `^[^a-z \t\r\n]+$`},
			"circuitBreaker.slidingWindow": {"type": []string{"string", "integer"}, "minimum": 1, "maximum": 1_000_000,
				"pattern": "^([1-9][0-9]*|" + schematest.Durations + ")$"},
		},
	}
}

// generate makes the schema of a policy file.
func generate(t *testing.T) object {
	policy := generator(t).Mapping(policyShape)
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
			"defaults":       schematest.With(ref, "type", "object", "title", "defaults", "description", "The policy of services that are not listed, and what listed ones inherit. It has no upstreams and routes."),
			"services":       object{"title": "services", "description": "The policy of each service by its name.", "type": "object", "additionalProperties": ref, "maxProperties": MaxServices, "propertyNames": object{"minLength": 1, "maxLength": 253}},
			"gatewayRetries": object{"title": "gateway retries", "description": "Whether a gateway in front of the services may retry too. Default: false.", "type": "boolean", "default": false},
		},
		"patternProperties":    object{"^x-.": object{"description": "Not looked at: a place for YAML anchors."}},
		"additionalProperties": false,
		"anyOf":                []object{{"required": []string{"defaults"}}, {"required": []string{"services"}}, {"required": []string{"gatewayRetries"}}},
		"$defs":                object{"policy": policy},
	}
}

// validate lists what in a file does not conform to schema.json.
func validate(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return schematest.Validate(t, Schema(), file, data)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %d files", pattern, err, len(files))
	}
	return files
}
