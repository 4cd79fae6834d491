package scenario_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// bounded runs one run and checks it against the estimate.
func bounded(t *testing.T, name string, s *scenario.Scenario, v *scenario.Variant, seed uint64) {
	t.Helper()
	e, err := engine.New(s, v)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	r, err := e.Run(seed, false, nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	estimate := s.Estimate(v)
	if r.Events > estimate.Events || r.Attempts > estimate.Attempts {
		t.Errorf("%s: %d events and %d attempts are more than the estimate, %+v", name, r.Events, r.Attempts, estimate)
	}
	t.Logf("%s: %d of %d events, %d of %d attempts, %.1f MB", name, r.Events, estimate.Events, r.Attempts,
		estimate.Attempts, float64(estimate.Bytes)/1e6)
}

const (
	naive = "{maxRetries: 3, backoff: fixed, initialDelay: 100ms, jitter: none, attemptTimeout: 300ms, retryBudget: " +
		"{disabled: true}, circuitBreaker: {disabled: true}}"
	storm = "duration: 10s\nwarmUp: 1s\nfaults: [{at: 3s, for: 5s, outage: db, mode: %s}]\n" +
		"services: {a: {replicas: 2, calls: [{to: db, pool: 30}]}, db: {workers: 20, serviceTime: exponential 100ms, " +
		"queue: {limit: 500}, connections: {cost: 5ms}}}\n" +
		"variants: {naive: {policy: {defaults: " + naive + "}}, default: {}, patient: {policy: {defaults: {timeout: 5s, " +
		"hedge: {delay: 50ms, maxHedges: 2}, bulkhead: {maxConcurrentCalls: 20, maxQueue: 50}, retryBudget: {kind: " +
		"tokens}}}},\n" +
		"  adaptive: {policy: {defaults: {attemptTimeout: 200ms, retryBudget: {kind: adaptive, reserve: 5}, " +
		"circuitBreaker: {disabled: true}}}}}\n"
)

func TestNoRunIsLargerThanItsEstimate(t *testing.T) {
	for k, fleet := range []string{
		"{rate: 150, instances: 5, patience: 10s, calls: [a]}",
		"{rate: 150, arrivals: even, calls: [{to: a, latency: exponential 1ms, pool: 10}]}",
		"{rate: 100, daily: {swing: 100%, starts: 14h}, calls: [{to: a, share: 50%}, {to: db, times: 2}]}",
		"{curve: [{at: 0s, rate: 10}, {at: 5s, rate: 300}], between: ramps, calls: [a]}",
		"{curve: [{at: 2s, rate: 200}, {at: 8s, rate: 0}], calls: [db, a], parallel: true}",
		"{users: 100, think: 10ms, calls: [a]}",
		"{users: 50, think: lognormal median 100ms p99 2s, calls: [a]}",
		"{once: 2000, within: 8s, calls: [a]}",
		"{once: 2000, calls: [a]}",
		"{rate: 0.01, calls: [a]}",
	} {
		for i, mode := range []string{"hang", "blackhole", "refuse", "fail"} { // and as many variants
			s := parse(t, fmt.Sprintf(storm, mode)+"clients: {f: "+fleet+"}\n")
			v := &s.Variants[(i+k)%len(s.Variants)]
			bounded(t, fleet+" "+mode+" "+v.Name, s, v, uint64(i+1))
		}
	}
}

func TestFaultsAreInTheEstimate(t *testing.T) {
	for k, fault := range []string{
		"{at: 3s, for: 5s, surge: f, factor: 10}", "{at: 3s, for: 5s, restart: f, rollout: 1s}", "{at: 3s, restart: a}",
		"{at: 3s, restart: db, for: 1s}",
		"{at: 3s, for: 5s, loss: db, rate: 50%}", "{at: 3s, for: 5s, errors: a}", "{at: 3s, for: 5s, slowdown: db, add: 1s}",
		"{at: 3s, operator: db, action: restart}", "{at: 3s, for: 6s, operator: db, action: scale, factor: 0.1}",
		"{at: 3s, operator: f, action: stop-retries}",
	} {
		_, rest, _ := strings.Cut(fmt.Sprintf(storm, "hang"), "}]\n")
		s := parse(t, "duration: 10s\nfaults: ["+fault+"]\nclients: {f: {rate: 200, instances: 4, calls: [a]}}\n"+rest)
		for _, v := range []*scenario.Variant{&s.Variants[0], &s.Variants[1+k%3]} {
			bounded(t, fault+" "+v.Name, s, v, 1)
		}
	}
}

func TestRetriesOfALayerMultiplyThoseBelow(t *testing.T) {
	const chain = "duration: 100s\nwarmUp: 0s\nclients: {f: {once: 1000, within: 100s, calls: [a]}}\nservices: {a: " +
		"{calls: [b]}, b: {calls: [c]}, c: {workers: 10, serviceTime: 1ms}}\n"
	for policy, want := range map[string]int64{
		// one each
		"{maxRetries: 0, retryBudget: {disabled: true}}": 3_000,
		// three layers of three attempts
		"{maxRetries: 2, retryBudget: {disabled: true}}": 1000 * (3 + 9 + 27),
		// the budget goes before the retries
		"{maxRetries: 2, retryBudget: {ratio: 0.5, reserve: 0}}":                                   1501 + 2253 + 3380,
		"{maxRetries: 2, retryBudget: {kind: adaptive, minRatio: 0.1, maxRatio: 0.5, reserve: 0}}": 1501 + 2253 + 3380,
		// of 10 and 130 s
		"{maxRetries: 2, retryBudget: {kind: tokens, maxTokens: 10, refillPerSecond: 1}}":   1140 + 1280 + 1420,
		"{maxRetries: 0, hedge: {delay: 1ms, maxHedges: 1}, retryBudget: {disabled: true}}": 1000 * (2 + 4 + 8),
	} {
		s := parse(t, chain+"variants: {x: {policy: {defaults: "+policy+"}}}\n")
		if got := s.Estimate(&s.Variants[0]).Attempts; got < want-5 || got > want+5 {
			t.Errorf("%s: %d attempts, want %d", policy, got, want)
		}
	}
}

func TestARestartRefillsTheBudget(t *testing.T) {
	const text = "duration: 100s\nclients: {f: {once: 1000, calls: [a]}}\nservices: {a: {}}\nvariants: {x: {policy: " +
		"{defaults: {retryBudget: {reserve: 100}}}}}\n"
	attempts := func(text string) int64 {
		s := parse(t, text)
		return s.Estimate(&s.Variants[0]).Attempts
	}
	if extra := attempts(text+"faults: [{at: 3s, restart: f}, {at: 5s, operator: f, action: restart}]\n") -
		attempts(text); extra != 2*101 {
		t.Errorf("two restarts may cost %d more attempts", extra)
	}
}

func TestAnEstimateIsFiniteWhateverTheScenario(t *testing.T) {
	s := &scenario.Scenario{Duration: 1 << 62, Clients: []scenario.Fleet{
		{Name: "f", Rate: 1e300, Calls: []scenario.Call{{To: "a", Times: 1 << 40}}},
	},
		Services: []scenario.Service{{Name: "a", Calls: []scenario.Call{{To: "b", Times: 1 << 40}}},
			{Name: "b", Calls: []scenario.Call{{To: "a"}, {To: "none"}}}},
		Variants: []scenario.Variant{{}}}
	if e := s.Estimate(&s.Variants[0]); e.Events != 1<<60 || e.Attempts <= 0 || e.Bytes != 1<<60 {
		t.Errorf("%+v", e)
	}
	if e := new(scenario.Scenario).Estimate(&scenario.Variant{}); e.Events <= 0 || e.Attempts != 0 || e.Bytes <= 0 {
		t.Errorf("of nothing: %+v", e)
	}
}

// Chance decides which requests make a call, and the estimate leaves room for it.
func TestChanceIsInTheEstimate(t *testing.T) {
	s := parse(t, "duration: 10s\nclients: {f: {once: 200, within: 5s, calls: [{to: db, share: 50%}]}}\nservices: {db: "+
		"{serviceTime: 1ms}}\n"+
		"variants: {x: {policy: {defaults: {maxRetries: 0, retryBudget: {disabled: true}}}}}\n")
	for seed := range uint64(30) {
		bounded(t, "half of 200", s, &s.Variants[0], seed)
	}
}

// What the slabs and queues of the engine hold at the end is what they held at most: they never shrink.
func TestNoRunTakesMoreMemoryThanItsEstimate(t *testing.T) {
	for name, text := range map[string]string{
		"a queue without bound": "duration: 20s\nclients: {f: {rate: 1000, calls: [db]}}\nservices: {db: {workers: 5, " +
			"serviceTime: 10ms}}\n" + retrying("attemptTimeout: 1s"),
		"callers without limit": "duration: 20s\nclients: {f: {rate: 1000, calls: [db]}}\nservices: {db: {workers: 5, " +
			"serviceTime: 10ms}}\n",
		"answers that never come": "duration: 20s\nclients: {f: {rate: 1000, calls: [db]}}\nservices: {db: {workers: 100, " +
			"serviceTime: 10ms}}\n" +
			"faults: [{at: 1s, for: 15s, outage: db, mode: blackhole}]\n",
		"a full queue that is silent": "duration: 20s\nclients: {f: {rate: 1000, calls: [db]}}\nservices: {db: {workers: " +
			"1, serviceTime: 10ms, queue: {limit: 10, whenFull: silence}}}\n" + retrying("maxRetries: 0"),
		"many guards": "duration: 10s\nclients: {f: {rate: 100, instances: 2000, calls: [db]}}\nservices: {db: {workers: " +
			"100, serviceTime: 10ms}}\n" +
			retrying("attemptTimeout: 1s, hedge: {quantile: 0.95}"),
		"a chain": "duration: 10s\nclients: {f: {rate: 700, calls: [a]}}\nservices: {a: {calls: [b]}, b: {calls: [c]}, c: " +
			"{workers: 5, serviceTime: 10ms}}\n" +
			retrying("attemptTimeout: 5s"),
	} {
		s := parse(t, text)
		v := &s.Variants[0]
		before := heap()
		e, err := engine.New(s, v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Run(1, false, nil); err != nil {
			t.Fatal(err)
		}
		used, most := heap()-before, s.Estimate(v).Bytes
		runtime.KeepAlive(e)
		t.Logf("%s: %.1f of %.1f MB", name, float64(used)/1e6, float64(most)/1e6)
		if used > most {
			t.Errorf("%s: %d bytes are more than the estimate, %d", name, used, most)
		}
	}
}

// retrying is a variant whose callers do not hold back.
func retrying(keys string) string {
	return "variants: {x: {policy: {defaults: {" + keys + ", retryBudget: {disabled: true}, circuitBreaker: {disabled: " +
		"true}}}}}\n"
}

// heap is the memory that is in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestAQueueLimitAndATimeoutMakeARunSmaller(t *testing.T) {
	const text = "duration: 1h\nclients: {f: {rate: 1000, calls: [db]}}\nvariants: {x: {policy: {defaults: {maxRetries: " +
		"0%s}}}}\nservices: {db: {workers: 10, serviceTime: 100ms%s}}\n"
	bytes := func(timeout, queue string) int64 {
		s := parse(t, fmt.Sprintf(text, timeout, queue))
		return s.Estimate(&s.Variants[0]).Bytes
	}
	all, timeout, queue, both := bytes("", ""), bytes(", timeout: 1s", ""), bytes("", ", queue: {limit: 100}"),
		bytes(", timeout: 1s", ", queue: {limit: 100}")
	if !(both < timeout && both < queue && timeout < all && queue < all) || both > 20<<20 || all < 1<<30 {
		t.Errorf("neither %d, timeout %d, queue %d, both %d", all, timeout, queue, both)
	}
}
