package engine_test

import (
	"testing"
	"time"
)

const (
	ignored    = "model: {cancellation: ignored}"
	propagates = "model: {cancellation: propagates}"
)

// Three requests meet one worker of 400 ms. The two callers in the queue leave after 100 ms, the one at work after 300
// ms.
func TestAbandonedWorkCostsCapacityUnlessCancellationPropagates(t *testing.T) {
	for name, c := range map[string]struct {
		model       string
		work, waits time.Duration
		wasted      int64
	}{
		"ignored":    {ignored, 1200 * ms, 1200 * ms, 3}, // waits 0 + 400 + 800
		"propagates": {propagates, 300 * ms, 0, 1},       // the worker is free at once, and those in the queue are gone
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(plain, "clients: {f: {once: 1, patience: 300ms, calls: [s]}, g: {once: 2, patience: 100ms, "+
				"calls: [s]}}", "services: {s: {workers: 1, serviceTime: 400ms}}", c.model))
			wantEnds(t, r, "1 timed-out")
			s := service1(t, r)
			equal(t, "work", time.Duration(total(s.WorkNS)), c.work)
			equal(t, "work for nobody", time.Duration(total(s.WasteNS)), c.work)
			equal(t, "waits of those whose work began", time.Duration(total(s.WaitNS)), c.waits)
			equal(t, "wasted", total(s.Wasted), c.wasted)
			equal(t, "errors", total(s.Errors), 0)
		})
	}
}

// The first request holds the only worker until its caller leaves; then, with cancellation, it is the second one's.
func TestAWorkerThatCancellationFreesTakesTheNext(t *testing.T) {
	const lines = "clients: {f: {once: 1, patience: 200ms, calls: [s]}, g: {once: 1, calls: [s]}}\nservices: {s: " +
		"{workers: 1, serviceTime: 500ms}}"
	_, largest := latencies(run(t, world(plain, lines, ignored)))
	equal(t, "latency of the patient one, ignored", largest, 1000*ms)
	_, largest = latencies(run(t, world(plain, lines, propagates)))
	equal(t, "latency of the patient one, propagates", largest, 700*ms)
}

func TestCancellationReachesTheCallsBelow(t *testing.T) {
	const lines = "clients: {f: {once: 1, patience: 200ms, calls: [a]}}\nservices: {a: {workers: 1, calls: [b]}, b: " +
		"{workers: 1, calls: [c]}, c: {workers: 1, serviceTime: 900ms}}"
	for model, want := range map[string]time.Duration{ignored: 900 * ms, propagates: 200 * ms} {
		r := run(t, world(plain, lines, model))
		for i := range r.Services {
			s := &r.Services[i]
			equal(t, model+": time that "+s.Name+" held its worker", time.Duration(total(s.WorkNS)), want)
		}
		a, c := service(t, r, "a"), service(t, r, "c")
		equal(t, model+": work of a for nobody", time.Duration(total(a.WasteNS)), want)
		if model == propagates { // else its own caller, a worker of b, has never left
			equal(t, model+": work of c for nobody", time.Duration(total(c.WasteNS)), want)
		}
	}
}

// The first request's caller leaves while its call below holds the bulkhead's only permit; in the second scenario two
// more leave while they wait for it. A permit that did not come back would keep the last request out.
func TestCancellationGivesBulkheadPermitsBack(t *testing.T) {
	const lines = `
clients: {f: {once: 2, patience: 200ms, calls: [m]}, g: {curve: [{at: 0s, rate: 0}, {at: 1s, rate: 1}, {at: 2s, rate: 0}], arrivals: even, calls: [m]}}
services: {m: {calls: [s]}, s: {workers: 1, serviceTime: 700ms}}
variants: {only: {policy: {defaults: {` + plain + `}, services: {s: {bulkhead: {maxConcurrentCalls: 1, maxQueue: 5, maxWait: 100ms}}}}}}
`
	for model, want := range map[string]string{ignored: "1 answered", propagates: "1 answered"} {
		r := playVariant(t, read(t, "duration: 10s\nwarmUp: 0s\n"+model+lines), 0, 1)
		wantEnds(t, r, "1 bad-gateway, 1 timed-out") // the one that waited in the bulkhead's queue is refused after 100 ms
		equal(t, model+": the later request", ends(r.Fleets[1].Ends), want)
	}
	const waiting = `
clients: {f: {once: 1, patience: 300ms, calls: [m]}, h: {once: 2, patience: 200ms, calls: [m]}, g: {curve: [{at: 0s, rate: 0}, {at: 1s, rate: 1}, {at: 2s, rate: 0}], arrivals: even, calls: [m]}}
services: {m: {calls: [s]}, s: {workers: 1, serviceTime: 700ms}}
variants: {only: {policy: {defaults: {` + plain + `}, services: {s: {bulkhead: {maxConcurrentCalls: 1, maxQueue: 5, maxWait: 9s}}}}}}
`
	r := playVariant(t, read(t, "duration: 10s\nwarmUp: 0s\n"+propagates+waiting), 0, 1)
	wantEnds(t, r, "1 timed-out")
	equal(t, "those in the bulkhead's queue", ends(r.Fleets[1].Ends), "2 timed-out")
	equal(t, "the later request", ends(r.Fleets[2].Ends), "1 answered")
	equal(t, "attempts: of the first and the last", edge(t, r, "m", "s").Attempts, 2)
}

func TestACancelledAttemptClosesItsConnection(t *testing.T) {
	const lines = "clients: {f: {once: 1, calls: [{to: s, pool: 1}]}}\nservices: {s: {workers: 1, serviceTime: 300ms, " +
		"connections: {max: 5, cost: 10ms}}}"
	policy := "maxRetries: 4, backoff: fixed, jitter: none, initialDelay: 50ms, attemptTimeout: 100ms, retryBudget: " +
		"{disabled: true}, circuitBreaker: {disabled: true}"
	r := run(t, world(policy, lines, propagates))
	wantEnds(t, r, "1 timed-out")
	s := service1(t, r)
	equal(t, "work: five attempts of 90 ms after connecting", time.Duration(total(s.WorkNS)), 450*ms)
	equal(t, "connections at the end", s.Conns[len(s.Conns)-1], 0)
}

// A call that once waited for a permit, has let it go for a back-off and is cancelled then has no permit to give back:
// a bulkhead that gets one that is not out panics.
func TestACallThatIsCancelledInItsBackOffGivesNothingBack(t *testing.T) {
	r := playVariant(t, read(t, "duration: 20s\nwarmUp: 0s\nmodel: {cancellation: propagates}\n"+
		"clients: {f: {rate: 6, patience: 500ms, calls: [m]}}\n"+
		"services: {m: {calls: [s]}, s: {workers: 20, serviceTime: 100ms, errorRate: 100%}}\n"+
		"variants: {only: {policy: {defaults: {"+plain+"}, services: {s: {"+thrice("300ms")+
		", bulkhead: {maxConcurrentCalls: 1, maxWait: 400ms}}}}}}\n"), 0, 1)
	if edge(t, r, "m", "s").Attempts == 0 || total(r.Fleets[0].Answered) > 0 {
		t.Errorf("%d attempts, %d answers", r.Attempts, total(r.Fleets[0].Answered))
	}
}
