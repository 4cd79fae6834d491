package pacing_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/pacing"
)

// most turns in any window: the bound of the package comment, whatever is drawn.
func bound(c pacing.Config, window time.Duration) float64 {
	if c.Jitter == 1 {
		return math.Inf(1)
	}
	return float64(c.Burst) + 1 + c.PerSecond*window.Seconds()/(1-c.Jitter)
}

// checkBound fails if some window of the sorted turns holds more than it may.
func checkBound(t *testing.T, c pacing.Config, at []time.Duration) {
	t.Helper()
	for from := range at {
		for to := from; to < len(at); to++ {
			if n := to - from + 1; float64(n) > bound(c, at[to]-at[from])*(1+1e-9) {
				t.Fatalf("%+v: %d turns in the %v from %v on, at most %v", c, n, at[to]-at[from], at[from],
					bound(c, at[to]-at[from]))
			}
		}
	}
}

func TestNoWindowHasMoreTurnsThanThePaceAllows(t *testing.T) {
	for name, draw := range map[string]func(*rand.Rand) uint64{
		"lowest": func(*rand.Rand) uint64 { return lowest },
		"most":   func(*rand.Rand) uint64 { return most },
		"random": (*rand.Rand).Uint64,
	} {
		for _, c := range []pacing.Config{
			{PerSecond: 10}, {PerSecond: 10, Burst: 5}, {PerSecond: 3, Jitter: 0.9, RampUp: 5 * s},
			{PerSecond: 100, Burst: 20, RampUp: s, MaxWait: 50 * ms}, {PerSecond: 0.01, Burst: 2, MaxWait: time.Hour},
			{PerSecond: 1e6, Burst: 3},
		} {
			c = c.WithDefaults()
			r := rand.New(rand.NewPCG(1, 2))
			p, now, at := pacing.New(c), time.Duration(0), []time.Duration(nil)
			interval := float64(s) / c.PerSecond
			for len(at) < 400 {
				if wait, ok := p.Take(now, draw(r), never); ok {
					at = append(at, now+wait)
				} else {
					now += wait - c.MaxWait
				}
				switch r.IntN(20) {
				case 0: // a pause
					now += time.Duration(30 * interval * r.Float64())
				case 1, 2:
					now += time.Duration(interval * r.Float64())
				case 3: // the circuit has closed
					p.Restart(now, draw(r))
				}
			}
			if !slices.IsSorted(at) {
				t.Errorf("%s, %+v: a turn comes before that of somebody who asked earlier", name, c)
			}
			checkBound(t, c, at)
		}
	}
}

// Who always asks as soon as he may gets the whole pace: jitter and ramp-up take nothing away in the long run.
func TestOnAverageThePaceIsKept(t *testing.T) {
	for _, c := range []pacing.Config{
		{PerSecond: 10}, {PerSecond: 7, Jitter: 1}, {PerSecond: 300, Burst: 9, Jitter: 0.001}, {PerSecond: 10, RampUp: 5 * s},
	} {
		c.MaxWait = time.Hour
		r := rand.New(rand.NewPCG(3, 4))
		p, now := pacing.New(c), time.Duration(0)
		const n = 20_000
		for range n {
			wait, ok := p.Take(now, r.Uint64(), never)
			if !ok {
				t.Fatal("refused")
			}
			now += wait
		}
		took := now.Seconds() - c.RampUp.Seconds()*0.9/2 // what the ramp-up keeps back
		if got := (n - 1) / took; math.Abs(got-c.PerSecond) > 0.02*c.PerSecond {
			t.Errorf("%+v: %v turns a second", c, got)
		}
	}
}

func TestManyAtOnceGetTurnsOfTheirOwn(t *testing.T) {
	c := pacing.Config{PerSecond: 1000, MaxWait: time.Hour}.WithDefaults()
	p := pacing.New(c)
	var mu sync.Mutex
	var at []time.Duration
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 0))
			for i := range 100 {
				if wait, ok := p.Take(s, r.Uint64(), never); ok {
					mu.Lock()
					at = append(at, s+wait)
					mu.Unlock()
				}
				switch i % 10 {
				case 3:
					p.State(s)
				case 5:
					p.Reconfigure(c)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(at)
	if len(at) != 800 {
		t.Fatalf("%d turns, want 800", len(at))
	}
	checkBound(t, c, at)
}
