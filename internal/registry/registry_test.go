package registry_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/internal/registry"
)

// elsewhere are the sections that have an Enabled and are no policies of a guard or gate: adapters and the proxy read
// them.
var elsewhere = []string{"fallback", "outlierDetection", "healthCheck", "kafka", "tls", "authentication"}

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

func TestWhatWasLearnedIsSaidOfPoliciesThatAreOn(t *testing.T) {
	var p core.Policy
	p.RetryBudget.Disabled = true
	s := core.State{Budget: 7.25}
	s.Bulkhead.InFlight, s.Bulkhead.Limit, s.Bulkhead.Queued = 3, 9, 2
	s.Throttle.Requests, s.Throttle.Accepts, s.Throttle.Rejection, s.Pacing.PerSecond = 200, 80, 0.2, 4.2
	s.Hedge.Delay, s.Hedge.Learned, s.Hedge.Samples = 12*time.Millisecond, true, 40
	if all := registry.Learned(registry.Guard[:], &p, &s); len(all) > 0 {
		t.Errorf("of policies that are off: %q", all)
	}
	p = core.Policy{}
	p.Bulkhead.MaxConcurrentCalls = 9
	p.RetryBudget.Ratio, p.Throttle.K, p.Pacing.PerSecond, p.Hedge.Quantile = 0.1, 2, 1, 0.95
	want := []string{"7.2 retries and hedges could be sent now.", "3 of 9 permits are taken, and 2 calls wait for one.",
		"The service accepted 80 of the last 200 attempts, so 20 % are held back.",
		"At most 4.2 attempts a second are sent now.", "A copy is sent after 12ms, learned from 40 attempts."}
	if all := registry.Learned(registry.Guard[:], &p, &s); !slices.Equal(all, want) {
		t.Errorf("%q, want\n%q", all, want)
	}
	s.Hedge.Learned = false
	if all := registry.Learned(registry.Guard[:], &p, &s); len(all) != len(want)-1 {
		t.Errorf("a delay that the file has was not learned: %q", all)
	}
}

func TestWhatAGateLearnedIsSaid(t *testing.T) {
	var p inbound.Protection
	var s inbound.GateState
	s.Shed.Limit, s.Shed.InFlight, s.Shed.Queued, s.Shed.Latency = 20, 20, 3, 9*time.Millisecond
	s.Shed.CPU, s.Shed.CPURefused, s.RateLimit.Keys = 0.95, 0.1, 7
	p.RateLimit.Disabled = true
	if all := registry.Learned(registry.Gate[:], &p, &s); len(all) > 0 {
		t.Errorf("of policies that are off: %q", all)
	}
	p = inbound.Protection{}
	p.Shed.Concurrency, p.Shed.CPU = "fixed", 0.9
	p.RateLimit.Limit.Tokens, p.RateLimit.Limit.Per = 1, time.Second
	want := []string{"20 of 20 places are taken, and 3 requests wait for one. A request takes 9ms without load. " +
		"The processor is at 95 %, so 10 % of requests are refused.", "7 callers have a bucket of their own."}
	if all := registry.Learned(registry.Gate[:], &p, &s); !slices.Equal(all, want) {
		t.Errorf("%q, want\n%q", all, want)
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
