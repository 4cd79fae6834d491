package registry_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/registry"
)

// elsewhere are the sections that have an Enabled and are no policies of a guard or gate: adapters and the proxy read
// them.
var elsewhere = []string{"fallback", "outlierDetection", "kafka", "tls", "authentication"}

func TestEverySectionIsRegisteredAndDescribed(t *testing.T) {
	everySection(t, registry.Guard[:])
	everySection(t, registry.Gate[:])
}

func everySection[P, S any](t *testing.T, policies []registry.Policy[P, S]) {
	var listed []string
	for _, p := range policies {
		listed = append(listed, p.Key)
		page, err := os.ReadFile("../../docs/policies/" + p.Page + ".md")
		if err != nil {
			t.Errorf("%s: %v", p.Key, err)
		}
		for _, g := range p.Gauges {
			if !strings.Contains(string(page), g.Name) {
				t.Errorf("docs/policies/%s.md does not mention %s", p.Page, g.Name)
			}
		}
	}
	settings := reflect.TypeFor[P]()
	for _, f := range reflect.VisibleFields(settings) {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if _, ok := f.Type.MethodByName("Enabled"); ok && !slices.Contains(elsewhere, key) &&
			!slices.Contains(listed, key) {
			t.Errorf("%v has a section %s, which is not in the registry", settings, key)
		}
	}
}

// TestEnabledReadsItsOwnSection finds an entry that was copied and not changed.
func TestEnabledReadsItsOwnSection(t *testing.T) {
	on := core.DefaultPolicy()
	on.Bulkhead.MaxConcurrentCalls, on.RateLimit.Limit.Tokens, on.RateLimit.Limit.Per = 1, 1, 1
	on.Throttle.K, on.Pacing.PerSecond, on.Hedge.Delay = 2, 1, 1
	for _, p := range registry.Guard {
		if p.Enabled(&core.Policy{}) || !p.Enabled(&on) {
			t.Errorf("%s: %v without it, %v with it", p.Key, p.Enabled(&core.Policy{}), p.Enabled(&on))
		}
		off := on
		for _, f := range reflect.VisibleFields(reflect.TypeFor[core.Policy]()) {
			if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); key == p.Key {
				reflect.ValueOf(&off).Elem().FieldByIndex(f.Index).FieldByName("Disabled").SetBool(true)
			}
		}
		if p.Enabled(&off) {
			t.Errorf("%s is on although its section is disabled", p.Key)
		}
	}
}

func TestReasonsDiffer(t *testing.T) {
	seen := map[any]bool{}
	for _, r := range registry.Reasons {
		for _, part := range []any{r.Err, "label " + r.Label, "words " + r.Words} {
			if seen[part] {
				t.Errorf("%v stands twice", part)
			}
			seen[part] = true
		}
	}
}
