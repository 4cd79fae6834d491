package abate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/startup"
)

// steady waits exactly its intervals: 100 ms, 200 ms, ... up to a second, for ten seconds.
func steady() abate.Policy {
	return abate.Policy{AttemptTimeout: 2 * time.Second, Retry: retry.Config{
		InitialDelay: 100 * ms, MaxDelay: time.Second, Jitter: retry.NoJitter, MaxElapsed: 10 * time.Second,
	}}
}

// waits plays one Startup whose every attempt ends at once, and returns the waits and the error.
func waits(t *testing.T, p abate.Policy, w *core.Startup, deadline time.Duration,
	outcome func(attempt int) abate.Outcome) (slept []time.Duration, err error) {
	t.Helper()
	now := time.Duration(0)
	step := w.Begin(guard(t, p), now, deadline)
	for range 1000 {
		switch step.Action {
		case core.Attempt:
			step = w.AttemptDone(now, outcome(w.Attempts()))
		case core.Sleep:
			slept = append(slept, step.Until-now)
			now = step.Until
			step = w.Resume(now)
		case core.Finish:
			return slept, step.Err
		default:
			t.Fatalf("step %+v", step)
		}
	}
	return slept, nil
}

func down(int) abate.Outcome { return abate.Outcome{Class: abate.Failure, Err: errDown} }

func TestTheBackOffGrowsToItsCapAndMaxElapsedEndsTheWait(t *testing.T) {
	p := steady()
	p.MaxRetries = 1 // does not count
	slept, err := waits(t, p, new(core.Startup), core.NoDeadline, down)
	want := "[100ms 200ms 400ms 800ms 1s 1s 1s 1s 1s 1s 1s 1s"
	if got := fmt.Sprint(slept); len(got) < len(want) || got[:len(want)] != want || len(slept) != 13 {
		t.Errorf("slept %v", slept)
	}
	total := time.Duration(0)
	for _, d := range slept {
		total += d
	}
	// The last wait is drawn from what is left, 500 ms, so that the time is used and an attempt fits.
	if last := slept[len(slept)-1]; last < 200*ms || last > 400*ms || total > 10*time.Second {
		t.Errorf("the last wait is %v, all are %v", last, total)
	}
	var e *abate.Error
	if !errors.Is(err, startup.ErrGaveUp) || !errors.Is(err, errDown) || !errors.As(err, &e) || e.Attempts != 14 ||
		e.Elapsed != total {
		t.Errorf("error %v", err)
	}
}

func TestWhatEndsTheWait(t *testing.T) {
	always := func(o abate.Outcome) func(int) abate.Outcome {
		o.Err = errDown
		return func(int) abate.Outcome { return o }
	}
	unlimited := steady()
	unlimited.MaxElapsed = 0
	for _, row := range []struct {
		name     string
		policy   abate.Policy
		deadline time.Duration
		outcome  abate.Outcome
		reason   error
		attempts int
	}{
		{"a permanent failure", steady(), core.NoDeadline, abate.Outcome{Class: abate.Failure, NoRetry: true},
			startup.ErrPermanent, 1},
		{"an answer that is nobody's failure", steady(), core.NoDeadline, abate.Outcome{Class: abate.Ignored},
			startup.ErrPermanent, 1},
		{"a longer pause than is obeyed", steady(), core.NoDeadline, abate.Outcome{
			Class: abate.Overload, RetryAfter: 31 * time.Second,
		}, abate.ErrOverloaded, 1},
		{"a pause that does not fit", steady(), core.NoDeadline, abate.Outcome{
			Class: abate.Overload, RetryAfter: 11 * time.Second,
		}, startup.ErrGaveUp, 1},
		{"the caller's deadline", steady(), 250 * ms, abate.Outcome{Class: abate.Failure}, abate.ErrDeadline, 3},
		{"a deadline that has passed", steady(), 0, abate.Outcome{Class: abate.Failure}, abate.ErrDeadline, 0},
		{"a deadline later than maxElapsed", steady(), time.Hour, abate.Outcome{Class: abate.Failure}, startup.ErrGaveUp, 14},
		{"a minute if nobody says otherwise", unlimited, core.NoDeadline, abate.Outcome{Class: abate.Failure},
			startup.ErrGaveUp, 64},
		{"the caller's deadline alone", unlimited, 120 * time.Second, abate.Outcome{Class: abate.Failure},
			abate.ErrDeadline, 124},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := waits(t, row.policy, new(core.Startup), row.deadline, always(row.outcome))
			var e *abate.Error
			if !errors.As(err, &e) || e.Reason != row.reason || e.Attempts != row.attempts ||
				row.attempts > 0 && !errors.Is(err, errDown) {
				t.Errorf("error %v; want %v after %d attempts", err, row.reason, row.attempts)
			}
		})
	}
}

func TestInTheBackgroundNoFailureEndsTheWait(t *testing.T) {
	p := steady()
	for name, o := range map[string]abate.Outcome{
		"failure":   {Class: abate.Failure, Err: errDown},
		"permanent": {Class: abate.Failure, NoRetry: true, Err: errDown},
		"ignored":   {Class: abate.Ignored, Err: errDown},
		"overload":  {Class: abate.Overload, RetryAfter: time.Hour, Err: errDown},
	} {
		slept, err := waits(t, p, &core.Startup{Forever: true}, core.NoDeadline, func(attempt int) abate.Outcome {
			if attempt == 200 {
				return abate.Outcome{}
			}
			return o
		})
		if err != nil || len(slept) != 199 {
			t.Fatalf("%s: %d waits, error %v", name, len(slept), err)
		}
		low, high := time.Second, time.Second
		switch name {
		case "permanent", "ignored": // no more often than once in half a minute
			low, high = 30*time.Second, time.Minute
		case "overload": // as long as maxRetryAfter, and the jitter on top
			low, high = 30*time.Second, 37500*ms
		}
		for i, d := range slept[10:] {
			if d < low || d > high {
				t.Errorf("%s: wait %d is %v, want %v to %v", name, i+10, d, low, high)
			}
		}
	}
}

// A wait whose attempts are not counted must not spin, whatever the policy says about the back-off.
func TestBackOffNoneStillPauses(t *testing.T) {
	p := steady()
	p.Backoff = retry.NoBackoff
	slept, _ := waits(t, p, new(core.Startup), core.NoDeadline, down)
	if len(slept) > 100 || slept[0] != 100*ms {
		t.Errorf("%d waits, the first %v", len(slept), slept[0])
	}
}

func TestAnAttemptEndsAtItsTimeoutAndAtTheLimit(t *testing.T) {
	var w core.Startup
	step := w.Begin(guard(t, steady()), 0, core.NoDeadline)
	if step.Until != 2*time.Second {
		t.Errorf("the first attempt may take until %v", step.Until)
	}
	step = w.AttemptDone(9300*ms, down(1)) // it did not obey
	if step = w.Resume(step.Until); step.Action != core.Attempt || step.Until != 10*time.Second {
		t.Errorf("the last attempt: %+v", step)
	}
	if step = w.AttemptDone(9950*ms, down(2)); !errors.Is(step.Err, startup.ErrGaveUp) {
		t.Errorf("after the last attempt: %+v", step)
	}
	p := steady()
	p.AttemptTimeout = 0
	if step := new(core.Startup).Begin(guard(t, p), 0, core.NoDeadline); step.Until != 10*time.Second {
		t.Errorf("without a timeout an attempt may take until %v", step.Until)
	}
}

func TestWhatIsReportedTwiceOrTooLateChangesNothing(t *testing.T) {
	var w core.Startup
	w.Begin(guard(t, steady()), 0, core.NoDeadline)
	if step := w.Resume(0); step.Action != core.Await {
		t.Errorf("resumed with an attempt in the air: %+v", step)
	}
	w.AttemptDone(0, abate.Outcome{})
	for _, step := range []core.Step{w.AttemptDone(1, down(1)), w.Resume(1), w.Cancel(1, context.Canceled, nil)} {
		if step.Action != core.Await {
			t.Errorf("after the end: %+v", step)
		}
	}
}

func TestLeavingKeepsTheCauseThatSaysMore(t *testing.T) {
	for _, row := range []struct {
		name     string
		before   bool // an attempt has failed before
		err      error
		want     error
		attempts int
	}{
		{"during the first attempt", false, context.Canceled, context.Canceled, 1},
		{"during a later attempt, which only says so", true, context.Canceled, errDown, 2},
		{"during a later attempt, which says more", true, errPassword, errPassword, 2},
	} {
		var w core.Startup
		step := w.Begin(guard(t, steady()), 0, core.NoDeadline)
		if row.before {
			step = w.AttemptDone(0, down(1))
			w.Resume(step.Until)
		}
		step = w.Cancel(time.Second, context.Canceled, row.err)
		var e *abate.Error
		if !errors.As(step.Err, &e) || e.Reason != context.Canceled || e.Err != row.want || e.Attempts != row.attempts {
			t.Errorf("%s: %v", row.name, step.Err)
		}
	}
}

var errPassword = errors.New("wrong password")

// A guard inside, such as that of the pool's connections, opens its circuit while the dependency is down. That is a
// reason to wait, not to end the program.
func TestWhatAGuardInsideSaysIsJudgedByTheErrorBehindIt(t *testing.T) {
	p := steady()
	p.Classify = func(err error) abate.Outcome {
		return abate.Outcome{Class: abate.Failure, NoRetry: errors.Is(err, errPassword)}
	}
	var w core.Startup
	w.Begin(guard(t, p), 0, core.NoDeadline)
	open := &abate.Error{Guard: "inner", Reason: abate.ErrCircuitOpen}
	exhausted := &abate.Error{Guard: "inner", Reason: abate.ErrAttemptsExhausted, Attempts: 3, Err: errDown}
	for _, row := range []struct {
		name string
		err  error
		want abate.Outcome
	}{
		{"refused", open, abate.Outcome{Class: abate.Failure}},
		{"refused, wrapped", fmt.Errorf("ping: %w", open), abate.Outcome{Class: abate.Failure}},
		{"repeated in vain", exhausted, abate.Outcome{Class: abate.Failure}},
		{"repeated, then final", &abate.Error{Attempts: 2, Err: errPassword}, abate.Outcome{
			Class: abate.Failure, NoRetry: true,
		}},
		{"repeated, then a mark", &abate.Error{Attempts: 2, Err: abate.RetryAfter(errDown, time.Second)}, abate.Outcome{
			Class: abate.Overload, RetryAfter: time.Second,
		}},
		{"marked outside", abate.Permanent(exhausted), abate.Outcome{Class: abate.Failure, NoRetry: true}},
		{"no guard", errPassword, abate.Outcome{Class: abate.Failure, NoRetry: true}},
		{"a mark alone", abate.RetryAfter(errDown, time.Second), abate.Outcome{
			Class: abate.Overload, RetryAfter: time.Second,
		}},
	} {
		got := w.Judge(t.Context(), row.err)
		if got.Class != row.want.Class || got.NoRetry != row.want.NoRetry || got.RetryAfter != row.want.RetryAfter ||
			got.Err == nil {
			t.Errorf("%s: %+v", row.name, got)
		}
	}
	if got := w.Judge(t.Context(), nil); got != (abate.Outcome{}) {
		t.Errorf("no error: %+v", got)
	}
}

func TestAStartupTellsItsObserver(t *testing.T) {
	p := steady()
	var told []string
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		told = append(told, fmt.Sprintf("%v/%d/%v", e.Kind, e.Attempt, e.Class))
	})
	_, err := waits(t, p, new(core.Startup), core.NoDeadline, func(attempt int) abate.Outcome {
		if attempt == 1 {
			return down(1)
		}
		return abate.Outcome{}
	})
	want := "[call-began/0/success attempt-began/1/success attempt-ended/1/failure retry-scheduled/1/success " +
		"attempt-began/2/success attempt-ended/2/success call-ended/2/success]"
	if got := fmt.Sprint(told); err != nil || got != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
}

// FuzzStartup drives the machine with any policy, times, outcomes and random numbers. No wait is longer than its cap,
// no wait is nothing, nothing goes on after the limit, and the error always tells what happened.
func FuzzStartup(f *testing.F) {
	f.Add(int64(100*ms), int64(time.Second), 2.0, int64(10*time.Second), int64(time.Hour), uint64(1), false,
		[]byte{0, 1, 2, 3})
	f.Add(int64(1), int64(math.MaxInt64), math.NaN(), int64(0), int64(math.MaxInt64), uint64(math.MaxUint64), true,
		[]byte{1, 1, 1, 255})
	f.Add(int64(math.MaxInt64), int64(1), math.Inf(1), int64(math.MinInt64), int64(-1), uint64(0), false, []byte{7, 200})
	f.Add(int64(time.Second), int64(5*time.Second), 1.0, int64(24*time.Hour), int64(0), uint64(math.MaxUint64/2), false,
		[]byte{4, 4, 4, 4, 4, 4})
	f.Fuzz(func(t *testing.T, initial, longest int64, multiplier float64, elapsed, deadline int64, rnd uint64,
		forever bool, story []byte) {
		p := abate.Policy{AttemptTimeout: time.Second, Rand: func() uint64 {
			rnd = rnd*6364136223846793005 + 1442695040888963407
			return rnd
		}}
		p.InitialDelay, p.MaxDelay, p.Multiplier = time.Duration(initial), time.Duration(longest), multiplier
		p.MaxElapsed, p.Jitter = time.Duration(elapsed), []retry.Jitter{
			"", "full", "equal", "decorrelated", "factor", "none",
		}[rnd%6]
		g, err := abate.New("fuzz", p)
		if err != nil {
			return // refused before anything begins
		}
		playStartup(t, g, &core.Startup{Forever: forever}, time.Duration(max(0, deadline)), story)
	})
}

// playStartup makes a story of bytes: the lower bits are the outcome, the upper how long the attempt takes.
func playStartup(t *testing.T, g *abate.Guard, w *core.Startup, deadline time.Duration, story []byte) {
	c := g.Describe().Retry
	limit := deadline
	if end := c.MaxElapsed; !w.Forever && end > 0 {
		limit = min(limit, end)
	}
	now, asked, permanent := time.Duration(0), time.Duration(0), false
	step := w.Begin(g, now, deadline)
	for _, b := range story {
		switch step.Action {
		case core.Attempt:
			if now >= limit || step.Until > limit || step.Until <= now {
				t.Fatalf("attempt at %v until %v, limit %v", now, step.Until, limit)
			}
			o := []abate.Outcome{
				{Class: abate.Failure, Err: errDown},
				{Class: abate.Overload, RetryAfter: time.Duration(b) * time.Second, Err: errDown},
				{Class: abate.Failure, NoRetry: true, Err: errPassword},
				{Class: abate.Overload, RetryAfter: math.MaxInt64, Err: errDown},
			}[b%4]
			asked, permanent = min(o.RetryAfter, c.MaxRetryAfter), o.NoRetry
			now += time.Duration(b/4) * 20 * ms
			step = w.AttemptDone(now, o)
		case core.Sleep:
			delay, most := step.Until-now, c.MaxDelay
			if asked > 0 {
				most = max(most, asked+time.Duration(float64(asked)*c.RetryAfterJitter)+1)
			}
			if permanent {
				most = max(most, time.Minute)
			}
			if delay <= 0 || delay > most || delay < asked || permanent && !w.Forever {
				t.Fatalf("wait of %v at %v, at most %v, asked for %v, permanent %t", delay, now, most, asked, permanent)
			}
			now = step.Until
			step = w.Resume(now)
		case core.Finish:
			var e *abate.Error
			if !errors.As(step.Err, &e) || e.Attempts != w.Attempts() || e.Elapsed != now ||
				w.Forever && e.Reason != abate.ErrDeadline {
				t.Fatalf("ended with %v", step.Err)
			}
			return
		default:
			t.Fatalf("step %+v", step)
		}
	}
}

func TestAnAttemptCutOffAtTheEndOfTheWaitDoesNotHideTheCause(t *testing.T) {
	for _, first := range []error{errDown, nil} { // nil: the only attempt is cut off
		w := new(core.Startup)
		p := steady()
		p.MaxElapsed = time.Second
		step := w.Begin(guard(t, p), 0, core.NoDeadline)
		if first != nil {
			step = w.Resume(w.AttemptDone(0, abate.Outcome{Class: abate.Failure, Err: first}).Until)
		}
		cut := fmt.Errorf("no answer within 900ms: %w", context.DeadlineExceeded)
		step = w.AttemptDone(step.Until, abate.Outcome{Class: abate.Failure, Err: cut})
		want := first
		if want == nil {
			want = cut
		}
		if step.Action != core.Finish || !errors.Is(step.Err, startup.ErrGaveUp) || !errors.Is(step.Err, want) {
			t.Errorf("%+v, want %v", step, want)
		}
	}
}
