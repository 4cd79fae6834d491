package engine_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
)

// instant is a service that answers at once and has no limits.
const instant = "services: {s: {}}"

func offered(t *testing.T, fleet string, more ...string) *engine.Record {
	t.Helper()
	return run(t, world(plain, append(more, "clients: {f: {"+fleet+", calls: [s]}}", instant)...))
}

// dispersion is the variance of the counts per bin divided by their mean: 1 for independent arrivals.
func dispersion(series []uint32) float64 {
	var sum, squares float64
	for _, n := range series {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	n := float64(len(series))
	return (squares/n - sum/n*sum/n) / (sum / n)
}

func TestPoissonArrivalsAreIndependent(t *testing.T) {
	f := offered(t, "rate: 1000, instances: 10", "duration: 100s").Fleets[0]
	n := float64(len(f.Offered))
	within(t, "number of arrivals", float64(total(f.Offered)), 1e5-4*math.Sqrt(1e5), 1e5+4*math.Sqrt(1e5))
	within(t, "dispersion", dispersion(f.Offered), 1-4*math.Sqrt(2/n), 1+4*math.Sqrt(2/n))
}

func TestEvenArrivalsKeepStep(t *testing.T) {
	r := offered(t, "rate: 100, arrivals: even")
	f := r.Fleets[0]
	for b, n := range f.Offered {
		equal(t, "arrivals in bin "+strconv.Itoa(b), n, 10)
	}
	equal(t, "most arrivals in 10 ms", r.Services[0].Peak[engine.Before], 1)
}

func TestInstancesOfAnEvenFleetAreNotInStep(t *testing.T) {
	r := offered(t, "rate: 1000, arrivals: even, instances: 100")
	equal(t, "arrivals", total(r.Fleets[0].Offered), 10_000)
	if peak := r.Services[0].Peak[engine.Before]; peak > 40 {
		t.Errorf("%d of 100 instances call within the same 10 ms of each 100 ms", peak)
	}
}

func TestJitteredArrivalsComeOncePerPeriod(t *testing.T) {
	r := offered(t, "rate: 10, arrivals: jittered")
	for b, n := range r.Fleets[0].Offered {
		equal(t, "arrivals in period "+strconv.Itoa(b), n, 1)
	}
}

func TestCurves(t *testing.T) {
	type stretch struct {
		from, to time.Duration
		want     int64
	}
	s := time.Second
	for name, c := range map[string]struct {
		fleet, more string
		want        []stretch
	}{
		"steps": {"curve: [{at: 0s, rate: 100}, {at: 4s, rate: 300}]", "", []stretch{
			{0, 4 * s, 400}, {4 * s, 10 * s, 1800},
		}},
		"ramp up": {"curve: [{at: 0s, rate: 0}, {at: 10s, rate: 200}], between: ramps", "", []stretch{
			{0, 5 * s, 250}, {5 * s, 10 * s, 750},
		}},
		"ramp down": {"curve: [{at: 0s, rate: 200}, {at: 10s, rate: 0}], between: ramps", "", []stretch{
			{0, 5 * s, 750}, {5 * s, 10 * s, 250},
		}},
		"level after": {"curve: [{at: 0s, rate: 0}, {at: 2s, rate: 100}], between: ramps", "", []stretch{
			{0, 2 * s, 100}, {2 * s, 10 * s, 800},
		}},
		"level before": {"curve: [{at: 5s, rate: 100}, {at: 6s, rate: 10}]", "", []stretch{
			{0, 6 * s, 600}, {6 * s, 10 * s, 40},
		}},
		"a gap": {"curve: [{at: 0s, rate: 100}, {at: 2s, rate: 0}, {at: 8s, rate: 100}]", "", []stretch{
			{0, 2 * s, 200}, {2 * s, 8 * s, 0}, {8 * s, 10 * s, 200},
		}},
		"a gap, ramped": {
			"curve: [{at: 0s, rate: 100}, {at: 2s, rate: 0}, {at: 8s, rate: 0}, {at: 10s, rate: 100}], between: ramps", "",
			[]stretch{{0, 2 * s, 100}, {2 * s, 8 * s, 0}, {8 * s, 10 * s, 100}},
		},
		"surge": {"rate: 100", "faults: [{surge: f, at: 2s, for: 3s, factor: 4}]", []stretch{
			{0, 2 * s, 200}, {2 * s, 5 * s, 1200}, {5 * s, 10 * s, 500},
		}},
		"surge on surge": {
			"rate: 100", "faults: [{surge: f, at: 2s, for: 4s, factor: 2}, {surge: f, at: 4s, for: 4s, factor: 3}]", []stretch{
				{0, 2 * s, 200}, {2 * s, 4 * s, 400}, {4 * s, 6 * s, 1200}, {6 * s, 8 * s, 600}, {8 * s, 10 * s, 200},
			},
		},
		"surge of ramp": {
			"curve: [{at: 0s, rate: 0}, {at: 10s, rate: 100}], between: ramps", "faults: [{surge: f, at: 5s, for: 4s, factor: " +
				"2}]", []stretch{{0, 5 * s, 125}, {5 * s, 9 * s, 560}, {9 * s, 10 * s, 95}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, warm := range []string{"warmUp: 0s", "warmUp: 3s"} {
				r := offered(t, c.fleet+", arrivals: even, instances: 2", c.more, warm)
				for _, w := range c.want {
					got := between(r, r.Fleets[0].Offered, w.from, w.to)
					within(t, "arrivals from "+w.from.String()+" to "+w.to.String()+", "+warm, float64(got), float64(w.want-2),
						float64(w.want+2))
				}
			}
		})
	}
}

func TestADayHasItsPeak(t *testing.T) {
	h := time.Hour
	r := offered(t, "rate: 1, arrivals: even, daily: {swing: 50%, peak: 14h, starts: 8h}", "duration: 24h")
	count := func(from, to time.Duration) float64 { return float64(between(r, r.Fleets[0].Offered, from, to)) }
	within(t, "requests of the day", count(0, 24*h), 86_395, 86_405)
	within(t, "requests of the hour around the peak", count(5*h+h/2, 6*h+h/2), 0.995*1.5*3600, 1.5*3600+20)
	within(t, "requests of the hour around the trough", count(17*h+h/2, 18*h+h/2), 0.5*3600-20, 1.01*0.5*3600)
}

func TestOnceSpreadsItsRequests(t *testing.T) {
	f := offered(t, "once: 20, within: 2s").Fleets[0]
	for b, n := range f.Offered {
		want := uint32(0)
		if b < 20 {
			want = 1
		}
		equal(t, "arrivals in bin "+strconv.Itoa(b), n, want)
	}
	equal(t, "requests of the first bin", offered(t, "once: 20").Fleets[0].Offered[0], 20)
}

func TestAClosedLoopWaitsForItsAnswers(t *testing.T) {
	r := run(t, world(plain, "duration: 100s", "clients: {f: {users: 10, think: 900ms, calls: [s]}}",
		"services: {s: {serviceTime: 100ms}}"))
	equal(t, "requests of 10 users in 100 s, one per second each", total(r.Fleets[0].Offered), 1000)
	// With one worker of 500 ms the users are held up: throughput is the worker's.
	r = run(t, world(plain, "duration: 100s", "clients: {f: {users: 10, think: 900ms, calls: [s]}}",
		"services: {s: {workers: 1, serviceTime: 500ms}}"))
	within(t, "answers in 100 s of one worker with 500 ms", float64(total(r.Fleets[0].Answered)), 195, 200)
}

func TestAClosedLoopKeepsTheLawOfThinkingAndResponse(t *testing.T) {
	r := run(t, world(plain, "duration: 1000s", "warmUp: 20s", "clients: {f: {users: 50, think: exponential 2s, calls: "+
		"[s]}}", "services: {s: {workers: 5, serviceTime: exponential 100ms}}"))
	f := &r.Fleets[0]
	response := f.Latency[engine.Before].Mean()
	rate := float64(total(f.Answered)) / 1000
	within(t, "throughput × (think + response) / users", rate*(2+response)/50, 0.97, 1.03) // sd of 24,000 cycles: 0.65 %
}

func TestEveryInstanceHasAGuardOfItsOwn(t *testing.T) {
	one := plain + ", bulkhead: {maxConcurrentCalls: 1, noQueue: true}"
	wantEnds(t, run(t, world(one, "clients: {f: {once: 5, calls: [s]}}", "services: {s: {serviceTime: 100ms}}")),
		"1 answered, 4 bulkhead-full")
	wantEnds(
		t, run(t, world(one, "clients: {f: {once: 5, instances: 5, calls: [s]}}", "services: {s: {serviceTime: 100ms}}")),
		"5 answered")
}
