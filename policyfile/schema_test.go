package policyfile // not policyfile_test: the generator walks the same shapes as the decoder

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/internal/strictyaml/schematest"
	"github.com/abate-go/abate/policy/shed"
)

var update = flag.Bool("update", false, "write schema.json anew")

func TestSchemaIsInStepWithTheStructs(t *testing.T) {
	want, err := json.MarshalIndent(generate(t), "", "")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		writeSchema(t, want)
		return
	}
	file, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, Schema()) || !bytes.Equal(want, file) {
		t.Error("schema.json or schema.json.gz is out of step with the structs and their comments; run: " +
			"go test ./policyfile -run Schema -update")
	}
}

// writeSchema writes the schema for editors, and the one that is compiled in.
func writeSchema(t *testing.T, text []byte) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"schema.json": text, "schema.json.gz": packed.Bytes()} {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
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
	for _, name := range []string{"unknown-key", "unknown-top-key", "unknown-section-key", "misplaced-key",
		"duration-without-unit",
		"duration-word", "negative-duration", "multiplier-below-one", "jitter-factor-outside", "bad-word", "wrong-type",
		"no-value",
		"null-member", "fallback-status", "condition-unknown", "method-lower-case", "empty-list", "cut-off", "quoted",
		"window-text", "not-a-mapping", "services-a-list", "service-not-a-mapping", "gateway-retries",
		"preset-misspelt", "pacing", "kafka-words", "kafka-empty-tiers", "protect-unknown-key", "protect-words",
		"protect-a-list", "protect-zero", "protect-misspelt", "rate", "redis-alone", "redis-empty", "redis-no-address",
		"redis-no-value", "redis-words"} {
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
	conditions := []string{"503", "400", "599", "399", "600", "4xx", "5xx", "3xx", "5XX", "gateway-error",
		"connect-failure", "reset",
		"timeout", "error", "errors", "retriable-4xx", ""}
	durations := []string{
		"0", "0s", "5", "5s", "1.5", "1.5s", ".5s", "5.s", "+5s", "-5s", "1m30s", "1d", "1µs", "soon", "s", ".",
	}
	rates := []string{"10/s", "0/s", "1.5/m", "1e3/s", ".5/s", "5./h", "100/10s", "1/1m30s", "1/ms", "10", "10/", "/s",
		"10/d", "-1/s", "+1/s", "x/s", "10/-1s", "10 / s"}
	for key, values := range map[string][]string{
		"retryOn: [%q]": conditions, "neverRetryOn: [%q]": conditions, "retryOn: %s": {"[]", "[reset]", "[503]", "reset"},
		"neverRetryOn: %s": {"[]"}, "retryMethods: %s": {"[]", "[GET]"}, "retryMethods: [%q]": {
			"GET", "PUT", "put", "Put", "X-Y", "A B", "",
		},
		"preset: %s":              {"calls", "connections", "Connections", `""`},
		"pacing: {perSecond: %s}": {"10", "0.01", "0.001", "1000001", "fast", "10/s"},
		"timeout: %s":             durations, "timeout: %q": durations, "initialDelay: %s": {"5", "5ms", "1.5"},
		"backoff: %s":            {"linear", "Linear"},
		"rateLimit: {limit: %s}": rates, "protect rateLimit: {limit: %q}": rates,
		"protect caller: %q": {
			"", "ip", "IP", "header:X-Y", "header:", "header:X Y", "header:a:b",
		},
		"protect rateLimit: {limit: 1/s, key: %q}": {
			"", "ip", "caller", "token", "header:X-Y", "header:é",
		},
		"file gatewayRetries: true\nredis: {embedded: true, prefix: %q}": {"", "a:", "a{b}"},
		"protect priority: {header: %q}":                                 {"", "X-Y", "X Y", "X:"},
		"protect priority: {default: %q}": {
			"CRITICAL", "critical-plus", "Sheddable_Plus", "SHEDDABLE", "HIGH", "", "CRITICAL_",
		},
		"protect idempotency: {methods: [%q]}": {"POST", "post", ""},
		"protect idempotency: {methods: [POST], scope: %q}": {
			"", "ip", "credential", "everybody", "caller", "header:X-Y", "cookie:sid", "header:", "cookie:a b", "body:x",
		},
		"protect idempotency: {methods: [POST], whenFull: %q}": {"shorten", "refuse", "Refuse", "forget"},
		"protect shed: {concurrency: %q}":                      {"vegas", "Vegas", ""},
		"kafka: {tiers: %s}":                                   {"[]", "[30s]", "[30s, 5m]", "[30]", "30s"},
		"kafka: {delay: 1s, retryErrors: [%q]}":                {"", "*", "*x.Y", " x", "x ", "a b"},
		"kafka: {delay: 1s, dltSuffix: %q}":                    {"", "-dead", ".DLT", "/x", "é", strings.Repeat("x", 101)},
		"circuitBreaker: {slidingWindow: %s}": {
			"100", "10s", "1m30s", "0", "-1", "ten", "10 calls", "1000000", "1000001", `"100"`, `""`,
		},
	} {
		for _, value := range values {
			text := fmt.Sprintf("services: {a: {"+key+"}}", value)
			if inProtect, ok := strings.CutPrefix(key, "protect "); ok {
				text = fmt.Sprintf("protect: {a: {trustedPeers: [10.0.0.1], "+inProtect+"}}", value)
			} else if file, ok := strings.CutPrefix(key, "file "); ok {
				text = fmt.Sprintf(file, value)
			}
			_, err := Parse("p.yaml", []byte(text))
			if problems := schematest.Validate(t, Schema(), "p.yaml", []byte(text)); (len(problems) == 0) != (err == nil) {
				t.Errorf("%s: the schema says %q, Parse %v", text, problems, err)
			}
		}
	}
}

// TestSchemaDescribesEveryKey keeps the published reference complete.
func TestSchemaDescribesEveryKey(t *testing.T) {
	for _, shape := range []*strictyaml.Shape{policyShape, protectShape, redisShape, outsideShape} {
		for _, name := range generator(t, nil).Undescribed(shape) {
			t.Errorf("%s has no comment", name)
		}
	}
}

type object = schematest.Object

// generator makes the schema of a section from its structs, and knows what Parse takes where no tag says it. full is a
// value of the section with every default written out.
func generator(t *testing.T, full any) schematest.Generator {
	const (
		conditions = `^([45][0-9][0-9]|4xx|5xx|gateway-error|connect-failure|reset|timeout|error)$`
		method     = `^[^a-z \t\r\n]+$`
		class      = `^\S(.*\S)?$`
		suffix     = `^[a-zA-Z0-9._-]{0,100}$`
		header     = "header:[!#$%&'*+.^_`|~0-9A-Za-z-]+"
	)
	rate := object{"type": "string", "pattern": `^ *\+?([0-9]+\.?[0-9]*|\.[0-9]+)([eE]\+?[0-9]+)? */ *(ms|s|m|h|` +
		schematest.Durations + `) *$`}
	return schematest.Generator{
		Docs:     schematest.Comments(t, "../core/*.go", "../inbound/*.go", "../policy/*/*.go", "*.go"),
		Defaults: reflect.ValueOf(full),
		Extra: map[string]object{
			"retryOn[]":           {"pattern": conditions},
			"neverRetryOn[]":      {"pattern": conditions},
			"retryMethods[]":      {"pattern": method},
			"kafka.retryErrors[]": {"pattern": class}, "kafka.neverRetryErrors[]": {"pattern": class},
			"kafka.retrySuffix": {"pattern": suffix}, "kafka.dltSuffix": {"pattern": suffix},
			"circuitBreaker.slidingWindow": {"type": []string{"string", "integer"}, "minimum": 1, "maximum": 1_000_000,
				"pattern": "^([1-9][0-9]*|" + schematest.Durations + ")$"},
			"rateLimit.limit":       rate,
			"idempotency.methods[]": {"pattern": method},
			"caller":                {"pattern": "^(|ip|mtls|token|" + header + ")$"},
			"rateLimit.key":         {"pattern": "^(|caller|ip|" + header + ")$"},
			"idempotency.scope": {
				"pattern": "^(|credential|everybody|cookie:" + strings.TrimPrefix(header, "header:") + "|" + header + ")$",
			},
			"priority.header":  {"pattern": "^" + strings.TrimPrefix(header[:len(header)-1], "header:") + "*$"},
			"priority.default": {"type": "string", "pattern": priorities()},
			"prefix":           {"pattern": `^[^{}]*$`},
		},
	}
}

// priorities is the pattern of their names in upper or lower case.
func priorities() string {
	var names []string
	for _, p := range shed.Priorities {
		var b strings.Builder
		for _, c := range p.String() {
			if c == '_' {
				b.WriteString("[_-]")
			} else {
				b.WriteString("[" + string(c) + strings.ToLower(string(c)) + "]")
			}
		}
		names = append(names, b.String())
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// generate makes the schema of a policy file.
func generate(t *testing.T) object {
	policy := generator(t, entry{Preset: Calls, Policy: DefaultPolicy().WithDefaults()}).Mapping(policyShape)
	policy["title"] = "policy"
	policy["description"] = "What is done about one dependency. A key left out is inherited: a service from defaults, " +
		"defaults from the built-in policy; a service with preset: connections from the built-in policy for connections."
	protection := generator(t, DefaultProtection().WithDefaults()).Mapping(protectShape)
	protection["title"] = "protection"
	protection["description"] = "What is done about the requests that arrive at one service. A key left out takes its " +
		"default."
	redis := generator(t, Redis{Embedded: true}.WithDefaults()).Mapping(redisShape)
	redis["type"], redis["title"] = "object", "redis"
	redis["description"] = "The Redis or Valkey through which instances share what is marked fleet: true."
	redis["properties"].(object)["embedded"].(object)["default"] = false
	redis["anyOf"] = []object{{"required": []string{"addresses"}}, {"required": []string{"embedded"}}}
	outside := generator(t, Outside{}).Mapping(outsideShape)
	outside["type"], outside["title"] = "object", "outside"
	outside["description"] = "What programs may reach through the proxy beside the services of the file, without a guard."
	ref, names := object{"$ref": "#/$defs/policy"}, object{"minLength": 1, "maxLength": 253}
	return object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://github.com/abate-go/abate/policyfile/schema.json",
		"title":   "Abate policy file",
		"description": "What is done about the services that are called (defaults, services) and about the requests that " +
			"arrive (protect). Rules between fields are checked by abate check.",
		"type": "object",
		"properties": object{
			"defaults": schematest.With(ref, "type", "object", "title", "defaults", "description",
				"The policy of services that are not listed, and what listed ones inherit. It has no preset, upstreams and "+
					"routes."),
			"services": object{
				"title": "services", "description": "The policy of each service that is called, by its name.", "type": "object",
				"additionalProperties": ref, "maxProperties": MaxServices, "propertyNames": names,
			},
			"gatewayRetries": object{
				"title": "gateway retries", "description": "Whether a gateway in front of the services may retry too. Default: " +
					"false.", "type": "boolean", "default": false,
			},
			"ambiguousPaths": object{
				"title": "ambiguous paths", "description": "What is done with paths of calls that go out which two servers may " +
					"read in two ways; see ambiguousPaths of protect. Default: normalize.", "type": "string", "enum": PathRules,
				"default": Normalize,
			},
			"protect": object{
				"title": "protect", "description": "The protection of each service that requests arrive at, by its name.",
				"type": "object", "additionalProperties": object{"$ref": "#/$defs/protection"}, "maxProperties": MaxServices,
				"propertyNames": names,
			},
			"redis": redis, "outside": outside,
		},
		"patternProperties":    object{"^x-.": object{"description": "Not looked at: a place for YAML anchors."}},
		"additionalProperties": false,
		"anyOf": []object{{"required": []string{"defaults"}}, {"required": []string{"services"}},
			{"required": []string{"gatewayRetries"}}, {"required": []string{"protect"}}},
		"$defs": object{"policy": policy, "protection": protection},
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
