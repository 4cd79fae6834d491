package breaker_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

func TestShadowRejectsNothingAndSaysSo(t *testing.T) {
	c := breaker.Config{
		FailureThreshold: 1, SuccessThreshold: 1, PermittedCallsInHalfOpen: 1, Mode: breaker.Shadow, RampUp: s,
	}
	draw := uint64(0)
	b := breaker.New(c, func() uint64 { return draw }, nil)
	would := func(now time.Duration, want bool) breaker.Permit {
		t.Helper()
		p := allow(t, b, now)
		if p.WouldReject() != want {
			t.Fatalf("at %v in state %v: WouldReject %v, want %v", now, b.State(), !want, want)
		}
		if b.Rejecting(now) || b.RetryIn(now) != 0 {
			t.Fatalf("at %v: shadow mode is rejecting", now)
		}
		return p
	}
	b.Record(0, would(0, false), bad)
	wantState(t, b, breaker.Open)
	b.Record(0, would(0, true), bad) // counts nowhere
	if got := b.Snapshot(0); got.Openings != 1 || got.OpenUntil != s {
		t.Errorf("a call that would not exist counted: %+v", got)
	}
	probe := would(s, false)
	b.Record(s, would(s, true), bad)
	wantState(t, b, breaker.HalfOpen)
	b.Record(s, probe, good)
	wantState(t, b, breaker.RampUp)
	draw = never
	b.Record(s, would(s, true), bad)
	wantState(t, b, breaker.RampUp)
	would(2*s, false)
	wantState(t, b, breaker.Closed)
}

func TestEnforcedRejectionsSaySoToo(t *testing.T) {
	b := opened(t, breaker.Config{}, nil)
	if p, ok := b.Allow(0); ok || !p.WouldReject() {
		t.Error("rejected permit does not say so")
	}
	if (breaker.Permit{}).WouldReject() {
		t.Error("the zero permit was rejected by nobody")
	}
}

func TestForcedOpenLetsNoProbeThrough(t *testing.T) {
	c := breaker.Config{FailureThreshold: 1}
	forced := breaker.Config{FailureThreshold: 1, Mode: breaker.ForcedOpen}
	b := breaker.New(c, nil, nil)
	early := allow(t, b, 0)
	b.Reconfigure(0, forced)
	for now := -time.Hour; now < 100*time.Hour; now += time.Hour {
		refuse(t, b, now)
		if !b.Rejecting(now) || b.RetryIn(now) != 0 {
			t.Fatal("forced open must reject, and give no hint for when")
		}
	}
	b.Record(0, early, bad)
	if snap := b.Snapshot(0); snap.State != breaker.Open || snap.Openings != 0 || snap.OpenUntil != 0 {
		t.Errorf("forced open: %+v", snap)
	}
	b.Reconfigure(s, c)
	wantState(t, b, breaker.Closed)
	b.Record(s, early, bad)
	wantState(t, b, breaker.Closed) // the call is from an earlier state
	refuse(t, breaker.New(breaker.Config{Mode: breaker.ForcedOpen}, nil, nil), 0)
}

func TestReconfigureKeepsTheState(t *testing.T) {
	base := breaker.Config{
		FailureThreshold: 2, FailureRateThreshold: 0.5, SuccessThreshold: 1, PermittedCallsInHalfOpen: 2,
	}
	other := base
	other.FailureRateThreshold, other.WaitDurationMultiplier = 0.8, 3

	t.Run("closed keeps window, row and calls in flight", func(t *testing.T) {
		b := breaker.New(base, always(0), nil)
		flying := allow(t, b, 0)
		calls(t, b, 0, good, bad)
		b.Reconfigure(0, other)
		if got := b.Snapshot(0).Calls; got != 2 {
			t.Errorf("%d calls left in the window, want 2", got)
		}
		b.Record(0, flying, bad)
		wantState(t, b, breaker.Open) // the second in a row
	})
	t.Run("closed keeps hanging calls", func(t *testing.T) {
		c := slowConfig(breaker.Window{Calls: 10})
		b := breaker.New(c, always(0), nil)
		for range 4 {
			allow(t, b, 0)
		}
		c.SlowCallRateThreshold = 0.9
		b.Reconfigure(500*ms, c)
		refuse(t, b, s)
	})
	t.Run("another window starts empty", func(t *testing.T) {
		b := breaker.New(base, always(0), nil)
		flying := allow(t, b, 0)
		calls(t, b, 0, good, good)
		other.SlidingWindow = breaker.Window{Calls: 10}
		b.Reconfigure(0, other)
		b.Record(0, flying, good)
		if got := b.Snapshot(0).Calls; got != 1 {
			t.Errorf("%d calls in the window, want the one in flight", got)
		}
	})
	t.Run("open stays open, at most the new longest wait", func(t *testing.T) {
		long := base
		long.WaitDurationInOpenState = time.Hour
		b := opened(t, long, nil)
		b.Reconfigure(0, other)
		wantState(t, b, breaker.Open)
		if got := b.RetryIn(0); got != 10*s {
			t.Errorf("wait %v, want 10s", got)
		}
		b = opened(t, base, nil)
		b.Reconfigure(0, other)
		if got := b.RetryIn(0); got != s {
			t.Errorf("wait %v, want 1s as before", got)
		}
	})
	t.Run("half-open keeps its permits", func(t *testing.T) {
		b := opened(t, base, nil)
		p := allow(t, b, s)
		allow(t, b, s)
		b.Reconfigure(s, other)
		refuse(t, b, s)
		b.Record(s, p, good)
		wantState(t, b, breaker.Closed)
	})
	t.Run("ramp-up goes on with the new length", func(t *testing.T) {
		long := base
		long.RampUp = time.Hour
		b := opened(t, long, nil)
		call(t, b, s, good)
		long.RampUp = 2 * s
		b.Reconfigure(s, long)
		call(t, b, 2*s, good)
		wantState(t, b, breaker.RampUp)
		call(t, b, 3*s, good)
		wantState(t, b, breaker.Closed)
	})
	t.Run("the same configuration changes nothing", func(t *testing.T) {
		b := breaker.New(base, nil, nil)
		before := b.Snapshot(0)
		b.Reconfigure(0, base.WithDefaults())
		if got := b.Snapshot(0); got != before {
			t.Errorf("%+v, was %+v", got, before)
		}
		b = breaker.New(breaker.Config{}, nil, nil)
		before = b.Snapshot(0)
		b.Reconfigure(0, breaker.Config{})
		if got := b.Snapshot(0); got != before {
			t.Errorf("%+v, was %+v", got, before)
		}
	})
}

func TestLoweredThresholdTakesEffectWithTheNextResult(t *testing.T) {
	c := breaker.Config{FailureRateThreshold: 0.9, MinimumNumberOfCalls: 4}
	b := breaker.New(c, nil, nil)
	calls(t, b, 0, bad, bad, good, good)
	c.FailureRateThreshold = 0.3
	b.Reconfigure(0, c)
	wantState(t, b, breaker.Closed)
	call(t, b, 0, good)
	wantState(t, b, breaker.Open)
}

func TestSwitchingSlowCallDetectionLeavesNoPhantoms(t *testing.T) {
	off := breaker.Config{FailureRateThreshold: 0.9}
	on := off
	on.SlowCallRateThreshold = 0.9
	on2 := on
	on2.SlowCallDurationThreshold = 5 * s
	b := breaker.New(off, nil, nil)
	calls(t, b, 0, good, good)
	var flying []breaker.Permit
	for _, c := range []breaker.Config{on, on2, off, on} {
		flying = append(flying, allow(t, b, 0))
		b.Reconfigure(0, c)
	}
	stay := allow(t, b, 0)
	for _, p := range flying {
		b.Record(0, p, bad)
	}
	if snap := b.Snapshot(time.Minute / 10); snap.Calls != 2 || snap.Hanging != 1 {
		t.Errorf("%+v, want the 2 finished calls and 1 hanging", snap)
	}
	b.Record(0, stay, good)
	if snap := b.Snapshot(time.Hour); snap.Hanging != 0 {
		t.Errorf("%d phantom calls hang", snap.Hanging)
	}
}

func TestSwitchingOffAndOnStartsAnew(t *testing.T) {
	var seen []breaker.Change
	c := breaker.Config{FailureThreshold: 1}
	b := opened(t, c, func(c breaker.Change) { seen = append(seen, c) })
	off := c
	off.Disabled = true
	seen = append(seen, b.Reconfigure(500*ms, off))
	calls(t, b, 500*ms, times(100, bad)...)
	flying := allow(t, b, 500*ms)
	if change := b.Reconfigure(600*ms, c); change.From != change.To {
		t.Errorf("%+v", change)
	}
	b.Record(600*ms, flying, bad)
	wantState(t, b, breaker.Closed)
	seen = append(seen, b.Reconfigure(700*ms, breaker.Config{FailureThreshold: 1, Mode: breaker.ForcedOpen}))
	want := []breaker.Change{
		{From: breaker.Closed, To: breaker.Open, At: 0, Reason: "consecutive failures"},
		{From: breaker.Open, To: breaker.Closed, At: 500 * ms, Reason: "reconfigured"},
		{From: breaker.Closed, To: breaker.Open, At: 700 * ms, Reason: "forced open"},
	}
	if len(seen) != len(want) {
		t.Fatalf("changes %+v, want %+v", seen, want)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("change %d: %+v, want %+v", i, seen[i], want[i])
		}
	}
}

func TestStateNumbersAreStable(t *testing.T) {
	for n, name := range []string{"closed", "half-open", "open", "ramp-up", "State(4)"} {
		if got := breaker.State(n).String(); got != name {
			t.Errorf("state %d is %q, want %q", n, got, name)
		}
	}
}

func TestTracksTimeOnlyWhereItMust(t *testing.T) {
	calls := breaker.Window{Calls: 10}
	for _, tt := range []struct {
		c          breaker.Config
		start, end bool
	}{
		{breaker.Config{}, false, false},
		{breaker.Config{FailureThreshold: 1}, false, false},
		{breaker.Config{FailureRateThreshold: 1, SlidingWindow: calls}, false, false},
		{breaker.Config{FailureRateThreshold: 1}, false, true},
		{breaker.Config{SlowCallRateThreshold: 1, SlidingWindow: calls}, true, true},
		{breaker.Config{SlowCallRateThreshold: 1, Disabled: true}, false, false},
	} {
		b := breaker.New(tt.c, nil, nil)
		if b.TracksStart() != tt.start || b.TracksEnd() != tt.end {
			t.Errorf("%+v: tracks start %v and end %v, want %v and %v", tt.c, b.TracksStart(), b.TracksEnd(), tt.start, tt.end)
		}
	}
}
