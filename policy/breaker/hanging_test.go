package breaker_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// slowConfig opens at half of at least four calls slower than 800 ms.
func slowConfig(w breaker.Window) breaker.Config {
	return breaker.Config{
		SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 800 * ms, MinimumNumberOfCalls: 4, SlidingWindow: w,
	}
}

var bothWindows = []breaker.Window{{Calls: 100}, {Duration: time.Minute}}

func TestIdleBreakerWithHangingCallsOpensOnTheNextAllow(t *testing.T) {
	for _, w := range bothWindows {
		b := breaker.New(slowConfig(w), always(0), nil)
		for range 4 {
			allow(t, b, 0)
		}
		allow(t, b, 799*ms) // nobody hangs yet
		wantState(t, b, breaker.Closed)
		refuse(t, b, 900*ms) // one eighth of the threshold later at most
		wantState(t, b, breaker.Open)
	}
}

func TestCallsHangNeitherTooEarlyNorTooLate(t *testing.T) {
	// Calls begin anywhere in their tick.
	for offset := time.Duration(0); offset < 300*ms; offset += 7 * ms {
		c := slowConfig(breaker.Window{Calls: 100})
		c.MinimumNumberOfCalls = 50
		b := breaker.New(c, nil, nil)
		b.Record(0, allow(t, b, 0), neutral)
		allow(t, b, offset)
		for at := offset; at < offset+799*ms; at += 13 * ms {
			if got := b.Snapshot(at).Hanging; got != 0 {
				t.Fatalf("started at %v: hanging at %v", offset, at)
			}
			b.Record(at, allow(t, b, at), neutral)
		}
		if got := b.Snapshot(offset + 900*ms).Hanging; got != 1 {
			t.Fatalf("started at %v: not hanging after 900ms", offset)
		}
		if got := b.Snapshot(offset + time.Hour).Hanging; got != 1 {
			t.Fatalf("started at %v: not hanging after an hour", offset)
		}
	}
}

func TestHangingCallIsCountedOnce(t *testing.T) {
	for _, w := range bothWindows {
		c := slowConfig(w)
		c.MinimumNumberOfCalls = 50
		b := breaker.New(c, nil, nil)
		hung := []breaker.Permit{allow(t, b, 0), allow(t, b, 0)}
		calls(t, b, 0, good, good)
		for _, step := range []struct {
			at      time.Duration
			do      func()
			hanging int
			calls   int
			rate    float64
		}{
			{100 * ms, func() {}, 0, 2, 0},
			{900 * ms, func() {}, 2, 2, 0.5},
			{s, func() { call(t, b, s, neutral) }, 2, 2, 0.5},
			{2 * s, func() { b.Record(2*s, hung[0], good) }, 1, 3, 0.5}, // it moved from hanging to the window
			{3 * s, func() { b.Record(3*s, hung[1], neutral) }, 0, 3, 1. / 3},
		} {
			step.do()
			snap := b.Snapshot(step.at)
			if snap.Hanging != step.hanging || snap.Calls != step.calls || snap.SlowRate != step.rate {
				t.Errorf("window %v at %v: %+v, want hanging %d, calls %d, rate %v", w, step.at, snap, step.hanging,
					step.calls, step.rate)
			}
		}
	}
}

func TestHangingCallsCountTowardsTheMinimumOfTheSlowRateOnly(t *testing.T) {
	c := slowConfig(breaker.Window{Calls: 100})
	c.FailureRateThreshold, c.SlowCallRateThreshold = 0.5, 0.9
	b := breaker.New(c, always(0), nil)
	allow(t, b, 0)
	calls(t, b, 0, bad, good)
	call(t, b, s, bad) // 2 of 3 failed, 1 hangs: 4 calls, but only 3 that can have failed
	wantState(t, b, breaker.Closed)
	call(t, b, s, good)
	wantState(t, b, breaker.Open)
}

func TestFastSuccessOpensWhenItCompletesTheMinimumBesideHangingCalls(t *testing.T) {
	b := breaker.New(slowConfig(breaker.Window{Calls: 100}), always(0), nil)
	for range 3 {
		allow(t, b, 0)
	}
	p := allow(t, b, s)
	wantState(t, b, breaker.Closed) // 3 of 3 hang
	b.Record(s, p, good)
	wantState(t, b, breaker.Open) // 3 of 4
}

func TestSlowSuccessOpensBeforeItCountsAsHanging(t *testing.T) {
	b := breaker.New(slowConfig(breaker.Window{Calls: 100}), always(0), nil)
	b.Record(0, allow(t, b, 0), neutral)
	var out []breaker.Permit
	for range 4 {
		out = append(out, allow(t, b, 90*ms))
	}
	b.Record(895*ms, allow(t, b, 895*ms), neutral)
	if got := b.Snapshot(895 * ms).Hanging; got != 0 {
		t.Fatalf("%d hang, want none for another 5ms", got)
	}
	for _, p := range out {
		wantState(t, b, breaker.Closed)
		b.Record(895*ms, p, good)
	}
	wantState(t, b, breaker.Open)
}

func TestRecordNoticesHangingCalls(t *testing.T) {
	b := breaker.New(slowConfig(breaker.Window{Calls: 100}), always(0), nil)
	for range 4 {
		allow(t, b, 0)
	}
	p := allow(t, b, 500*ms)
	b.Record(s, p, neutral)
	wantState(t, b, breaker.Open)
}

func TestHangingCallsOfAnEarlierStateAreForgotten(t *testing.T) {
	c := slowConfig(breaker.Window{Calls: 100})
	c.SuccessThreshold = 1
	b := breaker.New(c, always(0), nil)
	var hung []breaker.Permit
	for range 4 {
		hung = append(hung, allow(t, b, 0))
	}
	refuse(t, b, s)
	call(t, b, 2*s, good)
	wantState(t, b, breaker.Closed)
	call(t, b, 4*s, good)
	for _, p := range hung {
		b.Record(4*s, p, bad)
	}
	if snap := b.Snapshot(5 * s); snap.State != breaker.Closed || snap.Hanging != 0 || snap.Calls != 1 ||
		snap.SlowRate != 0 {
		t.Errorf("calls from before the opening count: %+v", snap)
	}
}

func TestRecordingTwiceLeavesNoNegativeCounts(t *testing.T) {
	c := slowConfig(breaker.Window{Calls: 100})
	c.MinimumNumberOfCalls = 50
	b := breaker.New(c, nil, nil)
	a, z := allow(t, b, 0), allow(t, b, 0)
	b.Snapshot(0)
	allow(t, b, 2*s)
	for range 5 {
		b.Record(2*s, a, neutral)
		b.Record(2*s, z, neutral)
	}
	allow(t, b, 2*s)
	allow(t, b, 4*s)
	if got := b.Snapshot(4 * s).Hanging; got != 2 {
		t.Errorf("%d hanging, want the 2 that were not recorded", got)
	}
}

func TestManyCallsInFlightNeedNoMemory(t *testing.T) {
	c := slowConfig(breaker.Window{Calls: 100})
	c.MinimumNumberOfCalls = 100
	b := breaker.New(c, nil, nil)
	now := time.Duration(0)
	if n := testing.AllocsPerRun(100_000, func() {
		now += 5 * time.Microsecond // 0.5 s in all: none is slow yet
		b.Allow(now)
	}); n != 0 {
		t.Errorf("%v allocations for a call in flight", n)
	}
	if got := b.Snapshot(time.Hour).Hanging; got != 100_001 {
		t.Errorf("%d hanging, want 100001", got)
	}
}

// The books must balance whatever the interleaving of starts, ends and the clock.
func TestConcurrentStartsAndEndsBalance(t *testing.T) {
	c := slowConfig(breaker.Window{Duration: time.Minute})
	c.Mode, c.SlowCallDurationThreshold, c.MinimumNumberOfCalls = breaker.Enforce, ms, 1_000_000
	b := breaker.New(c, nil, nil)
	var wg sync.WaitGroup
	for seed := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			now := time.Duration(0)
			var out []breaker.Permit
			for range 20_000 {
				now += time.Duration(r.IntN(100)) * time.Microsecond
				if len(out) == 0 || r.IntN(2) == 0 && len(out) < 100 {
					p, _ := b.Allow(now)
					out = append(out, p)
					continue
				}
				i := r.IntN(len(out))
				b.Record(now, out[i], good)
				out[i] = out[len(out)-1]
				out = out[:len(out)-1]
			}
			for _, p := range out {
				b.Record(now, p, good)
			}
		})
	}
	wg.Wait()
	if got := b.Snapshot(time.Hour).Hanging; got != 0 {
		t.Errorf("%d calls hang after all have ended", got)
	}
}
