package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/sim/engine"
)

// chained is three layers of three attempts each: f calls a, a calls b, b calls c.
func chained(more string, lines ...string) string {
	text := world(thrice("10ms")+more,
		append([]string{"services: {a: {calls: [b]}, b: {calls: [c]}, c: {errorRate: 100%}}"}, lines...)...)
	if !strings.Contains(text, "clients:") {
		text = "clients: {f: {once: 1, calls: [a]}}\n" + text
	}
	return text
}

func TestAttemptsMultiplyAlongAChainWithoutAnOwner(t *testing.T) {
	r := run(t, chained(", retryOwner: none"))
	equal(t, "attempts at the last of three layers of three attempts", total(service(t, r, "c").Arrived), 27)
	equal(t, "in the middle", total(service(t, r, "b").Arrived), 9)
	wantEnds(t, r, "1 bad-gateway")
}

func TestALayerThatKnowsTheOthersSharesItsAttempts(t *testing.T) {
	for _, c := range []struct {
		owner   string
		a, b, c int64 // attempts
	}{
		// Once all know that their callee speaks, b makes one of the two retries (the first call keeps one), and then a none.
		{"nearest", 2*100 + 1, 300, 300},
		{"edge", 300, 300, 300},
	} {
		r := run(t, chained(", retryOwner: "+c.owner, "clients: {f: {once: 100, within: 9s, calls: [a]}}"))
		equal(t, c.owner+": attempts at a", total(service(t, r, "a").Arrived), c.a)
		equal(t, c.owner+": attempts at b", total(service(t, r, "b").Arrived), c.b)
		equal(t, c.owner+": attempts at c", total(service(t, r, "c").Arrived), c.c)
		wantEnds(t, r, "100 bad-gateway")
	}
}

func TestALayerThatIsNaiveMultiplies(t *testing.T) {
	for naive, want := range map[string]int64{
		"": 3, "f": 9, "a": 27, "b": 9, "f, b": 27, "a, b": 27, "f, a": 27, "f, a, b": 27,
	} {
		text := strings.Replace(chained(""), "{only: {", "{only: {naive: ["+naive+"], ", 1)
		equal(t, "attempts at the end, naive: "+naive, total(service(t, run(t, text), "c").Arrived), want)
	}
	text := strings.Replace(chained(""), "b: {calls: [c]}", "b: {calls: [{to: c, naive: true}]}", 1)
	equal(t, "attempts at the end of a naive call", total(service(t, run(t, text), "c").Arrived), 9)
}

// Whatever goes wrong, wherever: one request is never more than three attempts at the end of the chain, if the first
// call does not hedge. Its hedges are its own affair.
func TestNoTroubleMakesAChainExceedItsFirstCall(t *testing.T) {
	for _, owner := range []string{"nearest", "edge"} {
		for _, trouble := range []string{
			"outage: c, mode: refuse", "outage: c, mode: hang", "outage: c, mode: blackhole", "outage: c, mode: fail",
			"outage: b, mode: hang", "outage: a, mode: blackhole",
			"loss: c, rate: 50%", "loss: b, rate: 50%", "loss: a, rate: 60%", "errors: b, rate: 70%", "errors: a, rate: 70%",
			"slowdown: c, add: 300ms", "slowdown: b, add: exponential 100ms",
		} {
			for _, model := range []string{"", "model: {cancellation: propagates}", "model: {ties: timeout-first}"} {
				text := chained(", attemptTimeout: 100ms, hedge: {delay: 30ms}, retryOwner: "+owner,
					"clients: {f: {once: 200, within: 9s, calls: [{to: a, latency: 1ms}]}}",
					"faults: [{"+trouble+", at: 2s, for: 5s}, {errors: c, rate: 50%, at: 0s, for: 9s}]", model)
				text = strings.Replace(text, "retryOwner: "+owner+"}",
					"retryOwner: "+owner+"}, services: {a: {hedge: {disabled: true}}}", 1)
				text = strings.Replace(text, "c: {errorRate: 100%}", "c: {workers: 5, serviceTime: exponential 20ms}", 1)
				if n := total(service(t, run(t, text), "c").Arrived); n > 3*200 {
					t.Errorf("%s, %s, %s: 200 requests became %d attempts, allowed are 600", owner, trouble, model, n)
				}
			}
		}
	}
}

// The same for a few requests, among which no attempt too many can hide, and for any policies behind the first call.
func FuzzChain(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint64(1))
	f.Add([]byte{0, 5, 2, 9, 1, 7, 3, 3, 8, 1, 6}, uint64(2))
	f.Fuzz(func(t *testing.T, bytes []byte, seed uint64) {
		d := &dice{bytes: bytes}
		fault := func() string {
			return "{" + d.pick("outage: %s", "outage: %s, mode: refuse", "outage: %s, mode: blackhole",
				"outage: %s, mode: fail", "loss: %s, rate: 50%%", "errors: %s, rate: 60%%",
				"slowdown: %s, add: 150ms", "restart: %s") + ", at: " + d.pick("0s", "30ms", "200ms") + ", for: " +
				d.pick("10ms", "100ms", "1s") + "}"
		}
		faults := fmt.Sprintf(fault()+", "+fault()+", "+fault(), d.pick("a", "b", "c"), d.pick("a", "b", "c"),
			d.pick("a", "b", "c"))
		layer := func(name string) string {
			return name + ": {" + list("maxRetries: "+d.pick("2", "0", "1", "7"),
				"attemptTimeout: "+d.pick("50ms", "200ms", "1s"), d.maybe("retryOwner: edge"),
				d.maybe("hedge: {delay: 5ms, maxHedges: 3}", "hedge: {delay: 20ms}"), d.maybe("timeout: 1s"),
				d.maybe("circuitBreaker: {disabled: false, failureRateThreshold: 0.5, minimumNumberOfCalls: 2}")) + "}"
		}
		text := "clients: {f: {once: 3, within: 2s, calls: [" + d.pick("a", "{to: a, pool: 2}", "{to: a, latency: 5ms}") +
			"]}}\n" +
			"services: {a: {replicas: " + d.pick("1", "3") + ", calls: [b]}, b: {workers: " + d.pick("1", "9") +
			", calls: [c]}, c: {workers: 2, serviceTime: 10ms}}\n" +
			"faults: [" + faults + "]\nmodel: {cancellation: " + d.pick("ignored", "propagates") + "}\n"
		retries := d.pick("2", "1", "5")
		text += "variants: {only: {policy: {" +
			d.maybe("protect: {b: {shed: {concurrency: fixed, maxConcurrency: 1}}}, ", "protect: {c: {}}, ") +
			"defaults: {" + thrice("10ms") + "}, services: {" + layer("b") + ", " + layer("c") + ", a: {maxRetries: " + retries +
			", attemptTimeout: 500ms}}}}}\n"
		s := read(t, "duration: 5s\nwarmUp: 0s\n"+text)
		r := playVariant(t, s, 0, seed)
		allowed, _ := strconv.ParseInt(retries, 10, 64)
		for _, name := range []string{"a", "b", "c"} {
			if n := total(service(t, r, name).Arrived); n > 3*(1+allowed) {
				t.Errorf("3 requests with %d retries became %d attempts at %s\n%s", allowed, n, name, text)
			}
		}
	})
}

// What a callee was told it may use is gone if it says nothing, and comes back if it says less or was not reached.
func TestACalleeThatDoesNotAnswerHasUsedWhatItWasGiven(t *testing.T) {
	for _, c := range []struct {
		service, gate, mode string
		want                int64 // attempts of the second request, of 4
	}{
		{"s: {}", "", "hang", 4},
		{"s: {}", "protect: {s: {}}, ", "hang", 2}, // two of the three retries were the callee's
		{"s: {}", "protect: {s: {}}, ", "blackhole", 2},
		{"s: {}", "protect: {s: {}}, ", "refuse", 4},
		{"s: {}", "protect: {s: {}}, ", "fail", 4}, // it says that it has used nothing
		{"s: {calls: [x]}, x: {}", "", "hang", 2},
	} {
		const retries = "maxRetries: 3, backoff: fixed, jitter: none, initialDelay: 10ms, retryBudget: {disabled: true}, " +
			"circuitBreaker: {disabled: true}, attemptTimeout: 100ms"
		text := world(retries, "clients: {f: {once: 2, within: 4s, calls: [s]}}", "services: {"+c.service+"}",
			"faults: [{outage: s, at: 1s, for: 5s, mode: "+c.mode+"}]")
		r := run(t, strings.Replace(text, "{policy: {", "{policy: {"+c.gate, 1))
		equal(t, fmt.Sprintf("%s, %s%s: attempts", c.service, c.gate, c.mode), total(service(t, r, "s").Arrived), 1+c.want)
	}
}

// A layer that has tried what its own policy allows says that this was all. A caller that has no part in it does not
// hear it.
func TestALayerThatHasTriedWhatItMaySaysSo(t *testing.T) {
	for owner, want := range map[string][2]int64{
		"nearest": {2 + 1, 1 + 2 + 2}, // the first attempt of all finds out that a speaks, and leaves it nothing
		"none":    {2 * 6, 2 * 6 * 2},
	} {
		s := read(t, `
duration: 10s
warmUp: 0s
clients: {f: {once: 2, within: 2s, calls: [a]}}
services: {a: {calls: [b]}, b: {errorRate: 100%}}
variants:
  only: {policy: {defaults: {`+thrice("10ms")+`}, services: {b: {maxRetries: 1}, a: {maxRetries: 5, retryOwner: `+owner+`}}}}
`)
		r := playVariant(t, s, 0, 1)
		equal(t, owner+": attempts at a", total(service(t, r, "a").Arrived), want[0])
		equal(t, owner+": attempts at b", total(service(t, r, "b").Arrived), want[1])
	}
}

func TestCallTreesCostNoAllocation(t *testing.T) {
	allocations := func(requests string) float64 {
		text := chained(", attemptTimeout: 1s", "clients: {f: {once: "+requests+", within: 5s, calls: [a]}}")
		s := read(t, strings.Replace(text, "errorRate: 100%", "serviceTime: 1ms", 1)) // who fails makes an error
		e, err := engine.New(s, &s.Variants[0])
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(3, func() {
			if _, err := e.Run(1, false, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := allocations("100"), allocations("2000"); many > few+100 {
		t.Errorf("%v allocations for 100 requests, %v for 2000: some of them are made for every request", few, many)
	}
}

// A call has little more than four cache lines, a request one.
func TestWhatComesByTheMillionIsSmall(t *testing.T) {
	if strconv.IntSize != 64 {
		return
	}
	equal(t, "size of a call", engine.CallSize, 160)
	equal(t, "size of a request", engine.TaskSize, 64)
	equal(t, "size of an attempt", engine.AttemptSize, 56)
}
