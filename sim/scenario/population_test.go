package scenario_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/population"
	"github.com/abate-go/abate/sim/scenario"
)

const unguarded = "variants: {x: {policy: {defaults: {maxRetries: 5, retryBudget: {disabled: true}, circuitBreaker: " +
	"{disabled: true}}}}}\n"

func TestAVeryLargeFleetIsAPopulation(t *testing.T) {
	for fleet, want := range map[string]bool{
		"{users: 500_000, think: exponential 60s, calls: [db]}":            false,
		"{users: 500_001, think: exponential 60s, calls: [db]}":            true,
		"{once: 500_001, within: 1m, calls: [db]}":                         true,
		"{once: 10, within: 1m, method: exact, calls: [db]}":               true,
		"{users: 10, think: exponential 60s, method: cohort, calls: [db]}": true,
		"{rate: 10_000, calls: [db]}":                                      false,
	} {
		s := parse(t, "duration: 1m\nclients: {f: "+fleet+"}\nservices: {db: {workers: 50, serviceTime: 10ms, queue: "+
			"{limit: 10}}}\n"+unguarded)
		if s.IsPopulation() != want {
			t.Errorf("%s: %v", fleet, s.IsPopulation())
		}
	}
	if s := parse(t, "scale: 100\nduration: 1m\nclients: {f: {once: 1_000_000, within: 1m, calls: [db]}}\nservices: "+
		"{db: {workers: 500, serviceTime: 10ms}}\n"); s.IsPopulation() {
		t.Error("a scaled fleet is judged by its full size")
	}
}

// The estimate has no look at the retries' delays, so it is above what package population counts.
func TestAPopulationIsNotLargerThanItsEstimate(t *testing.T) {
	s := parse(t, "duration: 1m\nclients: {f: {once: 20000, within: 30s, method: exact, calls: [db]}}\nservices: {db: "+
		"{workers: 50, serviceTime: 10ms, queue: {none: true}}}\n"+
		"faults: [{at: 5s, for: 20s, outage: db, mode: refuse}]\n"+unguarded)
	v := &s.Variants[0]
	c := population.Config{Clients: 20000, Within: s.Clients[0].Within, Retry: v.PolicyOf("f", "db").Retry,
		Capacity: s.Services[0].Capacity(), Duration: s.Duration,
		Outages: []population.Outage{{From: s.Faults[0].At, To: s.Faults[0].At + s.Faults[0].For}}}
	curve, err := population.Exact(c, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Estimate(v); int64(curve.Events) > e.Events {
		t.Errorf("%d events are more than the estimate, %+v", curve.Events, e)
	}
}

func TestVariantsOfAPopulationAreChecked(t *testing.T) {
	_, err := scenario.Parse("s.yaml",
		[]byte("duration: 1m\nclients: {f: {once: 600_000, calls: [db]}}\nservices: {db: {workers: 50, serviceTime: 10ms}}\n"+
			"variants:\n  a: {policy: {defaults: {circuitBreaker: {disabled: true}}}}\n  b: {services: {db: {retryAfter: "+
			"1s}}, policy: {defaults: {retryBudget: {disabled: true}}}}\n"+
			"faults: [{at: 1s, for: 5s, outage: db}, {at: 3s, for: 9s, outage: db, mode: fail, share: 50%}]\n"))
	if err == nil {
		t.Fatal("taken for a good file")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range []string{`s.yaml:5:15: variants.a.policy: of the policy of "db", retryBudget `,
		"s.yaml:6:35: variants.b.services.db.retryAfter: ",
		`s.yaml:6:49: variants.b.policy: of the policy of "db", circuitBreaker `, "s.yaml:7:46: faults[1].at: ",
		"s.yaml:7:77: faults[1].mode: ", "s.yaml:7:90: faults[1].share: "} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("got:\n%v\nwant %s", err, want)
		}
	}
}
