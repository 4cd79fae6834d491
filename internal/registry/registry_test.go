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

// elsewhere are the sections of a policy that have an Enabled and are no policies of the guard: adapters and the proxy
// read them.
var elsewhere = []string{"fallback", "outlierDetection", "kafka"}

func TestEverySectionIsRegisteredAndDescribed(t *testing.T) {
	var listed []string
	for _, p := range registry.Guard {
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
	for _, f := range reflect.VisibleFields(reflect.TypeFor[core.Policy]()) {
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if _, ok := f.Type.MethodByName("Enabled"); ok && !slices.Contains(elsewhere, key) &&
			!slices.Contains(listed, key) {
			t.Errorf("core.Policy has a section %s, which is not in registry.Guard", key)
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
