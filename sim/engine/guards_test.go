package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// gone is a service that refuses connections until shortly before the end.
const gone = "services: {s: {serviceTime: 10ms}}\nfaults: [{outage: s, at: 0s, for: 9s, mode: refuse}]"

func TestAnswersAndTimeoutsAtTheSameInstant(t *testing.T) {
	const second = "services: {s: {serviceTime: 1s}}"
	for name, c := range map[string]struct{ policy, fleet string }{
		"attempt timeout": {plain + ", attemptTimeout: 1s", ""},
		"call timeout":    {plain + ", timeout: 1s", ""},
		"both":            {plain + ", attemptTimeout: 1s, timeout: 1s", ""},
		"patience":        {plain, "patience: 1s, "},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := "clients: {f: {once: 2, " + c.fleet + "calls: [s]}}"
			wantEnds(t, run(t, world(c.policy, fleet, second)), "2 answered")
			wantEnds(t, run(t, world(c.policy, fleet, second, "model: {ties: timeout-first}")), "2 timed-out")
			wantEnds(t, run(t, world(c.policy, fleet, "services: {s: {serviceTime: 1.000000001s}}")), "2 timed-out")
			wantEnds(
				t, run(t, world(c.policy, fleet, "services: {s: {serviceTime: 0.999999999s}}", "model: {ties: timeout-first}")),
				"2 answered")
		})
	}
}

// attemptsAt lists the bins in which attempts arrived.
func attemptsAt(r *engine.Record) (at []time.Duration) {
	for b, n := range r.Services[0].Arrived {
		for range n {
			at = append(at, time.Duration(b)*r.Bin)
		}
	}
	return at
}

func TestRetriesComeAfterThePolicysDelays(t *testing.T) {
	const off = ", jitter: none, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}"
	for name, c := range map[string]struct {
		policy string
		want   []time.Duration
	}{
		"fixed": {"maxRetries: 3, backoff: fixed, initialDelay: 500ms" + off, []time.Duration{
			0, 500 * ms, 1000 * ms, 1500 * ms,
		}},
		"exponential": {"maxRetries: 4, initialDelay: 100ms" + off, []time.Duration{
			0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms,
		}},
		"capped": {"maxRetries: 4, initialDelay: 100ms, maxDelay: 200ms" + off, []time.Duration{
			0, 100 * ms, 300 * ms, 500 * ms, 700 * ms,
		}},
		"linear": {"maxRetries: 3, backoff: linear, initialDelay: 100ms" + off, []time.Duration{
			0, 100 * ms, 300 * ms, 600 * ms,
		}},
		"at once": {"maxRetries: 2, backoff: none" + off, []time.Duration{0, 0, 0}},
		"none":    {"maxRetries: 0" + off, []time.Duration{0}},
		"elapsed": {"maxRetries: 9, backoff: fixed, initialDelay: 500ms, maxElapsed: 1200ms" + off,
			[]time.Duration{0, 500 * ms, 1000 * ms}},
		"timeout": {"maxRetries: 9, backoff: fixed, initialDelay: 500ms, timeout: 1200ms" + off,
			[]time.Duration{0, 500 * ms, 1000 * ms}},
		"never on": {"maxRetries: 9, neverRetryOn: [connect-failure]" + off, []time.Duration{0}},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(c.policy, burst("1"), gone))
			wantEnds(t, r, "1 refused")
			if got := attemptsAt(r); !slices.Equal(got, c.want) {
				t.Errorf("attempts at %v, want %v", got, c.want)
			}
			equal(t, "end of the request", r.LastEnd, c.want[len(c.want)-1])
			equal(t, "retries", total(r.Services[0].Retries), int64(len(c.want)-1))
		})
	}
}

func TestFullJitterSpreadsRetries(t *testing.T) {
	r := run(t, world("maxRetries: 1, backoff: fixed, initialDelay: 1s, retryBudget: {disabled: true}, circuitBreaker: "+
		"{disabled: true}", burst("10000"), gone))
	for b, n := range r.Services[0].Retries[:10] {
		within(t, fmt.Sprintf("retries in bin %d", b), float64(n), 1000-4*30, 1000+4*30)
	}
}

func TestTheBudgetBoundsExtraAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		budget string
		most   int64
	}{
		"a tenth":             {"ratio: 0.1, reserve: 0", 100},
		"a tenth and reserve": {"ratio: 0.1, reserve: 10", 110},
		"half":                {"ratio: 0.5, reserve: 0", 500},
		"tokens":              {"kind: tokens, maxTokens: 50", 50},
	} {
		t.Run(name, func(t *testing.T) {
			policy := "maxRetries: 3, initialDelay: 10ms, circuitBreaker: {disabled: true}, retryBudget: {" + c.budget + "}"
			r := run(t, world(policy, "clients: {f: {once: 1000, within: 8s, calls: [s]}}", gone))
			equal(t, "extra attempts of 1000 calls", r.Attempts-1000, c.most)
		})
	}
}

func TestTheBreakerOpensProbesAndRampsUp(t *testing.T) {
	const policy = "maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {failureThreshold: 5, " +
		"waitDurationInOpenState: 1s, waitDurationMultiplier: 1, rampUp: 5s}"
	r := run(t, world(policy, "duration: 20s", "clients: {f: {rate: 100, arrivals: even, calls: [s]}}",
		"services: {s: {serviceTime: 1ms}}", "faults: [{outage: s, at: 2s, for: 3s, mode: refuse}]"))
	f, s := &r.Fleets[0], service1(t, r)
	second := time.Second
	equal(t, "failures until it opens, in the first second", between(r, s.Arrived, 2*second, 3*second), 5)
	within(t, "probes in the rest of the outage", float64(between(r, s.Arrived, 3*second, 5*second)), 1, 4)
	equal(t, "refusals before the outage", between(r, f.Refused, 0, 2*second), 0)
	within(t, "refusals in the first second", float64(between(r, f.Refused, 2*second, 3*second)), 94, 96)
	var early, late int64
	begin := 6500 * ms // by now the last wait, at most 1.25 s, is over and three probes have succeeded
	early, late = between(r, f.Refused, begin, begin+2*second), between(r, f.Refused, begin+2*second, begin+4*second)
	if early <= late || late == 0 {
		t.Errorf("%d refusals in the first two seconds of the ramp-up, %d in the next two: they should fade away",
			early, late)
	}
	equal(t, "refusals after the ramp-up", between(r, f.Refused, 12*second, 20*second), 0)
	equal(t, "refused", f.Ends[engine.CircuitOpen], total(f.Refused))
}

func TestTheBulkheadQueuesAndRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		bulkhead, ends string
		largest        time.Duration
		last           time.Duration
	}{
		"no queue":      {"maxConcurrentCalls: 2, noQueue: true", "2 answered, 3 bulkhead-full", 100 * ms, 100 * ms},
		"a queue":       {"maxConcurrentCalls: 2", "5 answered", 300 * ms, 300 * ms},
		"a short queue": {"maxConcurrentCalls: 1, maxQueue: 2", "3 answered, 2 bulkhead-full", 300 * ms, 300 * ms},
		"short patience": {"maxConcurrentCalls: 1, maxQueue: 4, maxWait: 150ms, order: fifo", "2 answered, 3 bulkhead-full",
			200 * ms, 200 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(plain+", bulkhead: {"+c.bulkhead+"}", burst("5"), "services: {s: {serviceTime: 100ms}}"))
			wantEnds(t, r, c.ends)
			_, largest := latencies(r)
			equal(t, "largest latency", largest, c.largest)
			equal(t, "end of the last request", r.LastEnd, c.last)
		})
	}
}

func TestACallLetsItsBulkheadPermitGoWhileItBacksOff(t *testing.T) {
	for holds, end := range map[string]time.Duration{"": 2 * time.Second, ", holdDuringBackoff: true": 4 * time.Second} {
		policy := thrice("1s") + ", bulkhead: {maxConcurrentCalls: 1, maxQueue: 5, maxWait: 9s" + holds + "}"
		r := run(t, world(policy, burst("2"), gone))
		wantEnds(t, r, "2 refused")
		equal(t, "end of the second request of two with two back-offs each"+holds, r.LastEnd, end)
	}
}

func TestHedgesAreSentAndLosersCancelled(t *testing.T) {
	const policy = plain + ", hedge: {delay: 50ms}"
	const slow = "services: {s: {serviceTime: 200ms}}"
	for name, c := range map[string]struct {
		model         string
		work, waste   time.Duration
		served, spent int64
	}{
		"ignored":    {"", 400 * ms, 200 * ms, 1, 1},
		"propagates": {"model: {cancellation: propagates}", 350 * ms, 150 * ms, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(policy, burst("1"), slow, c.model))
			wantEnds(t, r, "1 answered")
			s := service1(t, r)
			_, largest := latencies(r)
			equal(t, "latency", largest, 200*ms)
			equal(t, "hedges", r.Edges[0].Hedges, 1)
			equal(t, "attempts", r.Attempts, 2)
			equal(t, "work", time.Duration(total(s.WorkNS)), c.work)
			equal(t, "work for nobody", time.Duration(total(s.WasteNS)), c.waste)
			equal(t, "served", total(s.Served), c.served)
			equal(t, "wasted", total(s.Wasted), c.spent)
		})
	}
	r := run(t, world(policy, burst("1"), "services: {s: {serviceTime: 40ms}}"))
	equal(t, "hedges of a quick answer", r.Edges[0].Hedges, 0)
}

func TestAHedgeCutsTheTail(t *testing.T) {
	const bimodal = "services: {s: {serviceTime: '90% 10ms, 10% 1s'}}"
	hedged := run(t, world(plain+", hedge: {delay: 50ms}", burst("10000"), bimodal))
	unhedged := run(t, world(plain, burst("10000"), bimodal))
	share := func(r *engine.Record) float64 { return 1 - float64(between(r, r.Fleets[0].Answered, 0, 900*ms))/1e4 }
	within(t, "slow answers without hedges", share(unhedged), 0.1-4*0.003, 0.1+4*0.003)
	within(t, "slow answers with hedges", share(hedged), 0.01-4*0.001, 0.01+4*0.001)
	within(t, "hedges", float64(hedged.Edges[0].Hedges)/1e4, 0.1-4*0.003, 0.1+4*0.003)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	policy := "maxRetries: 1, backoff: fixed, initialDelay: 100ms, jitter: none, retryBudget: {disabled: true}, " +
		"circuitBreaker: {disabled: true}"
	busy := func(more string) time.Duration {
		r := run(t, world(policy, burst("2"), "services: {s: {workers: 1, serviceTime: 50ms, queue: {none: true}"+more+"}}"))
		wantEnds(t, r, "2 answered")
		_, largest := latencies(r)
		return largest
	}
	equal(t, "latency of the retry", busy(""), 150*ms)
	within(t, "latency of the retry, in s", busy(", retryAfter: 2s").Seconds(), 2.05, 2.55)
}

func TestOverloadDrawsItsOwnCost(t *testing.T) {
	const policy = "maxRetries: 1, initialDelay: 10ms, circuitBreaker: {disabled: true}, retryBudget: {ratio: 0.1, " +
		"reserve: 0, overloadCost: 2}"
	const load = "clients: {f: {once: 1000, within: 8s, calls: [s]}}\nservices: {s: {serviceTime: 1ms}}\nfaults: " +
		"[{outage: s, at: 0s, for: 9s, mode: "
	equal(t, "retries of refused connections", run(t, world(policy, load+"refuse}]")).Attempts-1000, 100)
	equal(t, "retries of 503", run(t, world(policy, load+"fail}]")).Attempts-1000, 50)
}

func TestAPolicyOfOneEdge(t *testing.T) {
	s := read(t, `
duration: 10s
warmUp: 0s
clients: {f: {once: 1, calls: [m, s]}}
services: {m: {calls: [{to: s, optional: true}]}, s: {errorRate: 100%}}
variants:
  only: {policy: {defaults: {maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {disabled: true}}, services: {s: {maxRetries: 1}, "m -> s": {maxRetries: 4}}}}
`)
	r := playVariant(t, s, 0, 1)
	equal(t, "attempts of m at s", edge(t, r, "m", "s").Attempts, 5)
	equal(t, "attempts of f at s", edge(t, r, "f", "s").Attempts, 2)
	equal(t, "attempts of f at m", edge(t, r, "f", "m").Attempts, 1)
}

// n attempts at a service that fails with probability p: 1 − pⁿ succeed, and it takes (1 − pⁿ)/(1 − p) attempts.
func TestAttemptsOfIndependentFailures(t *testing.T) {
	const n = 20_000
	r := run(t, world("maxRetries: 3, backoff: fixed, initialDelay: 1ms, jitter: none, retryBudget: {disabled: true}, "+
		"circuitBreaker: {disabled: true}",
		"clients: {f: {once: 20000, calls: [s]}}", "services: {s: {errorRate: 50%}}"))
	success := 1 - math.Pow(0.5, 4)
	within(t, "success", float64(r.Fleets[0].Ends[engine.Answered])/n, success-4*math.Sqrt(success*(1-success)/n),
		success+4*math.Sqrt(success*(1-success)/n))
	// sd of a request's attempts is 1.05
	within(t, "attempts per request", float64(r.Attempts)/n, 1.875-4*1.1/math.Sqrt(n), 1.875+4*1.1/math.Sqrt(n))
}
