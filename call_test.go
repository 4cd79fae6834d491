package abate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// These drive a Call by hand, for moments that a driver meets only by bad luck.

func failure() abate.Outcome { return abate.Outcome{Class: abate.Failure, Err: errDown} }

func TestACallPastItsDeadlineIsNotSent(t *testing.T) {
	var c core.Call
	step := guard(t, fullPolicy()).Begin(&c, 100, 50)
	if step.Action != core.Finish || !errors.Is(step.Err, abate.ErrDeadline) || c.Attempts() != 0 {
		t.Errorf("%+v after %d attempts", step, c.Attempts())
	}
}

func TestACallThatWakesPastItsDeadlineIsNotSentAgain(t *testing.T) {
	var c core.Call
	g := guard(t, abate.Policy{Retry: fixed(100*ms, 3)})
	g.Begin(&c, 0, time.Second)
	if step := c.AttemptDone(5*ms, 0, failure()); step.Action != core.Sleep || step.Until != 105*ms {
		t.Fatalf("%+v", step)
	}
	step := c.Resume(time.Second) // the machine was busy
	if step.Action != core.Finish || !errors.Is(step.Err, abate.ErrDeadline) || !errors.Is(step.Err, errDown) ||
		c.Attempts() != 1 {
		t.Errorf("%+v after %d attempts", step, c.Attempts())
	}
}

func TestWhatIsReportedToAFinishedCallIsIgnored(t *testing.T) {
	var c core.Call
	g := guard(t, abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1}})
	g.Begin(&c, 0, core.NoDeadline)
	c.AttemptDone(1, 0, abate.Outcome{})
	for name, step := range map[string]core.Step{
		"AttemptDone": c.AttemptDone(2, 0, failure()), "Resume": c.Resume(2), "Cancel": c.Cancel(2, context.Canceled),
		"Admitted": c.Admitted(2), "LeaveQueue": c.LeaveQueue(2, new(bulkhead.Waiter), nil),
	} {
		if step.Action != core.Await {
			t.Errorf("%s: %+v", name, step)
		}
	}
	c.Abort(2)
	if n := g.StateAt(2).Bulkhead.InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}

func TestOnlyFirstAttemptsEarnBudget(t *testing.T) {
	var c core.Call
	g := guard(t, abate.Policy{
		Retry: retry.Config{MaxRetries: 9, Backoff: retry.NoBackoff}, RetryBudget: budget.Config{Ratio: 0.5, Reserve: 3},
	})
	g.Begin(&c, 0, core.NoDeadline)
	for range 3 {
		if step := c.AttemptDone(1, 0, failure()); step.Action != core.Attempt {
			t.Fatalf("%+v", step)
		}
	}
	if b := g.StateAt(1).Budget; b != 0.5 {
		t.Errorf("3 + 0.5 - 3 = %v", b)
	}
}

func TestWhatSaysNothingAboutTheDependencyDoesNotShrinkAnAdaptiveBudget(t *testing.T) {
	g := guard(t, abate.Policy{RetryBudget: budget.Config{Kind: budget.Adaptive, MinRatio: 0.01, MaxRatio: 0.5}})
	now := time.Duration(0)
	for range 20 {
		var c core.Call
		g.Begin(&c, now, core.NoDeadline)
		c.AttemptDone(now, 0, abate.Outcome{Class: abate.Ignored, Err: errFinal})
		now += time.Second
	}
	before := g.StateAt(now).Budget
	var c core.Call
	g.Begin(&c, now, core.NoDeadline)
	if got := g.StateAt(now).Budget - before; got < 0.49 {
		t.Errorf("a call earns %v, want 0.5", got)
	}
}

func TestADeniedHedgeGivesItsProbePermitBack(t *testing.T) {
	g := guard(t, abate.Policy{
		Hedge:       hedge.Config{Delay: 10 * ms},
		RetryBudget: budget.Config{Ratio: 0.1}, // no reserve: no hedge
		CircuitBreaker: breaker.Config{FailureThreshold: 1, PermittedCallsInHalfOpen: 2, WaitDurationInOpenState: time.Second,
			HalfOpenPermitLease: time.Hour},
	})
	var open, probe, next core.Call
	g.Begin(&open, 0, core.NoDeadline)
	open.AttemptDone(0, 0, failure())
	g.Begin(&probe, time.Minute, core.NoDeadline)
	if _, _, ok := probe.Hedge(time.Minute + 10*ms); ok {
		t.Fatal("hedged without budget")
	}
	if step := g.Begin(&next, time.Minute+20*ms, core.NoDeadline); step.Action != core.Attempt {
		t.Errorf("the second probe: %+v", step)
	}
}

func TestAnEndedCallGivesTheProbePermitsOfItsCopiesBack(t *testing.T) {
	g := guard(t, abate.Policy{
		Hedge: hedge.Config{Delay: 10 * ms},
		CircuitBreaker: breaker.Config{
			FailureThreshold:         1,
			PermittedCallsInHalfOpen: 2,
			SuccessThreshold:         9,
			WaitDurationInOpenState:  time.Second,
			HalfOpenPermitLease:      time.Hour,
		},
	})
	var open, probe core.Call
	g.Begin(&open, 0, core.NoDeadline)
	open.AttemptDone(0, 0, failure())
	g.Begin(&probe, time.Minute, core.NoDeadline)
	n, _, ok := probe.Hedge(time.Minute + 10*ms)
	if !ok {
		t.Fatal("not hedged")
	}
	probe.AttemptDone(time.Minute+20*ms, n, abate.Outcome{}) // the first copy is still in the air
	for i := range 2 {
		var next core.Call
		if step := g.Begin(&next, time.Minute+30*ms, core.NoDeadline); step.Action != core.Attempt {
			t.Errorf("probe %d: %+v", i, step)
		}
	}
}

func TestTheHedgeDelayCountsFromTheFirstCopy(t *testing.T) {
	g := guard(t, abate.Policy{Hedge: hedge.Config{Delay: 100 * ms, Quantile: 0.9}})
	now := time.Duration(0)
	for range 100 {
		var c core.Call
		g.Begin(&c, now, core.NoDeadline)
		n, _, ok := c.Hedge(now + 100*ms)
		if !ok {
			t.Fatal("not hedged")
		}
		c.AttemptDone(now+101*ms, n, abate.Outcome{}) // the copy took 1 ms, the call 101
		now += time.Second
	}
	if st := g.StateAt(now).Hedge; !st.Learned || st.Delay < 100*ms {
		t.Errorf("%+v: hedging lowered its own threshold", st)
	}
}

func TestTypicalLatencyFollowsSuccesses(t *testing.T) {
	g := guard(t, abate.Policy{AttemptTimeout: time.Minute})
	take := func(d time.Duration, o abate.Outcome) time.Duration {
		var c core.Call
		g.Begin(&c, 0, core.NoDeadline)
		c.AttemptDone(d, 0, o)
		return g.StateAt(0).Typical
	}
	if got := take(100*ms, abate.Outcome{}); got != 100*ms {
		t.Error("first:", got)
	}
	if got := take(time.Second, failure()); got != 100*ms {
		t.Error("a failure moved it:", got)
	}
	if got := take(time.Hour, abate.Outcome{}); got < 103*ms || got > 104*ms {
		t.Error("a slow answer moves it by no more than a thirty-second:", got)
	}
	for range 100 {
		take(10*ms, abate.Outcome{})
	}
	if got := g.StateAt(0).Typical; got > 12*ms {
		t.Error("never came down:", got)
	}
}

func TestAnUpdateReachesEveryPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := abate.Policy{
			RetryBudget:    budget.Config{Ratio: 0.1, Reserve: 5},
			CircuitBreaker: breaker.Config{FailureThreshold: 3},
			Bulkhead:       bulkhead.Config{MaxConcurrentCalls: 3},
			Hedge:          hedge.Config{Delay: 30 * ms},
		}
		g := guard(t, p)
		p.RetryBudget.Reserve = 2
		p.CircuitBreaker.Mode = breaker.ForcedOpen
		p.Bulkhead.MaxConcurrentCalls = 7
		p.Hedge.Delay = 70 * ms
		if err := g.Update(p); err != nil {
			t.Fatal(err)
		}
		st := g.State()
		if st.Budget != 2 || st.Breaker.State != breaker.Open || st.Bulkhead.Limit != 7 || st.Hedge.Delay != 70*ms {
			t.Errorf("%+v", st)
		}
	})
}

func TestAnExpiredContextIsADeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err := abate.Do(ctx, guard(t, abate.Policy{}), func(context.Context) (int, error) {
		t.Error("called")
		return 0, nil
	})
	if !errors.Is(err, abate.ErrDeadline) {
		t.Error(err)
	}
}

func TestAContextAskedForDoneAfterItsAttemptHasFailedIsDone(t *testing.T) {
	var kept context.Context
	abate.Do(t.Context(), guard(t, abate.Policy{AttemptTimeout: time.Minute}), func(ctx context.Context) (int, error) {
		kept = ctx
		return 0, errDown
	})
	<-kept.Done()
}

func TestEveryAttemptThatIsNotReturnedHasItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, p := range map[string]abate.Policy{
			"plain":  {Retry: fixed(10*ms, 2), AttemptTimeout: time.Minute},
			"hedged": {Retry: fixed(10*ms, 2), AttemptTimeout: time.Minute, Hedge: hedge.Config{Delay: ms}},
		} {
			contexts := make([]context.Context, 9)
			op := &operation{attempt: func(ctx context.Context, n int) (int, error) {
				contexts[n] = ctx
				if n == 1 { // ended by its hedge's failing, not by its own end
					<-time.After(5 * ms)
				}
				if n >= 3 {
					return n, nil
				}
				return 0, errDown
			}}
			v, release, err := core.Run[int](t.Context(), guard(t, p), op)
			if v != 3 || err != nil || contexts[3].Err() != nil {
				t.Fatal(name, v, err, contexts[3].Err())
			}
			for n, ctx := range contexts[1:3] {
				if ctx.Err() == nil {
					t.Errorf("%s: the context of attempt %d lives on", name, n+1)
				}
			}
			release.Done()
		}
	})
}
