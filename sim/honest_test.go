package sim_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
)

const bare = "maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"

func TestCapacityMarginCountsWholeWorkers(t *testing.T) {
	s := read(t, "duration: 30s", "clients: {w: {rate: 10, calls: [db]}}", "services: {db: {workers: 1, serviceTime: 10ms}}",
		"faults: [{outage: db, at: 10s, for: 1s}]", "variants: {v: {policy: {defaults: {"+bare+"}}}}")
	for _, m := range study(t, s, sim.Options{Margin: true, Runs: 8}).Variants[0].Margins {
		if m.Dimension == "capacity" && !strings.Contains(m.Text, "100%") {
			t.Errorf("one worker cannot be less: %s", m.Text)
		}
	}
}

func TestMapAgreesWithMargin(t *testing.T) {
	s := read(t, "duration: 30s", "clients: {w: {rate: 80, calls: [db]}}", "services: {db: {workers: 10, serviceTime: 100ms, queue: {limit: 10}}}",
		"faults: [{outage: db, at: 10s, for: 2s}]", "variants: {v: {policy: {defaults: {"+bare+"}}}}")
	v := study(t, s, sim.Options{Margin: true, Map: true, Runs: 8}).Variants[0]
	row := v.Map.Collapse[3] // the trouble as it is
	for k, load := range v.Map.Loads {
		if at := load * v.Margins[0].Here; at > v.Margins[0].High && row[k] == 0 {
			t.Errorf("at %v requests/s the map stands, but %s", at, v.Margins[0].Text)
		}
	}
}

func TestAdviceDoesNotThrowRequestsAway(t *testing.T) {
	s := read(t, "duration: 30s", "clients: {w: {rate: 50, calls: [db]}}", "services: {db: {workers: 100, serviceTime: '50% 50ms, 50% 150ms'}}",
		"expect: ['latency(p99) < 90ms']", "variants: {v: {policy: {defaults: {"+bare+", attemptTimeout: 200ms}}}}")
	for _, a := range study(t, s, sim.Options{Advice: true}).Variants[0].Advice {
		t.Errorf("advice that loses half of the answers: %s", a.Change)
	}
}

func TestAdviceIsAboutTheListedEdge(t *testing.T) {
	s := read(t, "duration: 60s", "clients: {w: {rate: 100, calls: [db]}}", "services: {db: {workers: 100, serviceTime: 50ms}}",
		"faults: [{outage: db, mode: refuse, at: 10s, for: 20s}]", "expect: ['amplification(db) < 1.2']",
		"variants: {v: {policy: {defaults: {"+bare+"}, services: {'w -> db': {maxRetries: 3, backoff: fixed, initialDelay: 1s, jitter: none}}}}}")
	all := study(t, s, sim.Options{Advice: true}).Variants[0].Advice
	if len(all) == 0 || !strings.Contains(all[0].YAML, `"w -> db"`) {
		t.Errorf("advice %+v, want some about w -> db", all)
	}
}

func TestWhatWouldHaveNoEffectIsRefused(t *testing.T) {
	crowd := "duration: 120s\nclients: {p: {users: 50000, think: exponential 10s, method: exact, calls: [db]}}\nservices: {db: {workers: 100, serviceTime: 20ms}}\n" +
		"variants: {v: {policy: {defaults: {" + bare + ", attemptTimeout: 1s}}}}\n"
	for text, want := range map[string]string{
		crowd + "expect: ['queue(db) < 10']":          "has no queue",
		crowd + "expect: ['utilization(db) < 1%']":    "has no utilization",
		crowd + "model: {cancellation: propagates}\n": "has no effect",
		"duration: 30s\nclients: {w: {users: 10, think: 1s, calls: [db]}}\nservices: {db: {}}\nfaults: [{surge: w, at: 1s, for: 1s, factor: 9}]\n":                                    "closed loop",
		"duration: 30s\nclients: {w: {rate: 10, calls: [db]}}\nservices: {db: {replicas: 9, workers: 1, serviceTime: 1ms}}\nfaults: [{capacity: db, at: 1s, for: 1s, factor: 0.1}]\n": "as many as before",
	} {
		if _, err := scenario.Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
