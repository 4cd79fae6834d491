//go:build !race

package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/scenario"
)

const bare = "maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"

func TestCapacityMarginCountsWholeWorkers(t *testing.T) {
	s := read(t, "duration: 30s", "clients: {w: {rate: 10, calls: [db]}}",
		"services: {db: {workers: 1, serviceTime: 10ms}}",
		"faults: [{outage: db, at: 10s, for: 1s}]", "variants: {v: {policy: {defaults: {"+bare+"}}}}")
	for _, m := range study(t, s, sim.Options{Margin: true, Runs: 8}).Variants[0].Margins {
		if m.Dimension == "capacity" && !strings.Contains(m.Text, "100%") {
			t.Errorf("one worker cannot be less: %s", m.Text)
		}
	}
}

func TestMapAgreesWithMargin(t *testing.T) {
	s := read(t, "duration: 30s", "clients: {w: {rate: 80, calls: [db]}}",
		"services: {db: {workers: 10, serviceTime: 100ms, queue: {limit: 10}}}",
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
	if testing.Short() {
		return // it takes a second or more
	}
	s := read(t, "duration: 30s", "clients: {w: {rate: 50, calls: [db]}}",
		"services: {db: {workers: 100, serviceTime: '50% 50ms, 50% 150ms'}}",
		"expect: ['latency(p99) < 90ms']", "variants: {v: {policy: {defaults: {"+bare+", attemptTimeout: 200ms}}}}")
	for _, a := range study(t, s, sim.Options{Advice: true}).Variants[0].Advice {
		t.Errorf("advice that loses half of the answers: %s", a.Change)
	}
}

func TestAdviceIsAboutTheListedEdge(t *testing.T) {
	if testing.Short() {
		return // a whole search for advice
	}
	s := read(t, "duration: 60s", "clients: {w: {rate: 100, calls: [db]}}",
		"services: {db: {workers: 100, serviceTime: 50ms}}",
		"faults: [{outage: db, mode: refuse, at: 10s, for: 20s}]", "expect: ['amplification(db) < 1.2']",
		"variants: {v: {policy: {defaults: {"+bare+"}, services: {'w -> db': {maxRetries: 3, backoff: fixed, initialDelay: "+
			"1s, jitter: none}}}}}")
	all := study(t, s, sim.Options{Advice: true}).Variants[0].Advice
	if len(all) == 0 || !strings.Contains(all[0].YAML, `"w -> db"`) {
		t.Errorf("advice %+v, want some about w -> db", all)
	}
}

func TestWhatWouldHaveNoEffectIsRefused(t *testing.T) {
	phones := "duration: 120s\nclients: {p: {users: 50000, think: exponential 10s, method: exact, calls: " +
		"[db]}}\nservices: {db: {workers: 100, serviceTime: 20ms}}\n" +
		"variants: {v: {policy: {defaults: {" + bare + ", attemptTimeout: 1s}}}}\n"
	for text, want := range map[string]string{
		phones + "expect: ['queue(db) < 10']":          "has no queue",
		phones + "expect: ['utilization(db) < 1%']":    "has no utilization",
		phones + "model: {cancellation: propagates}\n": "has no effect",
		"duration: 30s\nclients: {w: {users: 10, think: 1s, calls: [db]}}\nservices: {db: {}}\nfaults: [{surge: w, at: 1s, " +
			"for: 1s, factor: 9}]\n": "closed loop",
		"duration: 30s\nclients: {w: {rate: 10, calls: [db]}}\nservices: {db: {replicas: 9, workers: 1, serviceTime: " +
			"1ms}}\nfaults: [{capacity: db, at: 1s, for: 1s, factor: 0.1}]\n": "as many as before",
	} {
		if _, err := scenario.Parse("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestGatesAreSaidMeasuredAndExplained(t *testing.T) {
	s := read(t, "duration: 30s", "clients: {w: {rate: 100, calls: [{to: db, naive: true}]}}",
		"services: {db: {workers: 1, serviceTime: 20ms, refusalCost: 10us}}",
		"expect: ['yield(db) > 80%', 'shed(db) > 30%']",
		"variants: {open: {policy: {defaults: {"+bare+", attemptTimeout: 1s}}}, gated: {policy: {defaults: {"+bare+", attemptTimeout: 1s}, protect: {db: {rateLimit: {limit: 90/s, burst: 10}, shed: {cpu: 0.99}}}}}}")
	r := study(t, s, sim.Options{Runs: 8, Exactly: true})
	open, gated := &r.Variants[0], &r.Variants[1]
	if open.Run.Services[0].Gated || !gated.Run.Services[0].Gated {
		t.Error("the wrong variant has the gate")
	}
	if !strings.Contains(gated.Policy, "\nprotect:\n  db:\n") || strings.Contains(open.Policy, "protect") {
		t.Errorf("the policy in force is\n%s", gated.Policy)
	}
	reasons := map[string]float64{}
	for _, x := range gated.Run.Services[0].Refusals {
		reasons[x.Reason] = x.Count
	}
	if reasons["rate-limited"] == 0 || reasons["queue-full"]+reasons["queue-delay"]+reasons["cpu"] == 0 {
		t.Errorf("refusals by reason: %v", reasons)
	}
	for _, name := range []string{
		"yield(db)", "response(p99, db)", "shed(db)", "rateLimited(db)", "gateWait(p99, db)", "limit(db)",
	} {
		if !slices.ContainsFunc(gated.Measures, func(m sim.Measure) bool { return m.Name == name && m.Finite == 8 }) {
			t.Errorf("%s is not among the measures", name)
		}
	}
	var said []string
	for _, a := range sim.Assumptions(s, &s.Variants[1]) {
		said = append(said, a.Setting)
	}
	for _, want := range []string{
		"services.db.gate", "services.db.refusalCost", "services.db.shed.cpu", "clients.w.calls.db.naive", "call trees",
	} {
		if !slices.Contains(said, want) {
			t.Errorf("no assumption about %s: %q", want, said)
		}
	}
}
