package engine_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// burst is one fleet that sends n requests at the start.
func burst(n string) string { return "clients: {f: {once: " + n + ", calls: [s]}}" }

func TestQueueingArithmetic(t *testing.T) {
	for name, c := range map[string]struct {
		policy, clients, service string
		ends                     string
		sum, largest             time.Duration
	}{
		"no limit":    {plain, burst("3"), "serviceTime: 100ms", "3 answered", 300 * ms, 100 * ms},
		"one worker":  {plain, burst("10"), "workers: 1, serviceTime: 100ms", "10 answered", 5500 * ms, 1000 * ms},
		"two workers": {plain, burst("5"), "workers: 2, serviceTime: 100ms", "5 answered", 900 * ms, 300 * ms},
		"fifo": {plain, "clients: {f: {once: 3, within: 30ms, calls: [s]}}", "workers: 1, serviceTime: 100ms",
			"3 answered", 570 * ms, 280 * ms},
		"lifo": {plain, "clients: {f: {once: 3, within: 30ms, calls: [s]}}",
			"workers: 1, serviceTime: 100ms, queue: {order: lifo}", "3 answered", 570 * ms, 290 * ms},
		"a full queue": {plain, burst("5"), "workers: 1, serviceTime: 100ms, queue: {limit: 2}",
			"3 answered, 2 queue-full", 600 * ms, 300 * ms},
		"no queue": {plain, burst("5"), "workers: 1, serviceTime: 100ms, queue: {none: true}",
			"1 answered, 4 queue-full", 100 * ms, 100 * ms},
		"seconds of work": {plain, burst("10"), "workers: 2, serviceTime: 100ms, queue: {work: 250ms}",
			"7 answered, 3 queue-full", 1600 * ms, 400 * ms},
		"a silent full queue": {
			plain + ", attemptTimeout: 1s", burst("5"), "workers: 1, serviceTime: 100ms, queue: {limit: 2, whenFull: silence}",
			"3 answered, 2 timed-out", 600 * ms, 300 * ms,
		},
		"slower together": {plain, burst("3"), "serviceTime: 100ms, slowsDown: 0.5", "3 answered", 450 * ms, 200 * ms},
		"slower with a queue": {
			plain, burst("4"), "workers: 1, serviceTime: 100ms, slowsQueued: 0.1", "4 answered", 1080 * ms, 430 * ms,
		},
		"slower, but not more": {plain, burst("4"), "workers: 1, serviceTime: 100ms, slowsQueued: 1, slowsQueuedMax: 1.5",
			"4 answered", 1250 * ms, 500 * ms},
		"latency both ways": {plain, "clients: {f: {once: 2, calls: [{to: s, latency: 10ms}]}}",
			"workers: 1, serviceTime: 100ms", "2 answered", 340 * ms, 220 * ms},
		"always an error": {plain, burst("3"), "serviceTime: 100ms, errorRate: 100%", "3 server-error", 0, 0},
		"the same row": {
			plain, burst("3"), "serviceTime: 100ms, optimisticLock: true", "1 answered, 2 conflict", 100 * ms, 100 * ms,
		},
		"the same row, again": {
			thrice("10ms"), burst("3"), "serviceTime: 100ms, optimisticLock: true", "3 answered", 630 * ms, 320 * ms,
		},
		"impatient callers": {plain, "clients: {f: {once: 5, patience: 250ms, calls: [s]}}", "workers: 1, serviceTime: 100ms",
			"2 answered, 3 timed-out", 300 * ms, 200 * ms},
		"round robin": {plain, burst("8"), "replicas: 4, balancing: round-robin, workers: 1, serviceTime: 100ms",
			"8 answered", 1200 * ms, 200 * ms},
		"least queue": {plain, burst("8"), "replicas: 4, balancing: least-queue, workers: 1, serviceTime: 100ms",
			"8 answered", 1200 * ms, 200 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(c.policy, c.clients, "services: {s: {"+c.service+"}}"))
			wantEnds(t, r, c.ends)
			sum, largest := latencies(r)
			equal(t, "sum of latencies", sum, c.sum)
			equal(t, "largest latency", largest, c.largest)
		})
	}
}

func TestRandomReplicasAreUneven(t *testing.T) {
	const service = "services: {s: {replicas: 4, workers: 1, serviceTime: 1s, balancing: "
	longest := func(balancing string) uint32 {
		return slices.Max(service1(t, run(t, world(plain, burst("400"), service+balancing+"}}"))).Longest)
	}
	equal(t, "longest queue, round-robin", longest("round-robin"), 99)
	equal(t, "longest queue, least-queue", longest("least-queue"), 99)
	within(t, "longest queue, random", float64(longest("random")), 100, 99+4*math.Sqrt(400*3./16))
}

func service1(t *testing.T, r *engine.Record) *engine.ServiceRecord { return service(t, r, "s") }

// Little's law: the mean number waiting is the rate of arrivals times the mean wait, as sums: ∫ waiting dt = Σ waits.
// All times here lie in the middle of a bin of 100 ms, so that the samples at the ends of the bins are the whole
// integral.
func TestLittlesLaw(t *testing.T) {
	const link = ", calls: [{to: s, latency: 50ms}]}}"
	for name, lines := range map[string][]string{
		"fifo": {"clients: {f: {once: 40" + link, "services: {s: {workers: 1, serviceTime: 100ms}}"},
		"lifo": {"clients: {f: {once: 40, within: 4s" + link,
			"services: {s: {workers: 1, serviceTime: 200ms, queue: {order: lifo}}}"},
		"replicas": {"clients: {f: {once: 60, within: 6s" + link,
			"services: {s: {replicas: 3, workers: 2, serviceTime: 600ms, balancing: round-robin}}"},
		"a hang": {"clients: {f: {once: 40, within: 4s" + link, "services: {s: {workers: 1, serviceTime: 100ms}}",
			"faults: [{outage: s, at: 2050ms, for: 2s}]"},
		"a chain": {
			"clients: {f: {once: 20, within: 2s, calls: [{to: m, latency: 50ms}]}}", "services: {m: {workers: 2, serviceTime: " +
				"100ms, calls: [{to: s, latency: 100ms}]}, s: {workers: 1, serviceTime: 300ms}}",
		},
		"left behind": {"clients: {f: {once: 20, patience: 300ms" + link, "services: {s: {workers: 1, serviceTime: 100ms}}"},
		"fewer hands": {"clients: {f: {once: 40, within: 4s" + link, "services: {s: {workers: 4, serviceTime: 400ms}}",
			"faults: [{capacity: s, at: 1050ms, for: 3s, factor: 0.5}]"},
		"a full queue": {
			"clients: {f: {once: 40" + link, "services: {s: {workers: 1, serviceTime: 200ms, queue: {limit: 30}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(plain, append(lines, "duration: 20s")...))
			for i := range r.Services {
				s := &r.Services[i]
				equal(t, s.Name+": ∫ waiting dt", time.Duration(total(s.Waiting))*r.Bin, time.Duration(total(s.WaitNS)))
				equal(t, s.Name+": ∫ busy dt", time.Duration(total(s.Busy))*r.Bin, time.Duration(total(s.WorkNS)))
				equal(t, s.Name+": left over", s.Waiting[len(s.Waiting)-1]+s.Busy[len(s.Busy)-1], 0)
			}
		})
	}
}

// One worker of 10 ms meets a request every 5 ms. At 20 ms, for the first time, one has waited for 5 ms or more and
// left another one behind, so the first drop is at 120 ms; the next follow after 100/√n ms, when a worker is free.
func TestCoDelDropsByItsControlLaw(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 200, within: 1s, calls: [s]}}",
		"services: {s: {workers: 1, serviceTime: 10ms, queue: {order: codel}}}"))
	drops := service1(t, r).Rejected
	var want [6]uint32
	at, n := 120.0, 1
	for at <= 590 {
		want[int(math.Ceil(at/10)*10/100)]++ // bins are 100 ms, drops happen when a worker is free
		at += 100 / math.Sqrt(float64(n))
		n++
	}
	equal(t, "drops per 100 ms", [6]uint32(drops[:6]), want)
}

func TestCoDelLeavesAShortQueueAlone(t *testing.T) {
	r := run(t, world(plain, burst("9"), "services: {s: {workers: 1, serviceTime: 10ms, queue: {order: codel}}}"))
	wantEnds(t, r, "9 answered") // 80 ms of waiting, but not for 100 ms
}

func TestExpiredRequestsAreDroppedWhenTheirTurnComes(t *testing.T) {
	five := func(queue string) *engine.ServiceRecord {
		r := run(
			t, world(plain+", attemptTimeout: 250ms", burst("5"), "services: {s: {workers: 1, serviceTime: 100ms"+queue+"}}"))
		wantEnds(t, r, "2 answered, 3 timed-out")
		return service1(t, r)
	}
	kept := five("")
	equal(t, "work for callers that had left", total(kept.WasteNS), int64(300*ms))
	equal(t, "wasted", total(kept.Wasted), 3)
	dropped := five(", queue: {dropExpired: true}")
	equal(t, "work for callers that had left, with dropExpired", total(dropped.WasteNS), int64(100*ms))
	equal(t, "rejected", total(dropped.Rejected), 2)
}

func TestAShareOfRequestsFails(t *testing.T) {
	r := run(t, world(plain, burst("10000"), "services: {s: {serviceTime: 1ms, errorRate: 30%}}"))
	within(t, "errors of 10,000", float64(r.Fleets[0].Ends[engine.ServerError]), 3000-4*math.Sqrt(2100),
		3000+4*math.Sqrt(2100))
}

func TestServiceTimesDrawnOnArrivalOrAtTheStart(t *testing.T) {
	const load = "clients: {f: {rate: 80, calls: [s]}}\nservices: {s: {workers: 1, serviceTime: exponential 10ms}}"
	start := run(t, world(plain, load))
	arrival := run(t, world(plain, load, "model: {serviceTimeDrawn: arrival}"))
	equal(t, "arrivals", total(arrival.Fleets[0].Offered), total(start.Fleets[0].Offered))
	// First come, first served: the k-th arrival gets the k-th draw either way.
	equal(t, "work", total(arrival.Services[0].WorkNS), total(start.Services[0].WorkNS))
	const upside = "clients: {f: {rate: 80, calls: [s]}}\nservices: {s: {workers: 1, serviceTime: exponential 10ms, " +
		"queue: {order: lifo}}}"
	start, arrival = run(t, world(plain, upside)), run(t, world(plain, upside, "model: {serviceTimeDrawn: arrival}"))
	a, _ := latencies(start)
	b, _ := latencies(arrival)
	if a == b {
		t.Errorf("last come, first served: sums of latencies are both %v, but the draws go to others", a)
	}
}

// What is drawn on arrival is slowed on arrival: a backlog of slow requests outlives what made them slow, and a
// trigger that is short for requests slowed at the start of their work is long for these.
func TestASlowdownBelongsToTheMomentInWhichServiceTimesAreDrawn(t *testing.T) {
	const load = "clients: {f: {rate: 50, arrivals: even, calls: [s]}}\nservices: {s: {workers: 1, serviceTime: 10ms}}"
	const slow = "faults: [{at: 2s, for: 1s, slowdown: s, factor: 4}]"
	work := func(more ...string) time.Duration {
		return time.Duration(total(run(t, world(plain, append(more, load)...)).Services[0].WorkNS))
	}
	well := work()
	equal(t, "more work, slowed on arrival", work(slow, "model: {serviceTimeDrawn: arrival}")-well, 50*30*ms)
	equal(t, "more work, slowed at the start", work(slow)-well, 25*30*ms)
}

// With numbers of their own, requests meet the same luck whatever order they are worked on in, and whoever tries again.
func TestRequestsHaveRandomNumbersOfTheirOwn(t *testing.T) {
	const shape = "clients: {f: {once: 500, within: 5s, calls: [s]}}\n" +
		"services: {s: {workers: 1, replicas: 2, errorRate: 10%%, serviceTime: exponential 10ms, queue: {order: %s}}}"
	const own = "model: {serviceTimeDrawn: request}"
	fifo := run(t, world(plain, fmt.Sprintf(shape, "fifo"), own))
	lifo := run(t, world(plain, fmt.Sprintf(shape, "lifo"), own))
	for i := range fifo.Services {
		a, b := &fifo.Services[i], &lifo.Services[i]
		equal(t, "work", total(a.WorkNS), total(b.WorkNS))
		equal(t, "errors", total(a.Errors), total(b.Errors))
	}
	if a, _ := latencies(fifo); a == 0 {
		t.Error("nothing took any time")
	}
	// Who fails fails in both; a retry has luck of its own, and takes nobody else's.
	again := run(t, world(strings.Replace(plain, "maxRetries: 0", "maxRetries: 1", 1), fmt.Sprintf(shape, "fifo"), own))
	first, second := total(fifo.Services[0].Errors), total(again.Services[0].Retries)
	equal(t, "retries", second, first)
	if n := total(again.Services[0].Errors) - first; n <= 0 || n >= first {
		t.Errorf("of %d retries %d fail, want some", first, n)
	}
}

func TestCallsOfAService(t *testing.T) {
	const a = ", a: {serviceTime: 100ms}"
	const ab = a + ", b: {serviceTime: 200ms}"
	for name, c := range map[string]struct {
		services     string
		ends         string
		sum, largest time.Duration
		a, b         int64
	}{
		"in sequence": {"s: {serviceTime: 10ms, calls: [a, b]}" + ab, "2 answered", 620 * ms, 310 * ms, 2, 2},
		"in parallel": {
			"s: {serviceTime: 10ms, calls: [a, b], parallel: true}" + ab, "2 answered", 420 * ms, 210 * ms, 2, 2,
		},
		"several times": {
			"s: {serviceTime: 10ms, calls: [{to: a, times: 3}]}" + a, "2 answered", 620 * ms, 310 * ms, 6, 0,
		},
		"several at once": {
			"s: {serviceTime: 10ms, calls: [{to: a, times: 3}], parallel: true}" + a, "2 answered", 220 * ms, 110 * ms, 6, 0,
		},
		"the second fails": {
			"s: {serviceTime: 10ms, calls: [a, b]}, a: {serviceTime: 100ms}, b: {errorRate: 100%}", "2 bad-gateway", 0, 0, 2, 2,
		},
		"the first fails": {
			"s: {serviceTime: 10ms, calls: [b, a]}, a: {serviceTime: 100ms}, b: {errorRate: 100%}", "2 bad-gateway", 0, 0, 0, 2,
		},
		"an optional one fails": {
			"s: {serviceTime: 10ms, calls: [{to: b, optional: true}, a]}, a: {serviceTime: 100ms}, b: {errorRate: 100%}",
			"2 answered", 220 * ms, 110 * ms, 2, 2,
		},
		"own work fails": {"s: {serviceTime: 10ms, calls: [a], errorRate: 100%}" + a, "2 server-error", 0, 0, 0, 0},
		"own work fails at last": {
			"s: {serviceTime: 10ms, calls: [a], callsFirst: true, errorRate: 100%}" + a, "2 server-error", 0, 0, 2, 0,
		},
		"the worker waits": {"s: {workers: 1, serviceTime: 10ms, calls: [a]}" + a, "2 answered", 330 * ms, 220 * ms, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(plain, burst("2"), "services: {"+c.services+"}"))
			wantEnds(t, r, c.ends)
			sum, largest := latencies(r)
			equal(t, "sum of latencies", sum, c.sum)
			equal(t, "largest latency", largest, c.largest)
			equal(t, "calls of a", edge(t, r, "s", "a").Calls, c.a)
			if c.b > 0 {
				equal(t, "calls of b", edge(t, r, "s", "b").Calls, c.b)
			}
		})
	}
}

func TestAShareOfRequestsMakesACall(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 10000, calls: [{to: s, share: 30%}]}}", "services: {s: {}}"))
	wantEnds(t, r, "10000 answered")
	within(t, "calls of 10,000 requests", float64(r.Edges[0].Calls), 3000-4*math.Sqrt(2100), 3000+4*math.Sqrt(2100))
	equal(t, "visits per request", r.Services[0].Visits[0], 0.3)
}

func TestVisitsMultiplyAlongTheWay(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 4, calls: [m, {to: s, share: 50%}]}, g: {once: 1, calls: [s]}}",
		"services: {m: {calls: [{to: s, times: 3}]}, s: {}}"))
	visits := service1(t, r).Visits
	if !slices.Equal(visits, []float64{3.5, 1}) {
		t.Errorf("visits to s per request of f and g are %v, want 3.5 and 1", visits)
	}
}
