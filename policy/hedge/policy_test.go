package hedge_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/hedge"
)

// feed records n successes of one latency, evenly over a stretch of time, and
// returns the time after the last.
func feed(p *hedge.Policy, now time.Duration, n int, over, latency time.Duration) time.Duration {
	for range n {
		p.Record(now, latency)
		now += over / time.Duration(n)
	}
	return now
}

// near reports whether an estimate is as good as promised: not below the true
// value, and at most 1/16 and one microsecond above.
func near(estimate, truth time.Duration) bool {
	return estimate >= truth && estimate <= truth+truth/16+1100*time.Nanosecond
}

func TestFixedDelay(t *testing.T) {
	p := hedge.New(hedge.Config{Delay: 50 * time.Millisecond, MaxHedges: 2})
	feed(p, 0, 1000, time.Minute, time.Second) // changes nothing: there is no quantile
	for _, now := range []time.Duration{0, time.Hour, -time.Hour, math.MaxInt64, math.MinInt64} {
		if d, ok := p.Delay(now); d != 50*time.Millisecond || !ok {
			t.Errorf("Delay(%v) = %v, %v; want 50ms, true", now, d, ok)
		}
	}
	if n := p.MaxHedges(); n != 2 {
		t.Errorf("MaxHedges = %d, want 2", n)
	}
	if s := p.State(); s != (hedge.State{Delay: 50 * time.Millisecond}) {
		t.Errorf("state = %+v, want the delay alone", s)
	}
	p.Reconfigure(time.Minute, hedge.Config{Quantile: 0.9})
	if n := p.State().Samples; n != 0 {
		t.Errorf("%d samples counted without a quantile, want none", n)
	}
}

func TestAQuantileThatIsNotOneLeavesTheFixedDelay(t *testing.T) {
	for _, q := range []float64{-1, math.Inf(-1), math.NaN()} {
		p := hedge.New(hedge.Config{Delay: 50 * time.Millisecond, Quantile: q})
		now := feed(p, 0, 1000, time.Second, time.Second)
		if d, ok := p.Delay(now + time.Second); d != 50*time.Millisecond || !ok {
			t.Errorf("quantile %v: Delay = %v, %v; want 50ms, true", q, d, ok)
		}
	}
}

func TestANegativeDelayIsNotADelay(t *testing.T) {
	p := hedge.New(hedge.Config{Delay: math.MinInt64, Quantile: 0.9})
	if d, ok := p.Delay(0); d != 0 || ok {
		t.Errorf("Delay = %v, %v; want 0, false until enough is known", d, ok)
	}
}

func TestOffMeansNoHedges(t *testing.T) {
	for _, c := range []hedge.Config{
		{}, {MaxHedges: 3}, {Delay: -1}, {Quantile: -1}, {Quantile: math.NaN()},
		{Disabled: true, Delay: time.Second}, {Disabled: true, Quantile: 0.9},
	} {
		p := hedge.New(c)
		feed(p, 0, 1000, time.Minute, time.Second)
		if d, ok := p.Delay(time.Minute); d != 0 || ok || p.MaxHedges() != 0 || c.Enabled() {
			t.Errorf("%+v: Delay = %v, %v, MaxHedges = %d, enabled = %v; want nothing", c, d, ok, p.MaxHedges(), c.Enabled())
		}
	}
}

func TestNothingIsLearnedFromTooFewSamples(t *testing.T) {
	for _, fixed := range []time.Duration{0, 80 * time.Millisecond} {
		p := hedge.New(hedge.Config{Delay: fixed, Quantile: 0.95})
		if d, ok := p.Delay(0); d != fixed || ok != (fixed > 0) {
			t.Errorf("fixed delay %v, new policy: Delay = %v, %v", fixed, d, ok)
		}
		now := feed(p, 0, hedge.MinSamples-1, 10*time.Second, 20*time.Millisecond)
		if d, ok := p.Delay(now + 2*time.Second); d != fixed || ok != (fixed > 0) {
			t.Errorf("fixed delay %v, one sample short: Delay = %v, %v", fixed, d, ok)
		}
		p.Record(now, 20*time.Millisecond)
		if d, ok := p.Delay(now + 4*time.Second); !near(d, 20*time.Millisecond) || !ok {
			t.Errorf("fixed delay %v, enough samples: Delay = %v, %v; want 20ms or a little more", fixed, d, ok)
		}
		d, _ := p.Delay(now + 4*time.Second)
		want := hedge.State{Delay: d, Learned: true, Samples: hedge.MinSamples}
		if s := p.State(); s != want {
			t.Errorf("state = %+v, want %+v", s, want)
		}
	}
}

func TestMinDelayIsTheFloorOfALearnedDelay(t *testing.T) {
	for _, tt := range []struct {
		config  hedge.Config
		latency time.Duration
		want    time.Duration
	}{
		{hedge.Config{Quantile: 0.9}, 10 * time.Microsecond, time.Millisecond},
		{hedge.Config{Quantile: 0.9, MinDelay: 30 * time.Millisecond}, 10 * time.Millisecond, 30 * time.Millisecond},
		{hedge.Config{Quantile: 0.9, MinDelay: -1}, 10 * time.Microsecond, 10240 * time.Nanosecond},
	} {
		p := hedge.New(tt.config)
		now := feed(p, 0, 100, 5*time.Second, tt.latency)
		if d, _ := p.Delay(now + time.Second); d != tt.want {
			t.Errorf("%+v, latency %v: delay = %v, want %v", tt.config, tt.latency, d, tt.want)
		}
	}
	fixed := hedge.New(hedge.Config{Delay: 5 * time.Millisecond, MinDelay: time.Second})
	if d, _ := fixed.Delay(0); d != 5*time.Millisecond {
		t.Errorf("fixed delay = %v, want 5ms whatever the floor", d)
	}
}

// When everything is slow, a fixed delay doubles the load. A learned one moves
// up within seconds.
func TestDelayFollowsWhenEverythingBecomesSlow(t *testing.T) {
	p := hedge.New(hedge.Config{Quantile: 0.95})
	now := feed(p, 0, 12_000, 2*time.Minute, 10*time.Millisecond)
	if d, _ := p.Delay(now); !near(d, 10*time.Millisecond) {
		t.Fatalf("delay = %v, want 10ms", d)
	}
	now = feed(p, now, 500, 5*time.Second, time.Second)
	if d, _ := p.Delay(now); !near(d, time.Second) {
		t.Errorf("5 s after the shift: delay = %v, want 1s", d)
	}
	now = feed(p, now, 6_200, 62*time.Second, 10*time.Millisecond)
	if d, _ := p.Delay(now); !near(d, 10*time.Millisecond) {
		t.Errorf("62 s after the shift back: delay = %v, want 10ms", d)
	}
}

// Old latencies are forgotten after a minute, but a rarely used dependency is
// not left without an estimate.
func TestSamplesAreOfTheLastMinuteOrTheLastHundred(t *testing.T) {
	busy := hedge.New(hedge.Config{Quantile: 0.5})
	feed(busy, 0, 30_000, 5*time.Minute, time.Millisecond)
	if n := busy.State().Samples; n < 3_000 || n > 6_200 {
		t.Errorf("busy: %d samples at 100 a second, want those of 30 to 62 seconds", n)
	}
	rare := hedge.New(hedge.Config{Quantile: 0.5})
	feed(rare, 0, 500, 500*time.Minute, time.Millisecond)
	if s := rare.State(); !s.Learned || s.Samples < hedge.MinSamples || s.Samples > 2*hedge.MinSamples+2 {
		t.Errorf("rare: %+v, want %d to %d samples", s, hedge.MinSamples, 2*hedge.MinSamples+2)
	}
}

func TestNonsenseLatenciesOnlyMoveTheEstimateTheirWay(t *testing.T) {
	delay := func(nonsense time.Duration) time.Duration {
		p := hedge.New(hedge.Config{Quantile: 0.9})
		now := feed(p, 0, 80, time.Second, 100*time.Millisecond)
		now = feed(p, now, 20, time.Second, nonsense)
		d, ok := p.Delay(now + time.Second)
		if !ok {
			t.Fatalf("latency %v: no delay", nonsense)
		}
		return d
	}
	previous := time.Duration(0)
	for _, latency := range []time.Duration{
		math.MinInt64, -1, 0, 1, time.Second, time.Hour, 24 * time.Hour, math.MaxInt64,
	} {
		d := delay(latency)
		if d < previous || d <= 0 || d > 20*time.Minute {
			t.Errorf("latency %v: delay = %v after %v for a shorter one", latency, d, previous)
		}
		if latency <= 1 && !near(d, 100*time.Millisecond) {
			t.Errorf("latency %v: delay = %v, want 100ms", latency, d)
		}
		previous = d
	}
}

func TestClockAtItsEndsDoesNoHarm(t *testing.T) {
	p := hedge.New(hedge.Config{Quantile: 0.9})
	for _, now := range []time.Duration{math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, -1, 0} {
		feed(p, now, 100, 0, 50*time.Millisecond)
		p.Delay(now)
	}
	if d := p.State().Delay; !near(d, 50*time.Millisecond) {
		t.Errorf("delay = %v, want 50ms", d)
	}
}

func TestReconfigureKeepsTheEstimate(t *testing.T) {
	p := hedge.New(hedge.Config{Quantile: 0.5})
	now := feed(p, 0, 90, 5*time.Second, 10*time.Millisecond)
	now = feed(p, now, 10, 5*time.Second, 500*time.Millisecond)

	for _, tt := range []struct {
		config hedge.Config
		want   time.Duration
		hedges int
	}{
		{hedge.Config{Quantile: 0.99}, 500 * time.Millisecond, 1},
		{hedge.Config{Quantile: 0.5, MaxHedges: 3}, 10 * time.Millisecond, 3},
		{hedge.Config{Disabled: true, Quantile: 0.5}, 0, 0},
		{hedge.Config{Delay: 70 * time.Millisecond}, 70 * time.Millisecond, 1},
		{hedge.Config{Quantile: 0.99, Delay: 70 * time.Millisecond}, 500 * time.Millisecond, 1},
	} {
		p.Reconfigure(now, tt.config)
		if d, ok := p.Delay(now); !near(d, tt.want) && d != tt.want || ok != (tt.want > 0) || p.MaxHedges() != tt.hedges {
			t.Errorf("%+v: Delay = %v, %v, MaxHedges = %d; want %v, %d", tt.config, d, ok, p.MaxHedges(), tt.want, tt.hedges)
		}
	}
}

func TestConcurrentUseLosesNoSample(t *testing.T) {
	const callers, each = 8, 2_000
	p := hedge.New(hedge.Config{Quantile: 0.95})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each {
				now := time.Duration(i) * 10 * time.Millisecond // 20 s: one window
				p.Record(now, 40*time.Millisecond)
				p.Delay(now)
				if i%100 == 0 {
					p.Reconfigure(now, hedge.Config{Quantile: 0.9})
					p.State()
				}
			}
		})
	}
	wg.Wait()
	s := p.State()
	if s.Samples != callers*each || !near(s.Delay, 40*time.Millisecond) {
		t.Errorf("state = %+v, want %d samples and 40ms", s, callers*each)
	}
}

func TestDecisionsAllocateNothing(t *testing.T) {
	p := hedge.New(hedge.Config{Quantile: 0.95})
	now := time.Duration(0)
	if n := testing.AllocsPerRun(200, func() {
		now += time.Second // computes every time
		p.Record(now, time.Millisecond)
		p.Delay(now)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
