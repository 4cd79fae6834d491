//go:build !race

package library_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/sim/distribution"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/population"
	"github.com/abate-go/abate/sim/scenario"
)

// run makes one run of a variant.
func run(t *testing.T, s *scenario.Scenario, variant string, seed uint64) *engine.Record {
	t.Helper()
	for i := range s.Variants {
		if s.Variants[i].Name != variant {
			continue
		}
		e, err := engine.New(s, &s.Variants[i])
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Run(seed, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	t.Fatalf("%s has no variant %s", s.File, variant)
	return nil
}

// count adds a series up from one moment to another.
func count(r *engine.Record, series []uint32, from, to time.Duration) int {
	n := 0
	for b := from / r.Bin; b < to/r.Bin; b++ {
		n += int(series[b])
	}
	return n
}

// seeds are the seeds of so many runs, and of a fifth of them under the race detector and under -short.
func seeds(runs int) []uint64 {
	if racing || testing.Short() {
		runs /= 5
	}
	list := make([]uint64, runs)
	for i := range list {
		list[i] = uint64(i + 1)
	}
	return list
}

// near fails unless the mean of some runs is within four of its standard deviations of a value, which is the mean of
// others with a standard deviation of its own, if it was measured.
func near(t *testing.T, what string, values []float64, want, wantSD float64) {
	t.Helper()
	s := expect.NewSample(values)
	allowed := 4 * math.Hypot(s.SD()/math.Sqrt(float64(len(values))), wantSD)
	if off := math.Abs(s.Mean() - want); !(off <= allowed) {
		t.Errorf("%s: %.5g, want %.5g ± %.2g", what, s.Mean(), want, allowed)
	}
}

// 10,000 requests/s that are refused for 30 s and tried again after 1, 2 and 3 s: 10,000 × (30 + 29 + 28 + 27)
// attempts, 40,000/s from the fourth second on.
func TestCheckoutSends1140000AttemptsIntoTheOutage(t *testing.T) {
	s := load(t, "checkout-outage.yaml")
	s.Clients[0].Arrivals = scenario.Even
	s.Services[0].ServiceTime = distribution.Fixed(100 * time.Millisecond)
	r := run(t, s, "unguarded", 1)
	arrived := r.Services[0].Arrived
	if got := count(r, arrived, r.Begin, r.End) * r.Scale; got != 1_140_000 {
		t.Errorf("%d attempts, want 1,140,000", got)
	}
	for at := r.Begin + 3*time.Second; at < r.End; at += time.Second {
		if got := count(r, arrived, at, at+time.Second) * r.Scale; got != 40_000 {
			t.Errorf("%d attempts in the second from %v on, want 40,000", got, at)
		}
	}
}

// What holds while the database fails and nothing cuts a request short: every layer multiplies, unless it shares its
// attempts with the layer that called it.
func TestChainMultipliesAttempts(t *testing.T) {
	var none [3]int64
	for _, c := range []struct {
		variant  string
		want     [3]int64
		learning [3]int64 // more, until the first answer has told who shares
	}{
		{"three-attempts", [3]int64{3, 9, 27}, none},
		{"three-retries", [3]int64{4, 16, 64}, none},
		{"edge-only", [3]int64{3, 3, 3}, none},
		{"edge", [3]int64{3, 3, 3}, none},
		{"nearest", [3]int64{2, 3, 3}, [3]int64{1, 0, 0}},
		{"middle-alone", [3]int64{3, 9, 27}, none},
		{"neighbours", [3]int64{3, 6, 9}, [3]int64{0, 1, 0}},
	} {
		s := load(t, "amplification-chain.yaml")
		s.WarmUp, s.Faults[0].At, s.Faults[0].For = 0, 0, s.Duration+s.Model.Drain
		r := run(t, s, c.variant, 1)
		requests := int64(count(r, r.Fleets[0].Offered, 0, s.Duration))
		for i, want := range c.want {
			e := &r.Edges[i]
			if got := e.Attempts; got != want*requests+c.learning[i] {
				t.Errorf("%s: %d attempts from %s to %s for %d requests, want %d each", c.variant, got, e.Caller, e.Callee,
					requests, want)
			}
		}
	}
}

// 1,000 clients, refused for 60 s. Every second: 60 attempts each. After 1, 2, 3 … s: at 0, 1, 3, 6, 10, 15, 21, 28,
// 36, 45 and 55 s. After 1, 2, 4 … s: at 0, 1, 3, 7, 15 and 31 s.
func TestThousandClientsSendAsManyAttemptsAsThereAre(t *testing.T) {
	for variant, want := range map[string]struct{ attempts, retries int }{
		"fixed": {60_000, 59_000}, "linear": {11_000, 10_000}, "exponential": {6_000, 5_000},
	} {
		s := load(t, "thousand-clients.yaml")
		r := run(t, s, variant, 1)
		x := &r.Services[0]
		if got := count(r, x.Arrived, 0, r.End); got != want.attempts {
			t.Errorf("%s: %d attempts, want %d", variant, got, want.attempts)
		}
		if got := count(r, x.Retries, 0, r.End); got != want.retries {
			t.Errorf("%s: %d retries, want %d", variant, got, want.retries)
		}
	}
}

// The means and standard deviations of 2,000 runs of the model of "Exponential Backoff And Jitter" (aws-samples,
// aws-arch-backoff-simulator, 2015) with 100 clients; the published chart is of 100 runs. Decorrelated jitter cuts its
// delays at the longest one there; Abate draws below it, so that its end comes earlier.
func TestJitterKindsNeedAsManyAttemptsAsPublished(t *testing.T) {
	needs.Whole(t)
	t.Parallel()
	const published = 2000
	for _, c := range []struct {
		variant               string
		calls, sd, seconds, e float64
	}{
		{"exponential", 1854.8, 57, 63.423, 3.783},
		{"decorrelated", 1001.0, 30, 0, 0},
		{"equal", 812.4, 7.9, 6.6401, 0.657},
		{"full", 795.6, 7.0, 4.9103, 0.541},
		{"none", 2421.8, 32, 2.0268, 0.045},
	} {
		s := load(t, "jitter-kinds.yaml")
		var calls, seconds []float64
		for _, seed := range seeds(60) {
			r := run(t, s, c.variant, seed)
			calls = append(calls, float64(r.Attempts))
			seconds = append(seconds, r.LastEnd.Seconds())
		}
		near(t, c.variant+": attempts", calls, c.calls, c.sd/math.Sqrt(published))
		if c.seconds > 0 {
			near(t, c.variant+": seconds", seconds, c.seconds, c.e/math.Sqrt(published))
		}
	}
}

// 50 pods with 20 connections each want 1,000 of the 100 that there are: they get 100, and at least 900 are refused.
func TestPodsAreRefusedNineHundredConnections(t *testing.T) {
	s := load(t, "postgres-reconnect.yaml")
	r := run(t, s, "naive", 1)
	x := &r.Services[0]
	if got := count(r, x.Rejected, r.End, r.End+time.Second); got < 900 {
		t.Errorf("%d connections refused in the first second, want at least 900", got)
	}
	for b, n := range x.Conns {
		if n > 100 {
			t.Fatalf("%d connections in bin %d, at most 100 can be", n, b)
		}
	}
}

// 200 threads, 30 % of requests hold one for 10 s and the others for 0.1 s: 200 / (0.3·10 + 0.7·0.1) = 65.15
// requests/s.
func TestGatewayHasACeiling(t *testing.T) {
	t.Parallel()
	s := load(t, "gateway-slowdown.yaml")
	s.Faults = s.Faults[:1]
	s.Duration = 11 * time.Minute
	const from, to = 2 * time.Minute, 11 * time.Minute // when all threads have been busy for long
	var rates []float64
	for _, seed := range seeds(20) {
		r := run(t, s, "unguarded", seed)
		x := &r.Services[0]
		done := count(r, x.Served, from, to) + count(r, x.Wasted, from, to) + count(r, x.Errors, from, to)
		rates = append(rates, float64(done*r.Scale)/(to-from).Seconds())
	}
	near(t, "requests/s", rates, 200/(0.3*10+0.7*0.1), 0)
}

// The storm ends with the load: at 4h10m of the run, four hours after the outage, 2,500/s × 4 attempts fall below
// 12,000/s.
func TestFourHourStormEndsWhenLoadFallsBelowAQuarter(t *testing.T) {
	t.Parallel()
	s := load(t, "checkout-four-hours.yaml")
	r := run(t, s, "unguarded", 1)
	ends := (4*time.Hour + 10*time.Minute - r.End).Seconds()
	if got := r.Value(&expect.Expectation{Measure: "recovery"}); got < ends || got > ends+60 {
		t.Errorf("recovery after %v s, want %v s, when the load falls, or up to a minute more", got, ends)
	}
}

// What an exact run of 10,000,000 came to, which call once within the 2 minutes of the outage, and again after 1, 2, 4
// … 60 s.
func TestPhonesNeedAsManyAttemptsAsThereAre(t *testing.T) {
	s := load(t, "ten-million-phones.yaml")
	fleet, service := &s.Clients[0], &s.Services[0]
	for i := range s.Variants {
		v := &s.Variants[i]
		want, ok := map[string]struct{ attempts, firstSecond, served float64 }{
			"no-jitter": {7.71, 5.0, 125.5}, "full-jitter": {9.61, 6.6, 117},
		}[v.Name]
		if !ok {
			continue
		}
		outage := population.Outage{From: s.Faults[0].At, To: s.Faults[0].At + s.Faults[0].For}
		c, err := population.Cohort(population.Config{
			Clients:  fleet.Once,
			Within:   fleet.Within,
			Retry:    v.PolicyOf(fleet.Name, service.Name).Retry,
			Capacity: service.Capacity(),
			Outages:  []population.Outage{outage},
			Duration: s.Duration,
			Slot:     10 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		back := int(outage.To / c.Slot)
		all, first, answered, at := 0.0, 0.0, 0.0, 0
		for i, n := range c.Attempts {
			if all += n; i >= back && i < back+100 {
				first += n
			}
			if answered += c.Served[i]; answered < 0.99*float64(fleet.Once) {
				at = i
			}
		}
		for _, x := range []struct {
			what            string
			got, want, give float64
		}{
			{"attempts per phone", all / float64(fleet.Once), want.attempts, 0.02},
			{"times the capacity in the first second after the outage", first / service.Capacity(), want.firstSecond, 0.1},
			{"seconds until 99 % are served", float64(at-back) / 100, want.served, 2},
		} {
			if math.Abs(x.got-x.want) > x.give {
				t.Errorf("%s: %.4g %s, want %v", v.Name, x.got, x.what, x.want)
			}
		}
	}
}
