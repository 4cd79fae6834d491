package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// detailed runs a scenario once and keeps what pictures need.
func detailed(t *testing.T, text string) *engine.Detail {
	t.Helper()
	s := read(t, text)
	e, err := engine.New(s, &s.Variants[0])
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(1, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Detail
}

// outline is the sample as lines of depth, kind, place, begin and end.
func outline(d *engine.Detail) string {
	var lines []string
	for _, s := range d.Sample {
		lines = append(lines, fmt.Sprintf("%d %s %s %v-%v", s.Depth, s.Kind, s.Where, s.From, s.To))
	}
	return strings.Join(lines, "\n")
}

const impatient = "attemptTimeout: 50ms, " // before the work of 200 ms is done

func TestWorkForCallersThatLeftHangsBelowItsAttempt(t *testing.T) {
	faults := "faults: [{outage: idle, at: 0s, for: 1ms}]"
	for name, c := range map[string]struct{ text, want string }{
		"one after the other": {world(impatient+thrice("10ms"),
			"clients: {f: {once: 1, calls: [s]}, other: {rate: 0.000001, calls: [idle]}}",
			"services: {s: {workers: 1, serviceTime: 200ms}, idle: {}}", faults), `
0 request f 0s-170ms
1 call s 0s-170ms
2 attempt s 0s-50ms
3 work s 0s-200ms
2 backoff s 50ms-60ms
2 attempt s 60ms-110ms
3 queue s 60ms-200ms
3 work s 200ms-400ms
2 backoff s 110ms-120ms
2 attempt s 120ms-170ms
3 queue s 120ms-400ms
3 work s 400ms-600ms`},
		"the newest first": {world(impatient+thrice("10ms"),
			"clients: {f: {once: 1, calls: [s]}, other: {rate: 0.000001, calls: [idle]}}",
			"services: {s: {workers: 1, serviceTime: 200ms, queue: {order: lifo}}, idle: {}}", faults), `
0 request f 0s-170ms
1 call s 0s-170ms
2 attempt s 0s-50ms
3 work s 0s-200ms
2 backoff s 50ms-60ms
2 attempt s 60ms-110ms
3 queue s 60ms-400ms
3 work s 400ms-600ms
2 backoff s 110ms-120ms
2 attempt s 120ms-170ms
3 queue s 120ms-200ms
3 work s 200ms-400ms`},
		"calls go on, too": {world(impatient+"maxRetries: 1, backoff: fixed, jitter: none, initialDelay: 10ms, "+
			"retryBudget: {disabled: true}, circuitBreaker: {disabled: true}",
			"clients: {f: {once: 1, calls: [a]}, other: {rate: 0.000001, calls: [idle]}}", "services: {a: {workers: 5, "+
				"serviceTime: 80ms, calls: [b]}, b: {workers: 5, serviceTime: 30ms}, idle: {}}", faults), `
0 request f 0s-110ms
1 call a 0s-110ms
2 attempt a 0s-50ms
3 work a 0s-80ms
3 call b 80ms-110ms
4 attempt b 80ms-110ms
5 work b 80ms-110ms
2 backoff a 50ms-60ms
2 attempt a 60ms-110ms
3 work a 60ms-140ms
3 call b 140ms-170ms
4 attempt b 140ms-170ms
5 work b 140ms-170ms`},
		"two calls at the same moment": {world(impatient+"maxRetries: 1, backoff: fixed, jitter: none, initialDelay: 10ms, "+
			"retryBudget: {disabled: true}, circuitBreaker: {disabled: true}",
			"clients: {f: {once: 1, parallel: true, calls: [{to: s, times: 2}]}, other: {rate: 0.000001, calls: [idle]}}",
			"services: {s: {workers: 1, serviceTime: 200ms}, idle: {}}", faults), `
0 request f 0s-110ms
1 call s 0s-110ms
2 attempt s 0s-50ms
3 work s 0s-200ms
2 backoff s 50ms-60ms
2 attempt s 60ms-110ms
3 queue s 60ms-400ms
3 work s 400ms-600ms
1 call s 0s-110ms
2 attempt s 0s-50ms
3 queue s 0s-200ms
3 work s 200ms-400ms
2 backoff s 50ms-60ms
2 attempt s 60ms-110ms
3 queue s 60ms-600ms
3 work s 600ms-800ms`},
		"calls before work": {world(impatient+plain,
			"clients: {f: {once: 1, calls: [a]}, other: {rate: 0.000001, calls: [idle]}}",
			"services: {a: {workers: 1, serviceTime: 80ms, calls: [b, c], callsFirst: true}, b: {serviceTime: 30ms}, c: "+
				"{serviceTime: 40ms}, idle: {}}", faults), `
0 request f 0s-50ms
1 call a 0s-50ms
2 attempt a 0s-50ms
3 call b 0s-30ms
4 attempt b 0s-30ms
5 work b 0s-30ms
3 call c 30ms-70ms
4 attempt c 30ms-70ms
5 work c 30ms-70ms
3 work a 70ms-150ms`},
	} {
		if got := outline(detailed(t, c.text)); got != strings.TrimSpace(c.want) {
			t.Errorf("%s:\n%s\nwant:%s", name, got, c.want)
		}
	}
}

// Whatever overlaps: only the request itself is at the left edge, and every line is one step below another at most.
func TestEveryLineOfASampleHangsBelowAnother(t *testing.T) {
	for name, lines := range map[string][]string{
		"a storm in layers": {
			"clients: {f: {rate: 100, calls: [a]}}", "services: {a: {workers: 20, serviceTime: exponential 20ms, calls: [b, " +
				"c], parallel: true}, b: {workers: 4, serviceTime: exponential 50ms}, c: {}}",
		},
		"a slow network": {"clients: {f: {rate: 100, parallel: true, calls: [{to: b, times: 2, latency: exponential 20ms}]}}",
			"services: {b: {workers: 4, serviceTime: exponential 50ms}}"},
	} {
		d := detailed(t, world("attemptTimeout: 100ms, hedge: {delay: 50ms}, "+thrice("10ms"),
			append(lines, "faults: [{outage: b, at: 2s, for: 3s}]")...))
		if len(d.Sample) < 10 || d.Sample[0].Kind != "request" {
			t.Fatalf("%s: a sample of %d lines", name, len(d.Sample))
		}
		inside := map[string][]string{
			"request": {"call"}, "call": {"attempt", "backoff"}, "attempt": {"queue", "work", "call"},
		}
		var above []engine.Span
		ended := map[time.Duration]bool{} // attempts of the call, by when
		for i, s := range d.Sample {
			if i > 0 && (s.Depth < 1 || s.Depth > len(above)) {
				t.Fatalf("%s: line %d has depth %d:\n%s", name, i, s.Depth, outline(d))
			}
			switch s.Kind {
			case "call":
				clear(ended)
			case "attempt":
				ended[s.To] = true
			case "backoff":
				if !ended[s.From] && !strings.Contains(name, "layers") { // where a call has others within it
					t.Fatalf("%s: line %d, a backoff, follows no attempt of its call:\n%s", name, i, outline(d))
				}
			}
			if above = append(above[:s.Depth], s); s.Depth > 0 {
				if p := above[s.Depth-1]; !slices.Contains(inside[p.Kind], s.Kind) || p.From > s.From {
					t.Fatalf("%s: line %d, a %s, is below a %s from %v:\n%s", name, i, s.Kind, p.Kind, p.From, outline(d))
				}
			}
		}
	}
}

func TestLatenciesAreInTheirRow(t *testing.T) {
	for latency, row := range map[string]int{
		"10us": 0, "1ms": 0, "1.414ms": 0, "1.415ms": 1, "1.999ms": 1, "2ms": 2, "2.828ms": 2, "2.829ms": 3, "4ms": 4,
		"5.657ms": 5, "1024ms": 20, "1449ms": 21,
	} {
		d := detailed(t, world(plain, "clients: {f: {once: 1, calls: [s]}}", "services: {s: {serviceTime: "+latency+"}}"))
		for _, column := range d.Heat {
			for i, n := range column {
				if n > 0 && i != row {
					t.Errorf("%s is in row %d, want %d", latency, i, row)
				} else if n > 0 {
					row = -1 // seen
				}
			}
		}
		if row >= 0 {
			t.Errorf("%s is in no row", latency)
		}
	}
}
