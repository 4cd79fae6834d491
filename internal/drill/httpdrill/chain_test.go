package httpdrill_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/internal/drill/httpdrill"
)

// chain is two layers of three attempts each. The one behind refuses for a while.
const chain = `
name: chain
duration: 5s
warmUp: 200ms
clients: {shop: {rate: 25, arrivals: jittered, instances: 5, calls: [pay]}}
services:
  pay: {workers: 200, serviceTime: 1ms, queue: {limit: 100}, callsFirst: true, calls: [db]}
  db: {}
faults: [{at: 1s, for: 2s, outage: db, mode: fail}] # long beside what a busy machine may stop for
model: {drain: 300ms}
variants:
  each:
    policy:
      defaults: &thrice {attemptTimeout: 5s, maxRetries: 2, backoff: fixed, initialDelay: 20ms, jitter: none, retryOwner: none, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}
    expect: ["amplification(db, during) > 7", "amplification(db, during) <= 9", "amplification(pay, during) > 2.4"]
  nearest:
    policy: {defaults: &shared {<<: *thrice, retryOwner: nearest}}
    expect: ["amplification(db, during) > 2.4", "amplification(db, during) <= 3", "amplification(pay, during) < 2.2"]
  edge:
    policy: {defaults: {<<: *thrice, retryOwner: edge}}
    expect: ["amplification(db, during) > 2.4", "amplification(db, during) <= 3", "amplification(pay, during) > 2.4"]
  naive-shop:
    naive: [shop]
    policy: {defaults: *shared}
    expect: ["amplification(db, during) > 7", "amplification(db, during) <= 9"]
  naive-service:
    naive: [pay]
    policy: {defaults: *shared}
    expect: ["amplification(db, during) > 7", "amplification(db, during) <= 9"]
`

// heldForItsPace judges an expectation of an outage of 2 s by how slow the machine was: what was due while it stood
// still may begin before the outage and be sent in it, the outage too may begin late, and of a call that takes long
// some attempts come after it.
func heldForItsPace(t *testing.T, a *httpdrill.ActResult, e drill.Expected) bool {
	t.Helper()
	words := strings.Fields(e.Text)
	bound, err := strconv.ParseFloat(words[len(words)-1], 64)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(e.Text, ">") {
		return *e.Value > bound*(1-(a.FailedP99+a.LateSeconds)/2)
	}
	return *e.Value <= bound*(1+a.LateSeconds/2)
}

// TestLayersShareTheirAttemptsOverRealSocketsToo holds the drill to the simulator's numbers: both are held to the same
// expectations.
func TestLayersShareTheirAttemptsOverRealSocketsToo(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	s := read(t, chain)
	c := drillOf(t, s, "each", "nearest", "edge", "naive-shop", "naive-service")
	r, err := httpdrill.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Compare(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	for i := range r.Acts {
		for _, e := range r.Acts[i].Expectations {
			if !e.Held && !heldForItsPace(t, &r.Acts[i], e) {
				t.Errorf("%s: %s: %v", r.Acts[i].Act, e.Text, *e.Value)
			}
		}
		for _, row := range r.Comparison.Acts[i].Rows[1:3] {
			t.Logf("%s: %s %.3f, simulated %.3f", r.Acts[i].Act, row.Name, *row.Drill, *row.Median)
		}
	}
}
