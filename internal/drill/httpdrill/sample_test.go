package httpdrill_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/drill/httpdrill"
	"github.com/abate-go/abate/sim/scenario"
)

// small is the built-in drill on a sixth of the load, in a fifth of the time.
const small = `
name: small
duration: 4500ms
warmUp: 200ms
clients: {shop: {rate: 40, arrivals: jittered, instances: 10, calls: [pay]}}
services:
  pay: {workers: 3, serviceTime: 50ms, queue: {limit: 150}, callsFirst: true, calls: [db]}
  db: {}
faults:
  - {at: 1s, for: 1500ms, outage: db, mode: blackhole}
model: {drain: 300ms}
variants:
  storm:
    policy:
      defaults: &naive {attemptTimeout: 300ms, retryOwner: none, maxRetries: 3, backoff: fixed, initialDelay: 200ms, jitter: none, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}
      services: {db: &db {attemptTimeout: 200ms, maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}}
    expect: [collapse > 90%]
  guarded:
    policy:
      defaults: {attemptTimeout: 300ms, maxRetries: 3, retryBudget: {ratio: 0.1, reserve: 0}, circuitBreaker: {failureThreshold: 3, waitDurationInOpenState: 200ms, waitDurationMultiplier: 1, rampUp: 200ms}}
      services: {db: *db}
    expect: [amplification(pay) < 1.5]
`

// read parses a scenario after some replacements in its text.
func read(t *testing.T, text string, oldnew ...string) *scenario.Scenario {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the scenario has no %q", oldnew[i])
		}
	}
	s, err := scenario.Parse("small.yaml", []byte(strings.NewReplacer(oldnew...).Replace(text)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drillOf is the drill of such a scenario, or of some of its acts.
func drillOf(t *testing.T, s *scenario.Scenario, acts ...string) httpdrill.Config {
	t.Helper()
	c := httpdrill.New(s)
	if acts != nil {
		c.Acts = acts
	}
	return c
}
