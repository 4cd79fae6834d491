package engine_test

import (
	"testing"

	"github.com/abate-go/abate/sim/engine"
)

// The first fails always, the second every other time, the third never.
const choices = `
clients: {shop: {rate: 200, calls: [{to: a, else: [b, c]}]}}
services: {a: {errorRate: 1}, b: {errorRate: 0.5}, c: {}}
`

func TestACallThatFailsIsMadeElsewhere(t *testing.T) {
	r := run(t, world(plain, choices))
	equal(t, "requests answered", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
	first, second, third := edge(t, r, "shop", "a"), edge(t, r, "shop", "b"), edge(t, r, "shop", "c")
	equal(t, "calls of b", second.Calls, first.Calls)
	equal(t, "calls of c", third.Calls, second.Calls-second.Ends[engine.Answered])
	within(t, "calls of c", float64(third.Calls), 0.4*float64(second.Calls), 0.6*float64(second.Calls))
	equal(t, "requests that need b when all is well", r.Services[1].Visits[0], 0)
}

func TestAFailureThatIsNotTakenGoesOnToTheNext(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {rate: 50, calls: [{to: a, else: [{to: b, on: [timeout, connection]}, {to: c, on: [error]}]}]}}
services: {a: {errorRate: 1}, b: {}, c: {}}
`))
	equal(t, "calls of b", edge(t, r, "shop", "b").Calls, 0)
	equal(t, "calls of c", edge(t, r, "shop", "c").Calls, edge(t, r, "shop", "a").Calls)
}

func TestWhatNobodyTakesFailsTheRequest(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {once: 10, calls: [{to: a, else: [{to: b, on: [miss, overload, guard]}]}]}}
services: {a: {errorRate: 1}, b: {}}
`))
	wantEnds(t, r, "10 server-error")
}

// The first takes its timeout, the second its own: 100 ms and 300 ms.
func TestEachChoiceHasItsOwnTimeout(t *testing.T) {
	r := run(t, `
duration: 10s
warmUp: 0s
clients: {shop: {once: 10, calls: [{to: a, else: [b]}]}}
services: {a: {serviceTime: 1s}, b: {serviceTime: 1s}}
variants:
  only:
    policy: {defaults: {`+plain+`}, services: {"shop -> a": {attemptTimeout: 100ms}, b: {attemptTimeout: 300ms}}}
`)
	wantEnds(t, r, "10 timed-out")
	equal(t, "the last request's end", r.LastEnd, 400*ms)
}

func TestCallsAtOnceFallBackEachForItself(t *testing.T) {
	r := run(t, world(plain, `
clients: {shop: {rate: 50, parallel: true, calls: [{to: a, times: 2, else: [b]}, {to: c, else: [d]}]}}
services: {a: {errorRate: 0.5}, b: {}, c: {errorRate: 1}, d: {}}
`))
	equal(t, "requests answered", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
	equal(t, "calls of a", edge(t, r, "shop", "a").Calls, 2*total(r.Fleets[0].Offered))
	a := edge(t, r, "shop", "a")
	equal(t, "calls of b", edge(t, r, "shop", "b").Calls, a.Calls-a.Ends[engine.Answered])
	equal(t, "calls of d", edge(t, r, "shop", "d").Calls, total(r.Fleets[0].Offered))
}

// Where a guard refuses to send anything, the other choice is asked without any delay.
func TestAnOpenCircuitLeadsElsewhere(t *testing.T) {
	r := run(t, world("maxRetries: 0, retryBudget: {disabled: true}, "+
		"circuitBreaker: {failureRateThreshold: 0.5, slidingWindow: 10, minimumNumberOfCalls: 10}", `
clients: {shop: {rate: 50, calls: [{to: a, else: [b]}]}}
services: {a: {errorRate: 1}, b: {}}
`))
	equal(t, "requests answered", r.Fleets[0].Ends[engine.Answered], total(r.Fleets[0].Offered))
	if open := edge(t, r, "shop", "a").Ends[engine.CircuitOpen]; open == 0 {
		t.Error("the circuit never opened")
	}
}
