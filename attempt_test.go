package abate_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/retry"
	"github.com/abate-go/abate/policy/throttle"
)

func perSecond(n float64, burst int) ratelimit.Config {
	return ratelimit.Config{Limit: ratelimit.Rate{Tokens: n, Per: time.Second}, Burst: burst}
}

func succeed(t *testing.T, g *abate.Guard, now time.Duration) {
	t.Helper()
	var c core.Call
	if step := g.Begin(&c, now, core.NoDeadline); step.Action != core.Attempt {
		t.Fatalf("%+v", step)
	}
	c.AttemptDone(now, 0, abate.Outcome{})
}

func TestACallAboveTheRateLimitIsRefused(t *testing.T) {
	g := guard(t, abate.Policy{RateLimit: abate.AttemptLimit{Config: perSecond(10, 2)}})
	succeed(t, g, 0)
	succeed(t, g, 0)
	var c core.Call
	step := g.Begin(&c, 0, core.NoDeadline)
	if step.Action != core.Finish || !errors.Is(step.Err, abate.ErrRateLimited) || c.Attempts() != 0 {
		t.Errorf("%+v after %d attempts", step, c.Attempts())
	}
	succeed(t, g, 100*ms)
}

func TestARetryAboveTheRateLimitKeepsItsError(t *testing.T) {
	g := guard(t, abate.Policy{
		Retry: retry.Config{MaxRetries: 3, Backoff: retry.NoBackoff}, RateLimit: abate.AttemptLimit{Config: perSecond(1, 1)},
	})
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	step := c.AttemptDone(0, 0, failure())
	if step.Action != core.Finish || !errors.Is(step.Err, abate.ErrRateLimited) || !errors.Is(step.Err, errDown) {
		t.Errorf("%+v", step)
	}
}

func TestAnAttemptWaitsForItsTurnUpToMaxWait(t *testing.T) {
	g := guard(t, abate.Policy{RateLimit: abate.AttemptLimit{Config: perSecond(10, 1), MaxWait: 150 * ms}})
	succeed(t, g, 0)
	var second, third core.Call
	if step := g.Begin(&second, 0, core.NoDeadline); step.Action != core.Sleep || step.Until != 100*ms {
		t.Fatalf("%+v", step)
	}
	if step := g.Begin(&third, 0, core.NoDeadline); step.Action != core.Finish ||
		!errors.Is(step.Err, abate.ErrRateLimited) {
		t.Errorf("its turn would come in 200ms: %+v", step)
	}
	if step := second.Resume(100 * ms); step.Action != core.Attempt || second.Attempts() != 1 {
		t.Errorf("%+v", step)
	}
}

func TestAnAttemptDoesNotWaitPastItsDeadline(t *testing.T) {
	g := guard(t, abate.Policy{RateLimit: abate.AttemptLimit{Config: perSecond(10, 1), MaxWait: time.Second}})
	succeed(t, g, 0)
	var c core.Call
	if step := g.Begin(&c, 0, 50*ms); step.Action != core.Finish || !errors.Is(step.Err, abate.ErrRateLimited) {
		t.Errorf("%+v", step)
	}
}

func TestAnAttemptDoesNotWaitForATurnThatLeavesItNoTime(t *testing.T) {
	for usual, deadline := range map[time.Duration]time.Duration{0: 100 * ms, 50 * ms: 140 * ms} {
		g := guard(t, abate.Policy{
			AttemptTimeout: time.Second, RateLimit: abate.AttemptLimit{Config: perSecond(10, 1), MaxWait: time.Second},
		})
		var first, second, third core.Call
		g.Begin(&first, 0, core.NoDeadline)
		first.AttemptDone(usual, 0, abate.Outcome{})
		if step := g.Begin(&second, usual, deadline); step.Action != core.Finish ||
			!errors.Is(step.Err, abate.ErrRateLimited) {
			t.Errorf("its turn comes at 100ms, an attempt takes %v, and it waits at most until %v: %+v", usual, deadline, step)
		}
		if step := g.Begin(&third, usual, core.NoDeadline); step.Action != core.Sleep || step.Until != 100*ms {
			t.Errorf("the turn is lost: %+v", step)
		}
	}
}

func TestDoWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{RateLimit: abate.AttemptLimit{Config: perSecond(10, 1), MaxWait: time.Second}})
		began := time.Now()
		for range 4 {
			if _, err := abate.Do(t.Context(), g, after(0, 1, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 299*ms || took > 301*ms {
			t.Errorf("4 calls at 10/s took %v", took)
		}
	})
}

func TestAnAttemptThatIsNotSentGivesItsProbePermitBack(t *testing.T) {
	g := guard(t, abate.Policy{
		RateLimit: abate.AttemptLimit{Config: perSecond(0.1, 1)},
		CircuitBreaker: breaker.Config{
			FailureThreshold:         1,
			PermittedCallsInHalfOpen: 1,
			SuccessThreshold:         9,
			WaitDurationInOpenState:  time.Second,
			HalfOpenPermitLease:      time.Hour,
		},
	})
	var open core.Call
	g.Begin(&open, 0, core.NoDeadline)
	open.AttemptDone(0, 0, failure())
	for range 3 {
		var c core.Call
		if step := g.Begin(&c, 5*time.Second, core.NoDeadline); !errors.Is(step.Err, abate.ErrRateLimited) {
			t.Fatalf("%+v", step)
		}
	}
	var probe core.Call
	if step := g.Begin(&probe, time.Minute, core.NoDeadline); step.Action != core.Attempt {
		t.Errorf("the probe: %+v", step)
	}
}

func TestAHedgeAboveTheRateLimitIsNotSent(t *testing.T) {
	var denied error
	g := guard(t, abate.Policy{
		Hedge: hedge.Config{Delay: 10 * ms}, RateLimit: abate.AttemptLimit{Config: perSecond(1, 1)},
		RetryBudget: budget.Config{Ratio: 1, Reserve: 5},
		Observer: abate.ObserverFunc(func(e abate.Event) {
			if e.Kind == core.HedgeDenied {
				denied = e.Reason
			}
		}),
	})
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	before := g.StateAt(10 * ms).Budget
	if _, _, ok := c.Hedge(10 * ms); ok || denied != abate.ErrRateLimited {
		t.Errorf("sent: %v, denied for %v", ok, denied)
	}
	if after := g.StateAt(10 * ms).Budget; after != before {
		t.Errorf("the hedge that was not sent cost %v of the budget", before-after)
	}
}

func TestADependencyThatRefusesNearlyAllIsOfferedLess(t *testing.T) {
	g := guard(t, abate.Policy{Throttle: throttle.Config{K: 2, MinimumNumberOfCalls: 10, MaxRejection: 0.9}})
	now, sent := time.Duration(0), 0
	for range 10_000 {
		now += ms
		var c core.Call
		if step := g.Begin(&c, now, core.NoDeadline); step.Action != core.Attempt {
			if !errors.Is(step.Err, abate.ErrThrottled) {
				t.Fatalf("%+v", step)
			}
			continue
		}
		sent++
		c.AttemptDone(now, 0, abate.Outcome{Class: abate.Overload, Err: errBusy})
	}
	if sent < 800 || sent > 2000 {
		t.Errorf("%d of 10,000 were sent to a dependency that refuses all; want about a tenth", sent)
	}
	if st := g.StateAt(now).Throttle; st.Rejection < 0.85 || st.Rejection > 0.9 {
		t.Errorf("%+v", st)
	}
}

func TestWhatSaysNothingAboutTheDependencyThrottlesNothing(t *testing.T) {
	g := guard(t, abate.Policy{Throttle: throttle.Config{K: 2, MinimumNumberOfCalls: 10}})
	for n := range 1000 {
		var c core.Call
		if step := g.Begin(&c, time.Duration(n)*ms, core.NoDeadline); step.Action != core.Attempt {
			t.Fatalf("call %d: %+v", n, step)
		}
		c.AttemptDone(time.Duration(n)*ms, 0, abate.Outcome{Class: abate.Ignored, Err: context.Canceled})
	}
}

func TestAnOpenBreakersRefusalsThrottleNothing(t *testing.T) {
	g := guard(t, abate.Policy{Throttle: throttle.Config{K: 2, MinimumNumberOfCalls: 10}, CircuitBreaker: breaker.Config{
		FailureThreshold: 1, WaitDurationInOpenState: time.Minute,
	}})
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	c.AttemptDone(0, 0, failure())
	for n := range 1000 {
		var c core.Call
		if step := g.Begin(&c, time.Duration(n)*ms, core.NoDeadline); !errors.Is(step.Err, abate.ErrCircuitOpen) {
			t.Fatalf("call %d: %+v", n, step)
		}
	}
	if st := g.StateAt(time.Second).Throttle; st.Requests > 1 {
		t.Errorf("%+v", st)
	}
}

func TestAHedgeThatTheBudgetDeniesTakesNothingFromTheRateLimit(t *testing.T) {
	g := guard(t, abate.Policy{
		Hedge: hedge.Config{Delay: 10 * ms}, RateLimit: abate.AttemptLimit{Config: perSecond(1, 2)},
		RetryBudget: budget.Config{Ratio: 0.001},
	})
	var c core.Call
	g.Begin(&c, 0, core.NoDeadline)
	if _, _, ok := c.Hedge(10 * ms); ok {
		t.Fatal("sent without a budget")
	}
	succeed(t, g, 10*ms)
}

func TestARetryWithoutDelayAsksTheRateLimitAtTheTimeItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{Retry: retry.Config{MaxRetries: 2, Backoff: retry.NoBackoff},
			RateLimit: abate.AttemptLimit{Config: perSecond(1, 1)}})
		attempts := 0
		if _, err := abate.Do(t.Context(), g, func(ctx context.Context) (int, error) {
			if attempts++; attempts < 3 {
				return after(2*time.Second, 1, errDown)(ctx)
			}
			return 1, nil
		}); err != nil {
			t.Errorf("a token had come while the attempt ran: %v", err)
		}
	})
}

// TestOwnExhaustionIsNoFailureOfTheDependency: a process that is out of descriptors has not asked it.
func TestOwnExhaustionIsNoFailureOfTheDependency(t *testing.T) {
	own := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	theirs := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for _, c := range []struct {
		err  error
		mark func(error) error
		open bool
	}{
		{own, nil, false}, {fmt.Errorf("GET: %w", own), nil, false}, {own, abate.Permanent, false},
		{own, func(err error) error {
			return abate.RetryAfter(err, 0)
		}, false},
		{theirs, nil, true}, {theirs, abate.Permanent, true},
	} {
		p := abate.DefaultPolicy()
		p.MaxRetries, p.CircuitBreaker.FailureThreshold = 0, 3
		g, err := abate.New("db", p)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) {
				if c.mark != nil {
					return 0, c.mark(c.err)
				}
				return 0, c.err
			})
			if !c.open && !errors.Is(err, c.err) {
				t.Errorf("the error was lost: %v", err)
			}
		}
		if open := g.State().Breaker.State == breaker.Open; open != c.open {
			t.Errorf("%v: the circuit is open: %v", c.err, open)
		}
	}
}

func TestATerseCallerGetsTheReasonAndNoError(t *testing.T) {
	g := guard(t, abate.Policy{Retry: retry.Config{MaxRetries: 1, Backoff: retry.NoBackoff}})
	out := failure()
	var end core.Step
	if n := testing.AllocsPerRun(100, func() {
		c := core.Call{Caller: core.Terse}
		g.Begin(&c, 0, core.NoDeadline)
		c.AttemptDone(0, 0, out)
		end = c.AttemptDone(0, 0, out)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if end.Action != core.Finish || end.Err != abate.ErrAttemptsExhausted {
		t.Errorf("%+v, want the reason itself", end)
	}
}
