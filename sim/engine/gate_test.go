package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/engine"
)

// gated is a scenario of 10 s, in which the service s stands behind gates with a protection.
func gated(policy, protection string, lines ...string) string {
	text := world(policy, lines...)
	return strings.Replace(text, "{only: {policy: {", "{only: {policy: {protect: {s: {"+protection+"}}, ", 1)
}

// two lets two requests in at once, and three wait.
const two = "shed: {concurrency: fixed, maxConcurrency: 2, maxQueue: 3, queueTarget: 150ms, queueInterval: 250ms}"

func TestAGateAdmitsQueuesAndRefuses(t *testing.T) {
	const slow = "services: {s: {serviceTime: 100ms}}"
	for name, c := range map[string]struct {
		protection, service, ends string
		reason                    shed.Reason
		last                      time.Duration
	}{
		"no gate's settings": {"shed: {disabled: true}", slow, "10 answered", 0, 100 * ms},
		"limit and queue":    {two, slow, "5 answered, 5 overloaded", shed.QueueFull, 300 * ms},
		"limit without queue": {"shed: {concurrency: fixed, maxConcurrency: 2, noQueue: true}", slow,
			"2 answered, 8 overloaded", shed.QueueFull, 100 * ms},
		"short patience": {
			strings.Replace(two, "250ms", "150ms", 1), slow, "4 answered, 6 overloaded", shed.QueueFull, 200 * ms,
		},
		"shadow": {
			"shed: {concurrency: fixed, maxConcurrency: 2, shadow: true}", slow, "10 answered", 0, 100 * ms,
		},
		"limit above workers": {
			two, "services: {s: {workers: 1, serviceTime: 100ms}}", "4 answered, 6 overloaded", shed.QueueDelay, 400 * ms,
		},
		"the queue behind it": {two, "services: {s: {workers: 1, serviceTime: 100ms, queue: {none: true}}}",
			"1 answered, 9 queue-full", 0, 100 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, gated(plain, c.protection, burst("10"), c.service))
			wantEnds(t, r, c.ends)
			equal(t, "end of the last request", r.LastEnd, c.last)
			equal(t, "refused by the gate", total(r.Services[0].Shed), r.Fleets[0].Ends[engine.Overloaded])
			if c.reason != shed.None && r.Services[0].Reasons[c.reason] == 0 {
				t.Errorf("nothing was refused for %v: %v", c.reason, r.Services[0].Reasons)
			}
			equal(t, "times of admissions", r.Services[0].GateWait[0].Total, 10-r.Fleets[0].Ends[engine.Overloaded])
		})
	}
}

func TestTheGateOfAReplicaIsItsOwn(t *testing.T) {
	const limit = "shed: {disabled: true}, rateLimit: {limit: 1/s, burst: 5%s}"
	replicas := "services: {s: {replicas: 4, balancing: round-robin, serviceTime: 1ms}}"
	wantEnds(t, run(t, gated(plain, fmt.Sprintf(limit, ""), burst("100"), replicas)), "20 answered, 80 rate-limited")
	shared := strings.Replace(gated(plain, fmt.Sprintf(limit, ", fleet: true"), burst("100"), replicas), "protect:",
		"redis: {embedded: true}, protect:", 1)
	wantEnds(t, run(t, shared), "5 answered, 95 rate-limited")
	equal(t, "limit of four gates", value(t, run(t, gated(plain, two, burst("1"), replicas)), "limit(s) > 1"), 8)
}

func TestKeysOfARateLimitTellCallersApart(t *testing.T) {
	const fleets = "clients: {f: {once: 30, instances: 3, calls: [s]}, g: {once: 10, calls: [s]}}"
	for name, c := range map[string]struct {
		protection string
		limited    int64 // of 40
	}{
		"one for all":          {"", 38},
		"instances by address": {", key: ip", 32},
		"callers, by address":  {", key: caller", 32},
		"callers, by a header": {
			", key: caller}, caller: 'header:X-Tenant', trustedPeers: [10.0.0.0/8], priority: {default: CRITICAL", 36,
		},
		"a header of its own": {
			", key: 'header:X-Tenant'}, trustedPeers: [10.0.0.0/8], priority: {default: CRITICAL", 36,
		},
		"a cost of two":           {", cost: 2", 39},
		"a limit that is watched": {", shadow: true", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, gated(plain, "shed: {disabled: true}, rateLimit: {limit: 1/m, burst: 2"+c.protection+"}", fleets,
				"services: {s: {}}"))
			equal(t, "refused", total(r.Services[0].Limited), c.limited)
			within(t, "rateLimited(s)", value(t, r, "rateLimited(s) < 1%"), float64(c.limited)/40-1e-9,
				float64(c.limited)/40+1e-9)
		})
	}
}

func TestATokenBucketAdmitsItsBurstAndItsRate(t *testing.T) {
	r := run(t, gated(plain, "shed: {disabled: true}, rateLimit: {limit: 20/s, burst: 50}",
		"clients: {f: {rate: 400, arrivals: even, calls: [s]}}", "services: {s: {}}"))
	within(t, "admitted in 10 s", float64(r.Fleets[0].Ends[engine.Answered]), 50+20*10-1, 50+20*10)
}

// A caller under a guard obeys what the gate answers; one that is naive comes back after its own 100 ms.
func TestCallersHeedWhatAGateAnswers(t *testing.T) {
	const once = "shed: {disabled: true}, rateLimit: {limit: 1/s, burst: 1}"
	policy := "maxRetries: 1, backoff: fixed, initialDelay: 100ms, jitter: none, retryBudget: {disabled: true}, " +
		"circuitBreaker: {disabled: true}"
	calls := func(more string) string { return "clients: {f: {once: 2, calls: [{to: s" + more + "}]}}" }
	heeds := run(t, gated(policy, once, calls(""), "services: {s: {}}"))
	wantEnds(t, heeds, "2 answered")
	within(t, "end of the one that was told to wait, in s", heeds.LastEnd.Seconds(), 1, 3)
	naive := run(t, gated(policy, once, calls(", naive: true"), "services: {s: {}}"))
	wantEnds(t, naive, "1 answered, 1 rate-limited")
	equal(t, "end of the one that did not listen", naive.LastEnd, 100*ms)
}

func TestCallersThatAreToldNotToComeAgainDoNot(t *testing.T) {
	const closed = "shed: {concurrency: fixed, maxConcurrency: 1, noQueue: true}"
	policy := thrice("1s")
	fleet := func(more string) string {
		return "clients: {f: {once: 1000, within: 8s, calls: [{to: s" + more + "}]}}"
	}
	const stuck = "services: {s: {serviceTime: 1h}}"
	told := run(t, gated(policy, closed, fleet(""), stuck))
	naive := run(t, gated(policy, closed, fleet(", naive: true"), stuck))
	equal(t, "attempts of those who do not listen", naive.Attempts, 3*1000-2)
	// Nearly all of the second attempts: they come spread over half a minute, so that the first ones are told when to
	// come, and not yet to stay away.
	within(t, "attempts of those who do", float64(told.Attempts), 1000, 2200)
}

func TestADeadlineThatHasPassedIsRefused(t *testing.T) {
	policy := plain + ", attemptTimeout: 50ms"
	fleet := func(more string) string {
		return "clients: {f: {once: 1, calls: [{to: s, latency: 60ms" + more + "}]}}"
	}
	const service = "services: {s: {workers: 1, serviceTime: 10ms}}"
	r := run(t, gated(policy, two, fleet(""), service))
	equal(t, "refused as expired", r.Services[0].Reasons[shed.Expired], 1)
	equal(t, "work", total(r.Services[0].WorkNS), 0)
	r = run(t, gated(policy, two, fleet(", naive: true"), service))
	equal(t, "refused without a deadline", total(r.Services[0].Shed), 0)
	equal(t, "work for nobody", total(r.Services[0].Wasted), 1)
	r = run(t, gated(plain, "timeout: 150ms, "+two, burst("5"), "services: {s: {serviceTime: 100ms}}"))
	wantEnds(t, r, "4 answered, 1 expired") // it may not wait until its turn comes, 200 ms after it came
}

func TestWhatMattersLessIsRefusedFirst(t *testing.T) {
	const limit = "shed: {concurrency: fixed, maxConcurrency: 10, maxQueue: 5}"
	const service = "services: {s: {workers: 10, serviceTime: exponential 50ms}}"
	fleet := func(name, priority string) string {
		return name + ": {rate: 300, calls: [{to: s" + priority + "}]}"
	}
	r := run(
		t, gated(plain, limit, "clients: {"+fleet("f", ", priority: SHEDDABLE")+", "+fleet(
			"g", ", priority: CRITICAL_PLUS")+"}", service))
	low, high := value(t, r, "goodput(f) > 1%"), value(t, r, "goodput(g) > 1%")
	if low > high/4 {
		t.Errorf("%.0f%% of the sheddable requests were answered, %.0f%% of the critical ones", 100*low, 100*high)
	}
	// One that says nothing has the default of the gate.
	r = run(t, gated(plain, limit+", priority: {default: SHEDDABLE}",
		"clients: {"+fleet("f", "")+", "+fleet("g", ", priority: CRITICAL")+"}", service))
	if low, high = value(t, r, "goodput(f) > 1%"), value(t, r, "goodput(g) > 1%"); low > high/4 {
		t.Errorf("%.0f%% of the requests with a sheddable default were answered, %.0f%% of the critical ones",
			100*low, 100*high)
	}
}

func TestAServicePassesThePriorityOfItsRequestsOn(t *testing.T) {
	const limit = "shed: {concurrency: fixed, maxConcurrency: 10, maxQueue: 5}"
	fleets := "clients: {f: {rate: 300, calls: [{to: m, priority: SHEDDABLE}]}, g: {rate: 300, calls: [{to: m, " +
		"priority: CRITICAL_PLUS}]}}"
	of := func(call string) (low, high float64) {
		r := run(t,
			gated(plain, limit, fleets, "services: {m: {calls: ["+call+"]}, s: {workers: 10, serviceTime: exponential 50ms}}"))
		return value(t, r, "goodput(f) > 1%"), value(t, r, "goodput(g) > 1%")
	}
	if low, high := of("s"); low > high/4 {
		t.Errorf("through a service %.0f%% of the sheddable requests were answered, %.0f%% of the critical ones",
			100*low, 100*high)
	}
	for _, call := range []string{"{to: s, naive: true}", "{to: s, priority: CRITICAL}"} {
		if low, high := of(call); low < high/2 {
			t.Errorf("with %s %.0f%% of the sheddable requests were answered, %.0f%% of the critical ones: nobody should tell "+
				"them apart", call, 100*low, 100*high)
		}
	}
}

func TestLaterAttemptsAreRefusedFirst(t *testing.T) {
	const limit = "shed: {concurrency: fixed, maxConcurrency: 10, maxQueue: 5, maxRetryShare: 10}"
	firsts := func(more string) float64 {
		r := run(t, gated(thrice("50ms"), limit, "clients: {f: {rate: 400, calls: [{to: s, "+more+"}]}}",
			"services: {s: {workers: 10, serviceTime: exponential 50ms}}"))
		return float64(r.Services[0].Reasons[shed.LaterAttempt])
	}
	if n := firsts("times: 1"); n == 0 {
		t.Error("no later attempt was refused for being one")
	}
	equal(t, "refusals of those who do not say which attempt it is", firsts("naive: true"), 0)
}

func TestNoCallerTakesAllPlaces(t *testing.T) {
	fleets := "clients: {loud: {rate: 2000, calls: [s]}, quiet: {rate: 50, calls: [s]}}"
	quiet := func(more string) float64 {
		r := run(t, gated(plain, "shed: {concurrency: fixed, maxConcurrency: 10, maxQueue: 10"+more+"}", fleets,
			"services: {s: {workers: 10, serviceTime: exponential 50ms}}"))
		return value(t, r, "goodput(quiet) > 1%")
	}
	if fair, unfair := quiet(", maxCallerShare: 0.5"), quiet(""); fair < 2*unfair {
		t.Errorf("the quiet caller had %.0f%% of its answers with fairness, %.0f%% without", 100*fair, 100*unfair)
	}
}

func TestAGateIsNewAfterARestart(t *testing.T) {
	r := run(t, gated(plain, two, "clients: {f: {once: 10, within: 500ms, calls: [s]}}",
		"services: {s: {serviceTime: 5s}}", "faults: [{restart: s, at: 1s, for: 1s}]"))
	wantEnds(t, r, "2 reset, 8 overloaded")
	r = run(t, gated(plain, two, "clients: {f: {rate: 50, arrivals: even, calls: [s]}}",
		"services: {s: {serviceTime: 10ms}}", "faults: [{restart: s, at: 2s, for: 1s}, {restart: s, at: 5s, for: 1s}]"))
	equal(t, "answered in the last second: no permit was lost",
		between(r, r.Fleets[0].Answered, 9*time.Second, 10*time.Second), 50)
	const waiting = "shed: {concurrency: fixed, maxConcurrency: 2, maxQueue: 3, queueInterval: 5s, queueTarget: 5s}"
	r = run(t, gated(plain, waiting, burst("5"), "services: {s: {serviceTime: 5s}}",
		"faults: [{restart: s, at: 1s, for: 1s}]"))
	wantEnds(t, r, "5 reset")
}

func TestCallersThatLeaveGiveTheirPlacesBack(t *testing.T) {
	const gate = "shed: {concurrency: fixed, maxConcurrency: 1, maxQueue: 9, queueInterval: 5s, queueTarget: 5s}"
	// The first is worked on for 2 s, the second waits, and both leave after 500 ms. The third comes after that.
	fleet := "clients: {f: {once: 2, calls: [{to: s, naive: true}]}, g: {curve: [{at: 0s, rate: 0}, {at: 1s, rate: 10}, " +
		"{at: 1100ms, rate: 0}], arrivals: even, calls: [{to: s, naive: true}]}}"
	for model, want := range map[string]int64{"ignored": 0, "propagates": 1} {
		r := run(t, gated(plain+", attemptTimeout: 500ms", gate, fleet, "services: {s: {serviceTime: 400ms}}",
			"faults: [{slowdown: s, factor: 5, at: 0s, for: 900ms}]", "model: {cancellation: "+model+"}"))
		equal(t, "answered where cancellation is "+model, r.Fleets[1].Ends[engine.Answered], want)
	}
}

func TestAServiceBehindAGateComesBackAfterItHung(t *testing.T) {
	for _, mode := range []string{"hang", "blackhole", "refuse", "fail"} {
		r := run(t, gated(plain+", attemptTimeout: 300ms", "shed: {concurrency: gradient}",
			"clients: {f: {rate: 50, arrivals: even, calls: [s]}}",
			"services: {s: {workers: 2, serviceTime: 20ms}}", "faults: [{outage: s, at: 2s, for: 2s, mode: "+mode+"}]"))
		within(t, mode+": goodput in the last two seconds",
			float64(between(r, r.Fleets[0].Answered, 8*time.Second, 10*time.Second)), 95, 101)
	}
}

func TestRefusalsCostWhatTheScenarioSays(t *testing.T) {
	served := func(cost string) int64 {
		r := run(t, gated(plain, two, "clients: {f: {rate: 1000, arrivals: even, calls: [s]}}",
			"services: {s: {workers: 2, serviceTime: 20ms"+cost+"}}"))
		return total(r.Services[0].Served)
	}
	free, dear := served(""), served(", refusalCost: 1ms")
	within(t, "served", float64(free), 990, 1000)
	// 100/s − a third of it: 1,000/s − x refusals of 1 ms each and x answers of 20 ms fill two workers.
	within(t, "served where a refusal takes 1 ms", float64(dear), 500, 560)
}

func TestBusyWorkersStandForTheProcessor(t *testing.T) {
	shedAt := func(rate int) float64 {
		r := run(
			t, gated(plain, "shed: {cpu: 0.6}",
				fmt.Sprintf("clients: {f: {rate: %d, arrivals: even, calls: [{to: s, priority: SHEDDABLE}]}}", rate),
				"services: {s: {workers: 10, serviceTime: 50ms}}"))
		return value(t, r, "shed(s) < 1%")
	}
	equal(t, "shed at half of the capacity", shedAt(100), 0)
	within(t, "shed at nine tenths", shedAt(180), 0.05, 0.6)
}

func TestAnAttemptWaitsForItsTurn(t *testing.T) {
	const limit = ", rateLimit: {limit: 10/s, burst: 1, maxWait: 300ms}"
	r := run(t, world(plain+limit, burst("5"), instant))
	wantEnds(t, r, "4 answered, 1 attempts-limited")
	sum, largest := latencies(r)
	equal(t, "sum of latencies: 0, 100, 200 and 300 ms", sum, 600*ms)
	equal(t, "largest", largest, 300*ms)
	equal(t, "refused without an attempt", total(r.Fleets[0].Refused), 1)
	r = run(t, world(plain+limit+", timeout: 150ms", burst("5"), instant))
	wantEnds(t, r, "2 answered, 3 attempts-limited")
}

func TestYieldAndResponse(t *testing.T) {
	r := run(t, gated(plain, two, "clients: {f: {rate: 40, arrivals: even, calls: [s]}}",
		"services: {s: {workers: 2, serviceTime: 100ms}}"))
	within(t, "yield at twice the capacity", value(t, r, "yield(s) > 1%"), 0.98, 1)
	within(t, "least of its seconds", value(t, r, "yield(s, p1) > 1%"), 0.9, 1)
	within(t, "shed", value(t, r, "shed(s) < 1%"), 0.45, 0.52)
	within(t, "longest response", value(t, r, "response(p99, s) < 1s"), 0.1, 0.5)
	within(t, "limit", value(t, r, "limit(s) < 9"), 2, 2)
	r = run(t, world(plain, "clients: {f: {rate: 10, arrivals: even, calls: [s]}}",
		"services: {s: {workers: 2, serviceTime: 100ms}}"))
	within(t, "yield at half of it", value(t, r, "yield(s) > 1%"), 0.98, 1)
	within(t, "response without a gate", value(t, r, "response(p50, s) < 1s"), 0.097, 0.103)
}

// Who leaves the queue of the gate, or that of the service behind it, leaves room for the next.
func TestWhoLeavesAQueueLeavesRoom(t *testing.T) {
	for name, c := range map[string]struct{ protection, workers string }{
		"at the gate": {
			"shed: {concurrency: fixed, maxConcurrency: 1, maxQueue: 1, queueInterval: 9s, queueTarget: 9s}", "",
		},
		"at the service":     {"shed: {concurrency: fixed, maxConcurrency: 2, noQueue: true}", "workers: 1, "},
		"while it is worked": {"shed: {concurrency: fixed, maxConcurrency: 2, noQueue: true}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, strings.NewReplacer("PROTECTION", c.protection, "WORKERS", c.workers).Replace(`
duration: 10s
warmUp: 0s
model: {cancellation: propagates}
clients: {f: {once: 1, calls: [s]}, g: {once: 3, within: 3s, calls: [{to: s, naive: true}]}}
services: {s: {WORKERS serviceTime: 5s}}
variants: {only: {policy: {defaults: {`+plain+`}, services: {"g -> s": {attemptTimeout: 200ms}}, protect: {s: {PROTECTION}}}}}
`))
			r := playVariant(t, s, 0, 1)
			if got := ends(r.Fleets[1].Ends); got != "3 timed-out" {
				t.Errorf("requests ended as %q, want all timed out: each found the place of the one before", got)
			}
		})
	}
}

func TestARestartFillsTheBuckets(t *testing.T) {
	r := run(t, gated(plain, "shed: {disabled: true}, rateLimit: {limit: 1/m, burst: 5}",
		"clients: {f: {once: 20, within: 8s, calls: [s]}}", "services: {s: {}}",
		"faults: [{restart: s, at: 5s, for: 10ms}]"))
	wantEnds(t, r, "10 answered, 10 rate-limited")
}

func TestYieldOfTheWorstStretches(t *testing.T) {
	r := run(t, world(plain+", attemptTimeout: 500ms", "clients: {f: {rate: 10, arrivals: even, calls: [s]}}",
		"services: {s: {workers: 20, serviceTime: 100ms}}", "faults: [{outage: s, at: 2s, for: 2s, mode: refuse}]"))
	within(t, "yield", value(t, r, "yield(s) > 1%"), 0.75, 0.82)
	within(t, "yield of the worst tenth of its seconds", value(t, r, "yield(s, p10) > 1%"), 0, 0)
	within(t, "median", value(t, r, "yield(s, p50) > 1%"), 0.9, 1.1)
}
