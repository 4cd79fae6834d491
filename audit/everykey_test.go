//go:build !race

package audit_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/policyfile"
	"go.yaml.in/yaml/v3"
)

// property is a key in the schema of policy files.
type property struct {
	Properties map[string]property `json:"properties"`
	Enum       []any               `json:"enum"`
	Examples   []any               `json:"examples"`
	Type       any                 `json:"type"`
}

// Without a companion many keys do nothing, so the file is refused. The first with which a key changes the policy
// counts.
var companions = []string{
	`{}`, `{upstreams: ["http://a:80", "http://b:80"]}`, `{attemptTimeout: 1s}`, `{jitter: factor}`,
	`{bulkhead: {maxConcurrentCalls: 500, maxQueue: 5}}`, `{bulkhead: {limit: adaptive}}`,
	`{circuitBreaker: {failureRateThreshold: 0.6, slidingWindow: 30s, rampUp: 3s}}`,
	`{circuitBreaker: {failureThreshold: 9}}`,
	`{circuitBreaker: {failureRateThreshold: 0.6, slowCallRateThreshold: 0.9}}`,
	`{hedge: {maxHedges: 2, delay: 70ms}}`, `{hedge: {quantile: 0.9, delay: 70ms}}`,
	`{fallback: {status: 503, body: x}}`, `{fallback: {staleIfError: 9m}}`, `{fallback: {staleIfError: 9m, shared: true}}`,
	`{rateLimit: {limit: 7/s}}`, `{pacing: {perSecond: 5, rampUp: 2s}}`, `{throttle: {k: 3}}`,
	`{retryBudget: {kind: adaptive}}`, `{retryBudget: {kind: tokens}}`,
	`{retryBudget: {kind: tokens, depositPerSuccess: 0.3}}`,
	`{healthCheck: {kind: http}, upstreams: ["http://a:80"]}`, `{healthCheck: {kind: grpc}, upstreams: ["http://a:80"]}`,
	`{tls: {certificate: /c, key: /k}, upstreams: ["https://a:443"]}`,
	`{tls: {ca: /c}, upstreams: ["https://a:443"]}`, `{upstreams: ["https://a:443"]}`,
	`{discovery: {type: dns, name: b}, upstreams: ["http://a:80"]}`,
	`{discovery: {type: srv, name: _http._tcp.b}, upstreams: ["http://a"]}`,
	`{discovery: {type: file, path: /b}, upstreams: ["http://a:80"]}`,
	`{discovery: {type: kubernetes, name: b}, upstreams: ["http://a"]}`,
	`{kafka: {tiers: [10s, 1m]}}`, `{kafka: {tiers: [10s, 1m], naming: spring}}`, `{kafka: {delay: 10s, attempts: 3}}`,
}

// leaves returns each key below a section with values that it can have.
func leaves(of map[string]property, path string, visit func(path string, value any, only bool)) {
	for _, key := range slices.Sorted(maps.Keys(of)) {
		p, at := of[key], strings.TrimPrefix(path+"."+key, ".")
		if len(p.Properties) > 0 {
			leaves(p.Properties, at, visit)
			continue
		}
		values := append(slices.Clone(p.Enum), p.Examples...)
		if len(values) == 0 {
			values = append(values, true)
		}
		for _, v := range values { // an example may be the default
			switch v := v.(type) {
			case float64:
				values = append(values, v/2, v+1, v*3)
			case string:
				if _, err := time.ParseDuration(v); err == nil {
					values = append(values, "70ms", "7s", "70s", "2h")
				} else if len(p.Enum) == 0 {
					values = append(values, v+"x")
				}
			}
		}
		if at == "routes" {
			values = []any{[]any{map[string]any{"path": "/a"}}}
		}
		for _, v := range values {
			visit(at, v, len(p.Enum) == 0)
		}
	}
}

// Whatever a policy says has to be in the report: as what came back, or as lost. A key that changes the policy and
// leaves the report as it was is lost without a word.
func TestEveryKeyOfThePolicyFileIsInTheLossReport(t *testing.T) {
	var schema struct {
		Defs struct{ Policy property } `json:"$defs"`
	}
	if err := json.Unmarshal(policyfile.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	formats := exporter.Formats
	if testing.Short() {
		formats = formats[:1] // what has no place in the form is lost in all of them
	}
	seen, set := map[string]bool{}, map[string]bool{}
	leaves(schema.Defs.Policy.Properties, "", func(path string, value any, only bool) {
		if seen[path] = true; only && set[path] {
			return // one value is enough
		}
		before, after, ok := withKey(path, value)
		if !ok {
			return
		}
		set[path] = true
		if path == "upstreams" { // where a service is, which every format says
			return
		}
		for _, f := range formats {
			was, is := report(t, f, before), report(t, f, after)
			if reflect.DeepEqual(was, is) {
				t.Errorf("%s: %s: %v is nowhere in the report of\n%s", f.Name, path, value, after)
			}
		}
	})
	for path := range seen {
		if !set[path] && path != "rateLimit.maxKeys" { // which is for gates only
			t.Errorf("no policy file has %s: give its section a companion", path)
		}
	}
}

func report(t *testing.T, f exporter.Format, policy []byte) []audit.Loss {
	t.Helper()
	_, losses, err := audit.Export(f, importer.File{Name: "p.yaml", Data: policy}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, policy)
	}
	return losses
}

// withKey returns a policy file without a key and with it, which are two policies.
func withKey(path string, value any) (before, after []byte, ok bool) {
	for _, text := range companions {
		if strings.HasPrefix(path, "outlierDetection") && !strings.Contains(text, "http://b") {
			continue // one endpoint is never left out
		}
		service := map[string]any{"maxRetries": 2}
		if err := yaml.Unmarshal([]byte(text), &service); err != nil {
			panic(err)
		}
		before = fileOf(service)
		put(service, strings.Split(path, "."), value)
		after = fileOf(service)
		a, err := policyfile.Parse("p.yaml", before)
		b, err2 := policyfile.Parse("p.yaml", after)
		if err == nil && err2 == nil {
			one, other := a.Services[0].Policy.WithDefaults(), b.Services[0].Policy.WithDefaults()
			if !reflect.DeepEqual(one, other) {
				return before, after, true
			}
		}
	}
	return nil, nil, false
}

func put(into map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		if into[key] == nil {
			into[key] = map[string]any{}
		}
		into = into[key].(map[string]any)
	}
	into[path[len(path)-1]] = value
}

func fileOf(service map[string]any) []byte {
	data, err := yaml.Marshal(map[string]any{"services": map[string]any{"a": service},
		"redis": map[string]any{"addresses": []string{"r:6379"}}})
	if err != nil {
		panic(err)
	}
	return data
}

func TestAPolicyInAConfigMapHasTheSameLossReport(t *testing.T) {
	const plain = "services:\n  a:\n    maxRetries: 2\n    rateLimit: {limit: 10/s}\nprotect:\n  b: {timeout: 3s}\n"
	inMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}\ndata:\n  policy.yaml: |\n    " +
		strings.ReplaceAll(strings.TrimSpace(plain), "\n", "\n    ") + "\n"
	want, got := report(t, exporter.Formats[0], []byte(plain)), report(t, exporter.Formats[0], []byte(inMap))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	said := audit.LossText(want)
	for _, row := range []string{"  rateLimit.limit: 10/s is dropped\n", "the file:\n  protect: {b} is dropped\n"} {
		if !strings.Contains(said, row) {
			t.Errorf("no %q in\n%s", row, said)
		}
	}
}
