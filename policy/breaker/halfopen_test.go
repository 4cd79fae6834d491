package breaker_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

func TestHalfOpenAdmitsNoMoreThanPermittedOfAThousand(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 5}, nil)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for range 1000 {
		wg.Go(func() {
			<-start
			if _, ok := b.Allow(s); ok {
				admitted.Add(1)
			}
		})
	}
	close(start)
	wg.Wait()
	if got := admitted.Load(); got != 5 {
		t.Errorf("%d of 1000 admitted, want 5", got)
	}
	if !b.Rejecting(s) {
		t.Error("not rejecting with all permits out")
	}
	if b.Rejecting(s + 10*s) {
		t.Error("rejecting after the leases")
	}
}

func TestHalfOpenStaysWithinItsPermitsWhileProbesComeAndGo(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 3, SuccessThreshold: 1000}, nil)
	var out, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 500 {
				p, ok := b.Allow(s)
				if !ok {
					continue
				}
				n := out.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				out.Add(-1) // before the permit goes back
				b.Record(s, p, breaker.Result(i%2*2))
				b.Record(s, p, breaker.Success) // a second time: must not give another permit back
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 {
		t.Errorf("%d probes out at once, want at most 3", most.Load())
	}
}

func TestRecordingAProbeTwiceFreesOnePermit(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 2, SuccessThreshold: 3}, nil)
	p := allow(t, b, s)
	allow(t, b, s)
	for range 3 {
		b.Record(s, p, good)
	}
	wantState(t, b, breaker.HalfOpen) // one success, not three
	allow(t, b, s)
	refuse(t, b, s)
}

func TestHungProbeGivesItsPermitBack(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 1, SuccessThreshold: 1, HalfOpenPermitLease: 2 * s}, nil)
	hung := allow(t, b, s)
	refuse(t, b, 3*s-1)
	next := allow(t, b, 3*s)
	b.Record(3*s, hung, neutral)
	refuse(t, b, 3*s) // it has no second permit to give back
	b.Record(3*s, next, good)
	wantState(t, b, breaker.Closed)
}

// A probe that runs into an attempt timeout as long as its lease reports at the very end of it, or a moment later.
func TestAProbeThatRanOutOfTimeIsAFailedProbe(t *testing.T) {
	b := opened(t, breaker.Config{SuccessThreshold: 1, HalfOpenPermitLease: s}, nil)
	b.Record(2*s, allow(t, b, s), bad)
	wantState(t, b, breaker.Open)
}

func TestASlowButHealthyDependencyIsLetBackIn(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 1, SuccessThreshold: 3, HalfOpenPermitLease: s}, nil)
	first, second, third := allow(t, b, s), allow(t, b, 2*s), allow(t, b, 3*s)
	for i, p := range []breaker.Permit{first, second, third} {
		b.Record(time.Duration(13+i)*s, p, good)
	}
	wantState(t, b, breaker.Closed)
}

func TestLostProbesTakeNoMemory(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 2, SuccessThreshold: 1, HalfOpenPermitLease: s}, nil)
	lost := allow(t, b, s)
	for i := range 100 {
		allow(t, b, time.Duration(2+i)*s)
	}
	b.Record(200*s, lost, bad) // long forgotten
	wantState(t, b, breaker.HalfOpen)
}

func TestNeutralProbeGivesItsPermitBack(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 1, SuccessThreshold: 1}, nil)
	for range 10 {
		call(t, b, s, neutral)
	}
	wantState(t, b, breaker.HalfOpen)
	call(t, b, s, good)
	wantState(t, b, breaker.Closed)
}

func TestEveryHalfOpenBeginsAnew(t *testing.T) {
	b := opened(t, breaker.Config{PermittedCallsInHalfOpen: 3, SuccessThreshold: 3}, nil)
	calls(t, b, s, good, good)
	allow(t, b, s) // never reports
	allow(t, b, s) // never reports
	call(t, b, s, bad)
	wantState(t, b, breaker.Open)
	out := []breaker.Permit{allow(t, b, 3*s), allow(t, b, 3*s), allow(t, b, 3*s)} // the old leases take no place
	b.Record(3*s, out[0], good)
	b.Record(3*s, out[1], good)
	wantState(t, b, breaker.HalfOpen) // the old successes do not help
	b.Record(3*s, out[2], good)
	wantState(t, b, breaker.Closed)
}

func TestProbesDecide(t *testing.T) {
	for _, tt := range []struct {
		name    string
		results []breaker.Result
		took    time.Duration
		want    breaker.State
	}{
		{"enough successes", []breaker.Result{good, good, good}, 0, breaker.Closed},
		{"not yet enough", []breaker.Result{good, good}, 0, breaker.HalfOpen},
		{"any failure", []breaker.Result{good, good, bad}, 0, breaker.Open},
		{"a slow success", []breaker.Result{good, good}, s, breaker.HalfOpen},
		{"a slow success with slow-call detection", []breaker.Result{good}, 2 * s, breaker.Open},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := opened(t, breaker.Config{SlowCallRateThreshold: 1, SlowCallDurationThreshold: 2 * s}, nil)
			for _, r := range tt.results {
				p := allow(t, b, s)
				b.Record(s+tt.took, p, r)
			}
			wantState(t, b, tt.want)
		})
	}
}

func TestRampUpAdmitsAGrowingShare(t *testing.T) {
	const n = 10000
	c := breaker.Config{SuccessThreshold: 1, RampUp: 10 * s, RampUpFrom: 0.2}
	b := breaker.New(breaker.Config{FailureThreshold: 1, SuccessThreshold: 1, RampUp: c.RampUp, RampUpFrom: c.RampUpFrom},
		nil, nil)
	call(t, b, 0, bad)
	start := 10 * s
	call(t, b, start, good)
	wantState(t, b, breaker.RampUp)
	for _, tt := range []struct {
		at   time.Duration
		want float64
	}{{0, 0.2}, {2500 * ms, 0.4}, {5 * s, 0.6}, {9 * s, 0.92}, {10 * s, 1}} {
		admitted := 0
		for range n {
			if _, ok := b.Allow(start + tt.at); ok {
				admitted++
			}
		}
		if got := float64(admitted) / n; math.Abs(got-tt.want) > 0.02 {
			t.Errorf("%v into the ramp: share %.3f, want %.2f", tt.at, got, tt.want)
		}
		if b.ClosedOff(start + tt.at) {
			t.Errorf("closed off %v after the ramp-up began", tt.at)
		}
		if got := b.Rejecting(start + tt.at); got != (tt.at < 10*s) {
			t.Errorf("%v into the ramp: rejecting retries is %v", tt.at, got)
		}
	}
	wantState(t, b, breaker.Closed)
}

// ramping returns a breaker whose ramp-up of 10 s began at 1 s.
func ramping(t *testing.T, c breaker.Config) *breaker.Breaker {
	t.Helper()
	c.FailureThreshold, c.SuccessThreshold, c.RampUp = 3, 1, 10*s
	b := opened(t, c, nil)
	call(t, b, s, good)
	wantState(t, b, breaker.RampUp)
	return b
}

func TestFailuresDuringRampUpReopenWithALongerWait(t *testing.T) {
	b := ramping(t, breaker.Config{})
	calls(t, b, 2*s, bad, bad, bad)
	wantState(t, b, breaker.Open)
	if got := b.RetryIn(2 * s); got != 2*s {
		t.Errorf("wait %v, want 2s: the first was 1s", got)
	}
	call(t, b, 4*s, good)
	wantState(t, b, breaker.RampUp)
	calls(t, b, 14*s, bad, bad, bad) // the ramp is over: a full recovery
	wantState(t, b, breaker.Open)
	if got := b.RetryIn(14 * s); got != s {
		t.Errorf("wait %v after a full recovery, want 1s", got)
	}
}

func TestRampUpBelievesAQuarterOfTheMinimum(t *testing.T) {
	c := breaker.Config{FailureRateThreshold: 0.5, MinimumNumberOfCalls: 17}
	b := ramping(t, c)
	calls(t, b, 2*s, bad, good, bad, good)
	wantState(t, b, breaker.RampUp)
	call(t, b, 2*s, bad)
	wantState(t, b, breaker.Open)

	b = ramping(t, c)
	calls(t, b, 11*s, bad, good, bad, good, bad)
	wantState(t, b, breaker.Closed)
}

func TestRampUpStartsWithAnEmptyWindow(t *testing.T) {
	b := opened(t, breaker.Config{
		FailureThreshold: 10, FailureRateThreshold: 0.9, MinimumNumberOfCalls: 10, SuccessThreshold: 1, RampUp: s,
	}, nil)
	call(t, b, s, good)
	if snap := b.Snapshot(s); snap.State != breaker.RampUp || snap.Calls != 0 || snap.FailureRate != 0 {
		t.Errorf("ramp-up starts with %+v", snap)
	}
}

func TestClosingAfterRampUpKeepsWhatTheRampSaw(t *testing.T) {
	b := ramping(t, breaker.Config{FailureRateThreshold: 0.5, SlowCallRateThreshold: 0.5})
	calls(t, b, 10*s, good, good)
	late := allow(t, b, 10*s)
	call(t, b, 11*s, good)
	wantState(t, b, breaker.Closed)
	b.Record(11*s, late, bad)
	if snap := b.Snapshot(11 * s); snap.Calls != 4 || snap.FailureRate != 0.25 {
		t.Errorf("after the ramp: %+v", snap)
	}
}

func TestRampUpRefusalsAreNotCounted(t *testing.T) {
	draw := uint64(0)
	b := breaker.New(breaker.Config{FailureThreshold: 1, FailureRateThreshold: 1, SuccessThreshold: 1, RampUp: s},
		func() uint64 {
			return draw
		}, nil)
	call(t, b, 0, bad)
	call(t, b, s, good)
	draw = never
	p, ok := b.Allow(s)
	if ok {
		t.Fatal("admitted against the draw")
	}
	b.Record(s, p, bad)
	wantState(t, b, breaker.RampUp)
}
