package policyfile_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policyfile"
)

func TestAServiceForConnectionsBeginsWithTheConnectionPolicyAndNotWithTheDefaults(t *testing.T) {
	f := parseFile(t, "testdata/good/preset.yaml")
	want := policyfile.Policy{Policy: abate.ConnectionPolicy()}
	policies := map[string]policyfile.Policy{}
	presets := map[string]policyfile.Preset{}
	for _, s := range f.Services {
		policies[s.Name], presets[s.Name] = s.Policy, s.Preset
	}
	if got := policies["orders-db"]; !reflect.DeepEqual(got.WithDefaults(), want.WithDefaults()) {
		t.Errorf("orders-db\n got %+v\nwant %+v", got, want)
	}
	// numbers of a pace go on meaning what they meant
	want.Pacing = pacing.Config{PerSecond: 50, RampUp: 30 * time.Second, RampUpFrom: 0.05}
	want.CircuitBreaker.FailureThreshold = 5
	if got := policies["cache"]; !reflect.DeepEqual(got.WithDefaults(), want.WithDefaults()) {
		t.Errorf("cache, where the preset is not the first key\n got %+v\nwant %+v", got, want)
	}
	want = policyfile.Policy{Policy: abate.ConnectionPolicy()}
	want.MaxRetries, want.AttemptTimeout = 0, time.Second
	if got := policies["session-db"]; !reflect.DeepEqual(got.WithDefaults(), want.WithDefaults()) {
		t.Errorf("session-db, where the preset is merged\n got %+v\nwant %+v", got, want)
	}
	for _, name := range []string{"payment-service", "stock-service"} {
		if got := policies[name]; got.AttemptTimeout != 500*time.Millisecond || got.Bulkhead.MaxConcurrentCalls != 50 ||
			got.Pacing != (pacing.Config{PerSecond: 100}) {
			t.Errorf("%s does not inherit the defaults: %+v", name, got)
		}
	}
	for name, want := range map[string]policyfile.Preset{
		"orders-db": "connections", "cache": "connections", "session-db": "connections", "payment-service": "calls",
		"stock-service": "calls",
	} {
		if presets[name] != want {
			t.Errorf("%s: preset %q, want %q", name, presets[name], want)
		}
	}
}

func TestMistakesOfTheDefaultsAreNotThoseOfAServiceForConnections(t *testing.T) {
	_, err := policyfile.Parse("p.yaml",
		[]byte("defaults: {attemptTimeout: 2s, timeout: 1s}\nservices:\n  db: {preset: connections}\n"))
	if err == nil || strings.Count(err.Error(), "\n") != 0 ||
		!strings.Contains(err.Error(), "p.yaml:1:28: defaults.attemptTimeout") {
		t.Errorf("%v", err)
	}
}

func TestAServiceForConnectionsIsReadFromAConfigMap(t *testing.T) {
	f, err := policyfile.Parse("p.yaml",
		[]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: retry-policy}\ndata:\n  policy.yaml: |\n    services:\n  "+
			"    db: {preset: connections}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Services[0]; got.Preset != policyfile.Connections || !got.Policy.Pacing.Adapts() {
		t.Errorf("%+v", got)
	}
	_, err = policyfile.Parse(
		"p.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: retry-policy}\ndata:\n  policy.yaml: |\n    "+
			"services:\n      db: {preset: connexions}\n"))
	if want := `p.yaml:7:20: service "db", preset: "connexions" is not known; did you mean connections? allowed: calls, ` +
		`connections; for example connections`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestFormatWritesThePreset(t *testing.T) {
	text := string(parseFile(t, "testdata/good/preset.yaml").Format())
	for _, want := range []string{"  orders-db:\n    preset: connections\n    timeout: 0s\n    attemptTimeout: 5s\n",
		"  stock-service:\n    preset: calls\n", "      adaptive: true\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if head, _, _ := strings.Cut(text, "services:"); strings.Contains(head, "preset") {
		t.Errorf("defaults have a preset:\n%s", head)
	}
	one := parseFile(t, "testdata/good/preset.yaml").Services[0].Policy.Format("db")
	if strings.Contains(string(one), "preset") {
		t.Errorf("a policy by itself has a preset:\n%s", one)
	}
}

func TestAReloadMayChangeThePreset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("services: {db: {}}")
	set, err := policyfile.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	g := set.Guard("db")
	for _, row := range []struct {
		text string
		pace float64
	}{{"services: {db: {preset: connections}}", 10}, {"services: {db: {preset: calls}}", 0},
		{"services: {db: {preset: connections, pacing: {disabled: true}}}", 0}} {
		write(row.text)
		if err := set.Reload(); err != nil {
			t.Fatal(err)
		}
		if got := set.Guard("db"); got != g {
			t.Fatal("a reload made another guard")
		}
		if p := g.Describe().Pacing; p.Enabled() != (row.pace > 0) {
			t.Errorf("%s: %+v", row.text, p)
		}
	}
}

func TestAnOverrideOutlivesAReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	for i, text := range []string{"services: {db: {}}", "services: {db: {maxRetries: 1}}",
		"services: {db: {circuitBreaker: {mode: forcedOpen}}}", "services: {other: {}}"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue
		}
		set, err := policyfile.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		g := set.Guard("db")
		if err := g.Override(abate.OverrideForcedOpen); err != nil {
			t.Fatal(err)
		}
		for _, next := range []string{
			"services: {db: {timeout: 3s}}", "services: {db: {circuitBreaker: {mode: forcedOpen}}}", text,
		} {
			if err := os.WriteFile(path, []byte(next), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := set.Reload(); err != nil {
				t.Fatal(err)
			}
			if got := g.State().Override; got != abate.OverrideForcedOpen || set.Guard("db") != g {
				t.Errorf("after %s the override is %q", next, got)
			}
		}
		// What the last file says holds again, also where it says the same as the override did.
		if err := g.Override(abate.NoOverride); err != nil {
			t.Fatal(err)
		}
		want, _ := policyfile.Parse("p.yaml", []byte(text))
		p, _ := want.Policy("db")
		if got := g.Describe().CircuitBreaker; got != p.WithDefaults().CircuitBreaker {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
