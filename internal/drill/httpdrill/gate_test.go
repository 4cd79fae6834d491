package httpdrill_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/internal/drill/httpdrill"
)

// gated is a scenario in which clients who know nothing of Abate come back to a service with a gate in front of it.
const gated = `
name: gated
duration: 5s
warmUp: 200ms
clients: {shop: {rate: 40, arrivals: jittered, instances: 10, calls: [{to: pay, naive: true}]}}
services: {pay: {workers: 3, serviceTime: 50ms, queue: {limit: 150}}}
faults: [{at: 1s, for: 1500ms, outage: pay, mode: refuse}]
model: {drain: 300ms}
variants:
  protected:
    policy:
      defaults: {attemptTimeout: 1s, maxRetries: 20, backoff: fixed, initialDelay: 100ms, jitter: none, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}
      protect: {pay: {shed: {concurrency: fixed, maxConcurrency: 3, noQueue: true}}}
    expect: ["shed(pay, after) > 5%", "limit(pay, after) > 2", "response(p50, pay, after) >= 50ms", "rateLimited(pay) <= 0%", "yield(pay, after) > 0%", "queue(pay) < 2"]
`

func TestAGateStandsBeforeTheRealServiceToo(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	r, err := httpdrill.Run(t.Context(), drillOf(t, read(t, gated)))
	if err != nil {
		t.Fatal(err)
	}
	a := &r.Acts[0]
	for _, e := range a.Expectations {
		if !e.Held {
			t.Errorf("%s: %v", e.Text, *e.Value)
		}
	}
	if s := a.Service; s.TurnedAway == 0 || s.Refused != 0 || a.Endings["queue-full"] != 0 {
		t.Errorf("%+v, endings %v", s, a.Endings)
	}
	var report strings.Builder
	r.Report(&report)
	if text := strings.Join(strings.Fields(report.String()), " "); !strings.Contains(
		text, "attempts refused by the service's gate") {
		t.Error(text)
	}
}

// TestNaiveClientsHearNothing compares clients who heed what the gate says with those that do not: that they should
// come back in a second or later. Who does not hear it has used up all attempts in half a second, who heeds it in
// three, if the act lasts that long.
func TestNaiveClientsHearNothing(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	closed := []string{
		"{concurrency: fixed, maxConcurrency: 3, noQueue: true}}}", "{disabled: true}, rateLimit: {limit: 1/s}}}",
		"maxRetries: 20", "maxRetries: 3",
		"duration: 5s", "duration: 3600ms", `["shed(pay, after) > 5%", "limit(pay, after) > 2", "response(p50, pay, after) ` +
			`>= 50ms", "rateLimited(pay) <= 0%", "yield(pay, after) > 0%", "queue(pay) < 2"]`, `["rateLimited(pay) > 1%"]`,
		"at: 1s, for: 1500ms, outage: pay, mode: refuse", "at: 1s, for: 500ms, outage: pay, mode: refuse",
	}
	ended := make(map[string]float64)
	for name, say := range map[string]string{"naive": "naive: true", "heeding": "naive: false"} {
		r, err := httpdrill.Run(t.Context(), drillOf(t, read(t, gated, append(closed, "naive: true", say)...)))
		if err != nil {
			t.Fatal(err)
		}
		a := &r.Acts[0]
		ended[name] = float64(a.Endings["rate-limited"]) / float64(a.Offered)
		if a.Service.TurnedAway == 0 || !a.Expectations[0].Held {
			t.Errorf("%s: %+v, %+v", name, a.Service, a.Expectations)
		}
	}
	if ended["naive"] < 2*ended["heeding"] || ended["naive"] == 0 {
		t.Errorf("the requests that had used up their attempts: %v", ended)
	}
}

func TestWhatAGateCannotBePlayedWith(t *testing.T) {
	for want, change := range map[string][]string{
		"shed.cpu: the drill supports gates that do not look at the processor": {"noQueue: true", "noQueue: true, cpu: 0.9"},
		"priority: the drill supports calls that say no priority":              {"naive: true", "priority: SHEDDABLE"},
	} {
		if got := strings.Join(drillOf(t, read(t, gated, change...)).Problems(), "\n"); !strings.Contains(got, want) {
			t.Errorf("problems %q, want %q", got, want)
		}
	}
	c := drillOf(t, read(t, gated))
	var started atomic.Int32
	c.Via = forwarder(t, &started)
	if got := strings.Join(c.Problems(), "\n"); !strings.Contains(got, "run it without --via") {
		t.Errorf("problems %q", got)
	}
}
