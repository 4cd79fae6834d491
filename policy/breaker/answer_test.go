package breaker_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// answered makes a call whose answer has begun at now.
func answered(t *testing.T, b *breaker.Breaker, now time.Duration) breaker.Permit {
	t.Helper()
	p, ok := b.Allow(now)
	if !ok {
		t.Fatal("refused")
	}
	return b.Answered(now+ms, p)
}

func TestAnAnswerThatBreaksOffIsOneFailedCall(t *testing.T) {
	for name, window := range map[string]breaker.Window{"time": {Duration: 10 * s}, "calls": {Calls: 100}} {
		b := breaker.New(breaker.Config{FailureRateThreshold: 1, SlidingWindow: window, MinimumNumberOfCalls: 50}, nil, nil)
		for i := range 10 {
			p := answered(t, b, time.Duration(i)*100*ms)
			if i < 4 {
				b.Ended(time.Duration(i)*100*ms+50*ms, p, breaker.Failure)
			} else {
				b.Ended(time.Duration(i)*100*ms+50*ms, p, breaker.Success)
			}
		}
		if got := b.Snapshot(s); got.Calls != 10 || got.FailureRate != 0.4 {
			t.Errorf("%s: %d calls, %v failed, want 10, 0.4", name, got.Calls, got.FailureRate)
		}
		b.Ended(2*s, answered(t, b, s), breaker.Failure) // in a later bucket than its beginning
		if got := b.Snapshot(2 * s); got.Calls != 11 || got.FailureRate != 5.0/11 {
			t.Errorf("%s: %d calls, %v failed, want 11, 5/11", name, got.Calls, got.FailureRate)
		}
		if window.Duration == 0 {
			continue
		}
		b.Ended(30*s, answered(t, b, 3*s), breaker.Failure) // its beginning has left the window
		if got := b.Snapshot(30 * s); got.Calls != 1 || got.FailureRate != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFifteenAnswersThatBreakOffOpenTheCircuit(t *testing.T) {
	for name, c := range map[string]breaker.Config{
		"in a row": {FailureThreshold: 15},
		"rate":     {FailureRateThreshold: 1, MinimumNumberOfCalls: 15},
		"calls":    {FailureRateThreshold: 1, MinimumNumberOfCalls: 15, SlidingWindow: breaker.Window{Calls: 15}},
		"slow":     {SlowCallRateThreshold: 1, SlowCallDurationThreshold: 20 * ms, MinimumNumberOfCalls: 15},
	} {
		b := breaker.New(c, nil, nil)
		for i := range 15 {
			now := time.Duration(i) * 100 * ms
			if b.State() != breaker.Closed {
				t.Fatalf("%s: open after %d", name, i)
			}
			b.Ended(now+50*ms, answered(t, b, now), breaker.Failure)
		}
		if b.State() != breaker.Open {
			t.Errorf("%s: still %v", name, b.State())
		}
	}
}

func TestReadingAnAnswerForLongIsNotASlowCall(t *testing.T) {
	b := breaker.New(breaker.Config{
		SlowCallRateThreshold: 0.5, SlowCallDurationThreshold: 100 * ms, MinimumNumberOfCalls: 2,
	}, nil, nil)
	var open []breaker.Permit
	for range 20 {
		open = append(open, answered(t, b, 0))
	}
	b.Snapshot(s)
	b.Record(s, permit(t, b, s), breaker.Success)
	for _, p := range open {
		b.Ended(time.Hour, p, breaker.Success)
	}
	if got := b.Snapshot(time.Hour); got.State != breaker.Closed || got.Hanging != 0 {
		t.Errorf("%+v", got)
	}
}

func TestAnAnswerThatHasOnlyBegunDoesNotEndARowOfAnswersThatBrokeOff(t *testing.T) {
	b := breaker.New(breaker.Config{FailureThreshold: 3}, nil, nil)
	whole := answered(t, b, 0)
	b.Ended(0, answered(t, b, 0), breaker.Failure)
	b.Ended(0, answered(t, b, 0), breaker.Failure)
	b.Ended(0, whole, breaker.Success) // this does
	answered(t, b, 0)                  // this does not
	b.Ended(0, answered(t, b, 0), breaker.Failure)
	b.Ended(0, answered(t, b, 0), breaker.Failure)
	if b.State() != breaker.Closed {
		t.Fatal("open after two in a row")
	}
	b.Record(0, permit(t, b, 0), breaker.Failure) // one that failed at once belongs to the row
	if b.State() != breaker.Open {
		t.Error("closed after three in a row")
	}
}

// A service of long streams may have no answer that ends for hours. Now and then a call fails.
func TestAStreamThatHasBegunWellEndsARowOfFailedCalls(t *testing.T) {
	b := breaker.New(breaker.Config{FailureThreshold: 3}, nil, nil)
	for i := range 1000 {
		answered(t, b, time.Duration(i)*s)
		b.Record(time.Duration(i)*s, permit(t, b, time.Duration(i)*s), breaker.Failure)
	}
	if b.State() != breaker.Closed {
		t.Fatal("a thousand streams flow, and the circuit is", b.State())
	}
	b.Record(1000*s, permit(t, b, 1000*s), breaker.Failure)
	b.Record(1000*s, permit(t, b, 1000*s), breaker.Failure)
	if b.State() != breaker.Open {
		t.Error("three calls in a row have failed since a stream began, and the circuit is", b.State())
	}
}

// Something between cuts every stream after an hour, which says little about the service.
func TestStreamsThatAreCutAfterLongAreNoRowOfFailures(t *testing.T) {
	for lasted, want := range map[time.Duration]breaker.State{20 * s: breaker.Closed, 20*s - ms: breaker.Open} {
		b := breaker.New(breaker.Config{FailureThreshold: 3, HalfOpenPermitLease: 10 * s}, nil, nil)
		for i := 0; i < 5 && b.State() == breaker.Closed; i++ {
			b.Ended(lasted, answered(t, b, 0), breaker.Failure)
		}
		if b.State() != want {
			t.Errorf("after five answers that broke off after %v: %v, want %v", lasted, b.State(), want)
		}
	}
}

// At any moment another download has just begun, and none of them comes to its end.
func TestDownloadsThatAllBreakOffOpenTheCircuitHoweverManyRunAtOnce(t *testing.T) {
	b := breaker.New(breaker.Config{FailureThreshold: 5}, nil, nil)
	var running []breaker.Permit
	for i := 0; i < 15 && b.State() == breaker.Closed; i++ {
		now := time.Duration(i) * 100 * ms
		running = append(running, answered(t, b, now))
		if len(running) > 10 {
			b.Ended(now+ms, running[0], breaker.Failure)
			running = running[1:]
		}
	}
	if b.State() != breaker.Open {
		t.Error(b.State())
	}
}

func TestAProbeWhoseAnswerBreaksOffHasFailed(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 1, SuccessThreshold: 1}, nil)
	p := answered(t, b, s)
	if b.State() != breaker.HalfOpen {
		t.Fatal("a head alone is no proof:", b.State())
	}
	b.Ended(s+10*ms, p, breaker.Failure)
	if b.State() != breaker.Open {
		t.Error(b.State())
	}
}

// An event stream may last for hours. Nobody waits for its end to trust the service again.
func TestAProbeWhoseAnswerOutlastsItsLeaseIsASuccess(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 1, SuccessThreshold: 1, HalfOpenPermitLease: s}, nil)
	p := answered(t, b, s)
	if _, ok := b.Allow(s + 500*ms); ok {
		t.Error("two probes at once")
	}
	if _, ok := b.Allow(2*s + ms); !ok || b.State() != breaker.Closed {
		t.Error("the lease is over, and the answer still comes:", b.State())
	}
	b.Ended(3*s, p, breaker.Failure) // of another state
	if b.State() != breaker.Closed {
		t.Error(b.State())
	}
}

func permit(t *testing.T, b *breaker.Breaker, now time.Duration) breaker.Permit {
	t.Helper()
	p, ok := b.Allow(now)
	if !ok {
		t.Fatal("refused")
	}
	return p
}
