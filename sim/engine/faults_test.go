package engine_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// each sends one request per 100 ms, in the middle of each bin, for n bins.
func each(n int, more string) string {
	return fmt.Sprintf("clients: {f: {once: %d, within: %dms, %scalls: [{to: s, latency: 50ms}]}}", n, 100*n, more)
}

func TestKindsOfOutages(t *testing.T) {
	for name, c := range map[string]struct {
		mode, policy, ends string
		sum, largest       time.Duration
	}{
		// Requests 21 to 39 arrive during the outage, and 20, at work when it begins, is finished.
		"refuse":    {"refuse", plain, "41 answered, 19 refused", 41 * 190 * ms, 190 * ms},
		"fail":      {"fail", plain, "41 answered, 19 queue-full", 41 * 190 * ms, 190 * ms},
		"blackhole": {"blackhole", plain + ", attemptTimeout: 1s", "41 answered, 19 timed-out", 41 * 190 * ms, 190 * ms},
		// They wait, and are worked off one per 90 ms, faster than others arrive: the first waits longest, from 2150 ms
		// to 4045.
		"hang":              {"hang", plain, "60 answered", 0, 1895*ms + 190*ms},
		"hang, the default": {"", plain, "60 answered", 0, 1895*ms + 190*ms},
	} {
		t.Run(name, func(t *testing.T) {
			mode := ""
			if c.mode != "" {
				mode = ", mode: " + c.mode
			}
			r := run(t, world(c.policy, each(60, ""), "services: {s: {workers: 1, serviceTime: 90ms}}",
				"faults: [{outage: s, at: 2055ms, for: 1990ms"+mode+"}]"))
			if c.ends != "" {
				wantEnds(t, r, c.ends)
			}
			sum, largest := latencies(r)
			if c.sum > 0 {
				equal(t, "sum of latencies", sum, c.sum)
			}
			equal(t, "largest latency", largest, c.largest)
		})
	}
}

// workAt is the service time of the request that arrives in a bin, where there is one per bin and it is served at once.
func workAt(r *engine.Record, bin int) time.Duration {
	return time.Duration(r.Services[0].WorkNS[bin])
}

func TestSlowdownsOverlapAndEndExactly(t *testing.T) {
	for name, c := range map[string]struct {
		faults string
		want   [5]time.Duration // service time before, in the first, in both, in the second, after
	}{
		"factors": {"{slowdown: s, at: 1s, for: 2s, factor: 0.3}, {slowdown: s, at: 2s, for: 2s, factor: 0.7}",
			[5]time.Duration{10 * ms, 3 * ms, 2100 * time.Microsecond, 7 * ms, 10 * ms}},
		"within": {"{slowdown: s, at: 1s, for: 3s, factor: 0.7}, {slowdown: s, at: 2s, for: 1s, factor: 0.1}",
			[5]time.Duration{10 * ms, 7 * ms, 700 * time.Microsecond, 7 * ms, 10 * ms}},
		"additions": {"{slowdown: s, at: 1s, for: 2s, add: 5ms}, {slowdown: s, at: 2s, for: 2s, add: 8ms}",
			[5]time.Duration{10 * ms, 15 * ms, 23 * ms, 18 * ms, 10 * ms}},
		"factor, addition": {"{slowdown: s, at: 1s, for: 2s, factor: 1.5}, {slowdown: s, at: 2s, for: 2s, add: 5ms}",
			[5]time.Duration{10 * ms, 15 * ms, 20 * ms, 15 * ms, 10 * ms}},
		"deploy, slowdown": {"{deploy: s, at: 1s, for: 2s, factor: 1.5}, {slowdown: s, at: 2s, for: 2s, factor: 0.5}",
			[5]time.Duration{10 * ms, 15 * ms, 7500 * time.Microsecond, 5 * ms, 10 * ms}},
		"of all, of nothing": {
			"{slowdown: s, at: 1s, for: 2s, factor: 2}, {slowdown: s, at: 2s, for: 2s, factor: 1000, requests: 0.0001%}",
			[5]time.Duration{10 * ms, 20 * ms, 20 * ms, 10 * ms, 10 * ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(plain, each(50, ""), "services: {s: {serviceTime: 10ms}}", "faults: ["+c.faults+"]"))
			for i, want := range c.want {
				for bin := 10 * i; bin < 10*i+10; bin++ {
					if got := workAt(r, bin); got < want-1 || got > want+1 {
						t.Errorf("service time in bin %d is %v, want %v", bin, got, want)
						break
					}
				}
			}
			equal(t, "service time long after", workAt(r, 49), 10*ms)
		})
	}
}

func TestASlowdownHitsAShareOfRequests(t *testing.T) {
	r := run(t, world(plain, burst("10000"), "services: {s: {serviceTime: 1ms}}",
		"faults: [{slowdown: s, at: 0s, for: 5s, add: 1s, requests: 30%}]"))
	slow := 1e4 - float64(between(r, r.Fleets[0].Answered, 0, 900*ms))
	within(t, "slow requests of 10,000", slow, 3000-4*math.Sqrt(2100), 3000+4*math.Sqrt(2100))
}

func TestErrorsAndLossOverlapAndEndExactly(t *testing.T) {
	const load = "clients: {f: {rate: 4000, arrivals: even, calls: [s]}}\nservices: {s: {serviceTime: 1ms}}"
	const both = "faults: [{%[1]s: s, at: 2s, for: 4s, rate: 30%%}, {%[1]s: s, at: 4s, for: 4s, rate: 60%%}]"
	for kind, through := range map[string]func(p float64) float64{
		"errors": func(p float64) float64 { return 1 - p },
		"loss":   func(p float64) float64 { return (1 - p) * (1 - p) }, // there and back
	} {
		r := run(t, world(plain+", attemptTimeout: 50ms", load, fmt.Sprintf(both, kind)))
		for i, p := range []float64{0, 0.3, 1 - 0.7*0.4, 0.6, 0} {
			want := through(p)
			got := float64(between(r, r.Fleets[0].Good, time.Duration(2*i)*time.Second, time.Duration(2*i+2)*time.Second)) / 8000
			slack := 4*math.Sqrt(want*(1-want)/8000) + 2./8000
			within(t, fmt.Sprintf("%s: share answered from %d s on", kind, 2*i), got, want-slack, want+slack)
		}
	}
}

// After a fault the random numbers of a service go on one by one, as without it: nothing is drawn for what is over.
func TestAFaultThatIsOverDrawsNothing(t *testing.T) {
	for _, faults := range []string{
		"{errors: s, at: 1s, for: 1s, rate: 30%}, {errors: s, at: 1500ms, for: 2s, rate: 60%}",
		"{loss: s, at: 1s, for: 1s, rate: 10%}, {loss: s, at: 1500ms, for: 2s, rate: 20%}",
		"{deploy: s, at: 1s, for: 1s, rate: 30%, factor: 3}, {deploy: s, at: 1500ms, for: 2s, rate: 70%, factor: 7}",
	} {
		// Half of the requests fail by themselves; had a fault left a trace of itself, it would be seen as an error within
		// a few thousand requests, or as work that takes another time.
		r := run(t, world(plain, "clients: {f: {rate: 1000, arrivals: even, calls: [s]}}",
			"services: {s: {serviceTime: 3ms}}", "faults: ["+faults+"]"))
		equal(t, faults+": failures after it", between(r, r.Fleets[0].Failed, 3600*ms, 10*time.Second), 0)
		equal(t, faults+": work in a second after it", between(r, r.Services[0].WorkNS, 5*time.Second, 6*time.Second),
			int64(3*time.Second))
	}
}

func TestCapacityLossOverlapsAndEndsExactly(t *testing.T) {
	const load = "clients: {f: {rate: 400, arrivals: even, calls: [s]}}\nservices: {s: {workers: 10, serviceTime: " +
		"100ms, queue: {none: true}}}"
	r := run(t, world(plain, load, "faults: [{capacity: s, at: 2s, for: 4s, factor: 0.5}, {capacity: s, at: 4s, for: "+
		"4s, factor: 0.4}]"))
	for i, want := range []uint32{10, 5, 2, 4, 10} {
		for bin := 20*i + 3; bin < 20*i+20; bin++ {
			if got := r.Services[0].Busy[bin]; got != want {
				t.Errorf("%d workers are busy in bin %d, want %d", got, bin, want)
				break
			}
		}
	}
	r = run(t, world(plain, load, "faults: [{capacity: s, at: 2s, for: 4s, factor: 0.01}]"))
	equal(t, "workers left by a loss of 99% of ten", r.Services[0].Busy[40], 1)
}

func TestAShareOfInstancesIsHit(t *testing.T) {
	for share, want := range map[string]float64{"50%": 0.6, "30%": 0.4, "100%": 1, "1%": 0.2} { // of five, rounded up
		r := run(t, world(plain, "clients: {f: {rate: 1000, arrivals: even, calls: [s]}}",
			"services: {s: {replicas: 5, balancing: round-robin, serviceTime: 1ms}}",
			"faults: [{outage: s, at: 2s, for: 4s, mode: refuse, share: "+share+"}]"))
		within(t, "failures with a share of "+share, value(t, r, "failures(during) < 1%"), want-0.002, want+0.002)
		equal(t, "failures after it", value(t, r, "failures(after) < 1%"), 0)
	}
}

func TestADeployRollsOutAndBack(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {rate: 1000, arrivals: even, calls: [s]}}",
		"services: {s: {replicas: 4, balancing: round-robin, serviceTime: 1ms}}",
		"faults: [{deploy: s, at: 2s, for: 5s, rate: 100%, rollout: 4s}]"))
	for i, want := range []float64{0, 0, 250, 500, 750, 1000, 1000, 0, 0, 0} {
		got := float64(between(r, r.Fleets[0].Failed, time.Duration(i)*time.Second, time.Duration(i+1)*time.Second))
		within(t, fmt.Sprintf("failures in second %d", i), got, want-3, want+3)
	}
}

func TestARestartRollsOverTheInstances(t *testing.T) {
	s := read(t, world(plain, "clients: {f: {rate: 1000, arrivals: even, calls: [s]}}",
		"services: {s: {replicas: 4, balancing: round-robin, serviceTime: 1ms}}",
		"faults: [{restart: s, at: 2s, for: 500ms}]"))
	s.Faults[0].Rollout = 4 * time.Second
	r := playVariant(t, s, 0, 1)
	for i := range 20 { // down: 2–2.5, 3–3.5, 4–4.5, 5–5.5 s, one replica each time
		want := 0.0
		if i >= 4 && i < 12 && i%2 == 0 {
			want = 125
		}
		got := float64(between(r, r.Fleets[0].Failed, time.Duration(i)*500*ms, time.Duration(i+1)*500*ms))
		within(t, fmt.Sprintf("failures in half second %d", i), got, want-3, want+3)
	}
}

func TestARestartLosesQueueAndWork(t *testing.T) {
	r := run(t, world(plain, burst("5"), "services: {s: {workers: 2, serviceTime: 1s}}",
		"faults: [{restart: s, at: 1500ms, for: 1s}]"))
	wantEnds(t, r, "2 answered, 3 reset")
	s := service1(t, r)
	equal(t, "work: two of 1 s, two of 500 ms", time.Duration(total(s.WorkNS)), 3000*ms)
	equal(t, "left", s.Waiting[99]+s.Busy[99], 0)
	r = run(t, world(plain, burst("5"), "services: {s: {workers: 2, serviceTime: 1s, optimisticLock: true}}",
		"faults: [{restart: s, at: 1500ms, for: 1s}]"))
	wantEnds(t, r, "1 answered, 3 reset, 1 conflict")
}

func TestARestartOfTheFleetLosesItsRequests(t *testing.T) {
	r := run(t, world(thrice("10ms"), each(30, ""), "services: {s: {serviceTime: 300ms}}",
		"faults: [{restart: f, at: 1s, for: 500ms}]"))
	// under way at 1 s are those that began at 700, 800, 900 ms and, just then, 1 s
	wantEnds(t, r, "21 answered, 5 refused, 4 reset")
}

func TestARestartForgetsWhatGuardsKnew(t *testing.T) {
	const policy = "maxRetries: 1, backoff: fixed, initialDelay: 10ms, jitter: none, circuitBreaker: {disabled: true}, " +
		"retryBudget: {ratio: 0.0001, reserve: 10}"
	lines := "clients: {f: {once: 80, within: 8s, calls: [s]}}\nservices: {s: {errorRate: 100%}}"
	equal(t, "retries within the reserve", total(run(t, world(policy, lines)).Services[0].Retries), 10)
	r := run(t, world(policy, lines, "faults: [{restart: f, at: 4050ms, for: 10ms}]"))
	equal(t, "retries within two reserves", total(r.Services[0].Retries), 20)

	const breaker = "maxRetries: 0, retryBudget: {disabled: true}, circuitBreaker: {failureThreshold: 5, " +
		"waitDurationInOpenState: 1h, maxWaitDurationInOpenState: 2h}"
	r = run(t, world(breaker, lines, "faults: [{restart: f, at: 4050ms, for: 10ms}]"))
	wantEnds(t, r, "10 server-error, 70 circuit-open")
}

func TestOperatorsShed(t *testing.T) {
	const load = "clients: {f: {rate: 1000, arrivals: even, calls: [s]}, g: {rate: 10, calls: [s]}}\nservices: {s: {}}\n"
	shed := func(faults string, from, to time.Duration) float64 {
		r := run(t, world(plain, load, "faults: ["+faults+"]"))
		equal(t, "refused of the other fleet", total(r.Fleets[1].Refused), 0)
		return float64(between(r, r.Fleets[0].Refused, from, to)) / (to - from).Seconds() / 1000
	}
	s := time.Second
	equal(t, "shed of all", shed("{operator: f, action: shed, at: 2s, for: 4s}", 2*s, 6*s), 1)
	equal(t, "after it", shed("{operator: f, action: shed, at: 2s, for: 4s}", 6*s, 10*s), 0)
	within(t, "shed of a third", shed("{operator: f, action: shed, at: 2s, rate: 30%}", 2*s, 10*s), 0.28, 0.32)
	const two = "{operator: f, action: shed, at: 2s, for: 6s, rate: 100%}, {operator: f, action: shed, at: 4s, for: 2s, " +
		"rate: 30%}"
	equal(t, "shed after the smaller of two ended", shed(two, 6*s, 8*s), 1)
	equal(t, "shed after both", shed(two, 8*s, 10*s), 0)
}

func TestOperatorsScaleAndEmptyQueues(t *testing.T) {
	const load = "clients: {f: {once: 100, calls: [s]}}\nservices: {s: {workers: 2, serviceTime: 1s}}\n"
	r := run(t, world(plain, load, "faults: [{operator: s, action: scale, factor: 3, at: 2500ms, for: 3s}]"))
	equal(t, "workers before", r.Services[0].Busy[20], 2)
	equal(t, "workers meanwhile", r.Services[0].Busy[30], 6)
	equal(t, "workers after", r.Services[0].Busy[80], 2)
	r = run(t, world(plain, load, "faults: [{operator: s, action: empty-queue, at: 2500ms}]"))
	wantEnds(t, r, "6 answered, 94 reset")
	r = run(t, world(plain, load, "faults: [{operator: s, action: restart, at: 2500ms}]"))
	wantEnds(t, r, "4 answered, 96 reset")
}

func TestOperatorsStopRetries(t *testing.T) {
	const load = "clients: {f: {once: 100, within: 10s, calls: [s]}}\nservices: {s: {errorRate: 100%}}\n"
	policy := thrice("1ms")
	count := func(r *engine.Record, from, to time.Duration) int64 {
		return between(r, r.Services[0].Retries, from, to)
	}
	s := time.Second
	for _, target := range []string{"f", "s"} {
		r := run(t, world(policy, load, "faults: [{operator: "+target+", action: stop-retries, at: 3050ms, for: 4s}]"))
		equal(t, "retries before", count(r, 0, 3*s), 60)
		equal(t, "retries meanwhile", count(r, 3100*ms, 7*s), 0)
		equal(t, "retries after", count(r, 7100*ms, 10*s), 58)
	}
	r := run(t, world(policy, load, "faults: [{operator: f, action: stop-retries, at: 3050ms, for: 4s}, {operator: s, "+
		"action: stop-retries, at: 5050ms, for: 4s}]"))
	equal(t, "retries while the second lasts", count(r, 7100*ms, 9*s), 0)
	equal(t, "retries after both", count(r, 9100*ms, 10*s), 18)
	r = run(t, world(policy, load, "faults: [{operator: f, action: stop-retries, at: 3050ms, for: 4s}, {operator: f, "+
		"action: restart, at: 5050ms}]"))
	equal(t, "retries of a program that was restarted meanwhile", count(r, 5100*ms, 7*s), 0)
}
