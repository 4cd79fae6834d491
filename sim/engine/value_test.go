package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
)

// measured has a value for everything that can be measured: 1 request per bin of 100 ms; the
// worker takes 20 ms; from 2 s to 4 s connections are refused, twice per request.
func measured(t *testing.T) *engine.Record {
	return run(t, world("maxRetries: 1, backoff: fixed, initialDelay: 10ms, jitter: none, retryBudget: {disabled: "+
		"true}, circuitBreaker: {disabled: true}",
		"clients: {f: {once: 100, within: 10s, calls: [{to: s, pool: 2, latency: 1ms}]}}",
		"services: {s: {workers: 2, serviceTime: 20ms}}",
		"faults: [{outage: s, at: 2s, for: 2s, mode: refuse}]"))
}

func TestMeasuresAreWhatTheySay(t *testing.T) {
	r := measured(t)
	for text, want := range map[string]float64{
		"collapse < 1%": 0, "recovery < 10s": 0, "goodput > 1%": 0.8, "goodput(f, during) > 1%": 0, "goodput(after) > 1%": 1,
		"amplification(s) < 9": 1.2, "amplification(s, during) < 9": 2, "amplification(s, before) < 9": 1,
		"attempts(s) < 9/s": 12, "attempts(s, during) < 9/s": 20, "retries(s, during) < 9/s": 10, "retries < 9/s": 2,
		"retries(s, after) < 9/s": 0,
		"failures > 1%":           0.2, "failures(during) > 1%": 1, "refused < 1%": 0, "offered(f) > 1/s": 10,
		"offered(before) > 1/s": 10,
		"userVisible < 45s":     2, "served(p50) < 9s": 3, "queueWait(s) < 1s": 0, "queue(s) < 9": 0,
		"waste(s, after) < 5%":        0,
		"utilization(s, before) < 9%": 0.1, "utilization(s, during) < 9%": 0, "peak(s) < 9/s": 100, "connections(s) < 9": 1,
	} {
		if got := value(t, r, text); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: measured %v, want %v", text, got, want)
		}
	}
	within(t, "latency(p99)", value(t, r, "latency(p99) < 1s"), 0.022*0.97, 0.026)
	within(t, "latency(p50, after)", value(t, r, "latency(p50, after) < 1s"), 0.022*0.97, 0.022*1.03)
}

// ofConsumers are tested in consumer_test.go.
var ofConsumers = []string{"deadLetters", "deliveries", "lag", "lateness", "drained"}

// ofWorlds are tested in cache_test.go and the like.
var ofWorlds = []string{"hits", "replicas", "restarts"}

func TestEveryMeasureHasAValueInEveryWindow(t *testing.T) {
	r := measured(t)
	for _, m := range expect.Measures() {
		for _, w := range []expect.Window{expect.All, expect.Before, expect.During, expect.After} {
			x := expect.Expectation{Measure: m.Name, Window: w}
			switch {
			case w != expect.All && !m.Window, m.Name == "gateWait", slices.Contains(ofWorlds, m.Name),
				slices.Contains(ofConsumers, m.Name):
				continue
			case w == expect.During && (m.Name == "latency" || m.Name == "queueWait" || m.Name == "waste" ||
				m.Name == "response"):
				continue // nobody is answered then, and there is no work
			}
			if m.Subject == expect.Service && m.SubjectNeed == expect.Required {
				x.Subject = "s"
			}
			if m.Quantile == expect.Required {
				x.Quantile = 0.5
			}
			if v := r.Value(&x); math.IsNaN(v) || v < 0 {
				t.Errorf("%s is %v", x.String(), v)
			}
		}
	}
}

func TestWhatCannotBeMeasuredIsNotANumber(t *testing.T) {
	r := measured(t)
	for _, text := range []string{"latency(p99, during) < 1s", "queueWait(s, during) < 1s", "waste(s, during) < 1%"} {
		if v := value(t, r, text); !math.IsNaN(v) {
			t.Errorf("%s: measured %v where nothing happened", text, v)
		}
	}
	r = run(t, world(plain, each(50, ""), instant))
	for _, text := range []string{"recovery < 1s", "goodput(after) > 1%", "goodput(during) > 1%", "utilization(s) < 1%"} {
		if v := value(t, r, text); !math.IsNaN(v) {
			t.Errorf("%s: measured %v in a run without trouble at a service without limits", text, v)
		}
	}
}

func TestMeasuresOfSeveralFleets(t *testing.T) {
	r := run(t, world(plain, "clients: {f: {once: 30, calls: [s]}, g: {once: 10, calls: [x]}}",
		"services: {s: {}, x: {errorRate: 100%}}"))
	equal(t, "goodput", value(t, r, "goodput > 1%"), 0.75)
	equal(t, "goodput of f", value(t, r, "goodput(f) > 1%"), 1)
	equal(t, "goodput of g", value(t, r, "goodput(g) > 1%"), 0)
	equal(t, "amplification of x: attempts per request that needs it", value(t, r, "amplification(x) > 1"), 1)
	equal(t, "offered", value(t, r, "offered > 1/s"), 4)
}

func TestScaledRatesAreThoseOfTheFullSize(t *testing.T) {
	s := read(t, world(plain, "clients: {f: {once: 50, calls: [s]}}", instant))
	s.Scale = 10
	r := playVariant(t, s, 0, 1)
	equal(t, "attempts", value(t, r, "attempts(s) > 1/s"), 50)
	equal(t, "offered", value(t, r, "offered > 1/s"), 50)
	equal(t, "peak", value(t, r, "peak(s) > 1/s"), 50_000)
}

// series writes goodput per bin as digits: 9 is nine of ten requests, t all ten, - that none was offered.
func series(digits string) (good, offered []uint32) {
	for _, d := range digits {
		switch d {
		case '-':
			good, offered = append(good, 0), append(offered, 0)
		case 't':
			good, offered = append(good, 10), append(offered, 10)
		default:
			good, offered = append(good, uint32(d-'0')), append(offered, 10)
		}
	}
	return good, offered
}

func TestRecovery(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		digits string // one per 100 ms; the trouble ends after three, goodput has to hold for three, 90% of normal is enough
		normal float64
		want   float64
	}{
		{"ttttttttt", 1, 0},
		{"tt0tttttt", 1, 0},
		{"tt00ttttt", 1, 0.1},
		{"tt000000t", 1, inf},    // not for long enough
		{"tt0000ttt", 1, 0.3},    // just
		{"tt0000tt9", 1, 0.3},    // 29 of 30
		{"tt0000t89", 1, 0.3},    // 27 of 30 are 90%
		{"tt0000t88", 1, inf},    // 26 are not
		{"tt0ttt000", 1, inf},    // a lull: on average until the end it is not back
		{"tt0555555", 0.5, 0},    // normal was half
		{"tt0444444", 0.5, inf},  // 80% of it
		{"tt0---ttt", 1, 0.1},    // a stretch with a single good bin holds
		{"tt0------", 1, 0},      // nothing was offered: see below
		{"tt0tttttt", 0, 0},      // nothing to come back to: see below
		{"ttttttttttttt", 1, 0},  // and on it goes
		{"000000000ttt", 1, 0.6}, // the trouble was long over
	} {
		good, offered := series(c.digits)
		got := engine.Recovery(good, offered, 100*ms, 300*ms, c.normal, 0.9, 300*ms)
		switch {
		case c.digits == "tt0------" || c.normal == 0:
			if !math.IsNaN(got) {
				t.Errorf("%s, normal %v: recovery %v, want none", c.digits, c.normal, got)
			}
		case math.Abs(got-c.want) > 1e-9 && got != c.want:
			t.Errorf("%s, normal %v: recovery %v, want %v", c.digits, c.normal, got, c.want)
		}
	}
}

func TestCollapseIsGoodputThatStaysDown(t *testing.T) {
	const load = "clients: {f: {rate: 100, arrivals: even, calls: [s]}}\nservices: {s: {workers: 13, serviceTime: 100ms}}"
	storm := thrice("100ms") + ", attemptTimeout: 300ms"
	for name, c := range map[string]struct {
		policy, faults string
		want           float64
	}{
		"a storm":            {storm, "faults: [{outage: s, at: 2s, for: 2s}]", 1},
		"one attempt":        {plain + ", attemptTimeout: 300ms", "faults: [{outage: s, at: 2s, for: 2s}]", 0},
		"nothing goes wrong": {storm, "", 0},
		"overload":           {plain + ", attemptTimeout: 300ms", "faults: [{surge: f, factor: 5, at: 2s, for: 17s}]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, world(c.policy, "duration: 20s", load, c.faults))
			equal(t, "collapse", value(t, r, "collapse < 1%"), c.want)
		})
	}
}

func TestBinsAreCoarserInLongRuns(t *testing.T) {
	for length, want := range map[time.Duration]time.Duration{
		time.Second: 100 * ms, 10 * time.Minute: 100 * ms, 10*time.Minute + 1: 200 * ms, 4 * time.Hour: 2400 * ms,
		168 * time.Hour: 100800 * ms,
	} {
		equal(t, fmt.Sprintf("bin of %v", length), engine.BinOf(length), want)
	}
}
