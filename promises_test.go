package abate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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

// Each of these was broken once.

// hang is a dependency that answers nothing.
func hang(ctx context.Context) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// after is a dependency that takes d.
func after(d time.Duration, v int, err error) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		select {
		case <-time.After(d):
			return v, err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func TestADependencyThatHangsIsProbedAndNotCalled(t *testing.T) {
	for _, p := range []abate.Policy{{AttemptTimeout: 500 * ms}, {Timeout: 20 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			p.CircuitBreaker = breaker.Config{FailureThreshold: 2}
			g := guard(t, p)
			for range 2 {
				abate.Do(t.Context(), g, hang)
			}
			<-time.After(20 * time.Second)
			sent := 0
			for range 30 {
				abate.Do(t.Context(), g, func(ctx context.Context) (int, error) { sent++; return hang(ctx) })
			}
			if sent > 3 {
				t.Errorf("%d of 30 calls were sent to a dependency that hangs; the breaker is %v", sent, g.State().Breaker.State)
			}
		})
	}
}

func TestASlowDependencyThatAnswersClosesTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}})
		abate.Do(t.Context(), g, after(0, 0, errDown))
		<-time.After(2 * time.Second)
		for range 5 {
			abate.Do(t.Context(), g, after(12*time.Second, 1, nil))
		}
		if st := g.State().Breaker.State; st != breaker.Closed {
			t.Error(st)
		}
	})
}

func TestAHedgeThatIsRefusedDoesNotHarmTheFirstCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := guard(t, abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1}})
		outer := guard(t, abate.Policy{Hedge: hedge.Config{Delay: 10 * ms}})
		v, err := abate.DoHedged(t.Context(), outer, func(ctx context.Context) (int, error) {
			return abate.Do(ctx, inner, after(50*ms, 7, nil))
		})
		if v != 7 || err != nil {
			t.Error(v, err)
		}
	})
}

func TestAHedgesFinalFailureWaitsForTheFirstCopyAndForbidsARetry(t *testing.T) {
	var c core.Call
	g := guard(t, abate.Policy{Retry: fixed(100*ms, 3), Hedge: hedge.Config{Delay: 10 * ms}})
	g.Begin(&c, 0, core.NoDeadline)
	n, _, _ := c.Hedge(10 * ms)
	if step := c.AttemptDone(20*ms, n, abate.Outcome{Class: abate.Failure, NoRetry: true, Err: errFinal}); step.Action !=
		core.Await {
		t.Fatalf("%+v", step)
	}
	if step := c.AttemptDone(30*ms, 0, failure()); step.Action != core.Finish || step.Err != errDown {
		t.Errorf("%+v", step)
	}
}

func TestAHedgeThatHasNothingToSayLeavesTheFailureBeforeIt(t *testing.T) {
	var c core.Call
	g := guard(t, abate.Policy{Retry: fixed(100*ms, 3), Hedge: hedge.Config{Delay: 10 * ms}})
	g.Begin(&c, 0, core.NoDeadline)
	n, _, _ := c.Hedge(10 * ms)
	c.AttemptDone(20*ms, 0, failure())
	step := c.AttemptDone(30*ms, n, abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: errFinal})
	if step.Action != core.Sleep || step.Until != 130*ms {
		t.Errorf("%+v", step)
	}
}

func TestAClassifierThatIsContentDoesNotSwallowTheError(t *testing.T) {
	g := guard(t, abate.Policy{Classify: func(error) abate.Outcome { return abate.Outcome{} }})
	if _, err := abate.Do(t.Context(), g, after(0, 0, errFinal)); err != errFinal {
		t.Error(err)
	}
}

func TestOneSlowAnswerDoesNotTalkOthersOutOfTheirRetries(t *testing.T) {
	g := guard(t, abate.Policy{Retry: fixed(100*ms, 3), Timeout: time.Hour})
	take := func(d time.Duration) {
		var c core.Call
		g.Begin(&c, 0, core.NoDeadline)
		c.AttemptDone(d, 0, abate.Outcome{})
	}
	for i := range 1000 {
		take(5 * ms)
		if i%10 == 0 {
			take(30 * time.Second)
		}
	}
	var c core.Call
	g.Begin(&c, 0, 2*time.Second)
	if step := c.AttemptDone(5*ms, 0, failure()); step.Action != core.Sleep {
		t.Errorf("%+v with a typical latency of %v", step, g.StateAt(0).Typical)
	}
}

func TestAPlainRetryPolicyLearnsWhatFitsADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{Retry: fixed(10*ms, 3)})
		patient, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for range 10 {
			abate.Do(patient, g, after(time.Second, 0, nil))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		n := 0
		_, err := abate.Do(ctx, g, func(context.Context) (int, error) { n++; return 0, errDown })
		if n != 1 || !errors.Is(err, abate.ErrDeadline) {
			t.Errorf("%d attempts of a second in 100 ms: %v", n, err)
		}
	})
}

func TestAnUpdateInVirtualTimeKeepsTheOpenTime(t *testing.T) {
	p := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: 5 * time.Second}}
	g := guard(t, p)
	now := 40 * 365 * 24 * time.Hour
	var c core.Call
	g.Begin(&c, now, core.NoDeadline)
	c.AttemptDone(now, 0, failure())
	p.CircuitBreaker.SuccessThreshold = 7
	if err := g.UpdateAt(now, p); err != nil {
		t.Fatal(err)
	}
	if until := g.StateAt(now).Breaker.OpenUntil; until < now+5*time.Second || until > now+7*time.Second {
		t.Errorf("open until %v after now", until-now)
	}
}

func TestNeverRetryOnGoesBeforeMarksAndClassifiers(t *testing.T) {
	always := func(error) abate.Outcome { return abate.Outcome{Class: abate.Failure} }
	for _, row := range []struct {
		p   abate.Policy
		err error
	}{
		{abate.Policy{NeverRetryOn: []string{"timeout"}, Classify: always}, context.DeadlineExceeded},
		{abate.Policy{NeverRetryOn: []string{"error"}}, abate.RetryAfter(errBusy, 0)},
		{abate.Policy{NeverRetryOn: []string{"501"}}, fmt.Errorf("charge: %w", statusError(501))},
	} {
		row.p.Retry = retry.Config{MaxRetries: 2, Backoff: retry.NoBackoff}
		n := 0
		abate.Do(t.Context(), guard(t, row.p), func(context.Context) (int, error) { n++; return 0, row.err })
		if n != 1 {
			t.Errorf("%v: %d attempts", row.err, n)
		}
	}
}

func TestAnObserverMayUpdateTheGuard(t *testing.T) {
	var g *abate.Guard
	p := abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 2}}
	told := 0
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind == core.BreakerChanged && e.To == breaker.Open {
			told++
			if err := g.Update(abate.Policy{}); err != nil {
				t.Error(err)
			}
		}
	})
	g = guard(t, p)
	p.CircuitBreaker.Mode = breaker.ForcedOpen
	if err := g.Update(p); err != nil || told != 1 {
		t.Error(err, told)
	}
}

func TestAnObserverThatPanicsHangsNobody(t *testing.T) {
	logged := panicsLogged(t)
	for _, when := range []struct {
		kind    core.EventKind
		attempt int
	}{{core.AttemptEnded, 1}, {core.AttemptBegan, 3}, {core.HedgeSent, 2}, {core.CallEnded, 4}} {
		synctest.Test(t, func(t *testing.T) {
			p := abate.Policy{Retry: retry.Config{MaxRetries: 1}, Hedge: hedge.Config{Delay: ms}}
			p.Observer = abate.ObserverFunc(func(e abate.Event) {
				if e.Kind == when.kind && e.Attempt == when.attempt {
					panic("observer")
				}
			})
			g := guard(t, p)
			var n atomic.Int32
			_, err := abate.DoHedged(t.Context(), g, func(ctx context.Context) (int, error) {
				return after(time.Duration(2+3*min(n.Add(1), 2))*ms, 0, errDown)(ctx)
			})
			if !errors.Is(err, abate.ErrAttemptsExhausted) || g.State().Panics == 0 {
				t.Errorf("%v %d: %v, %d panics", when.kind, when.attempt, err, g.State().Panics)
			}
		})
	}
	if n := strings.Count(logged.String(), "an observer"); n != 4 {
		t.Errorf("%d panics in the log, want 4: %s", n, logged)
	}
}

func TestRetryAfterOfAnyCopyHolds(t *testing.T) {
	var c core.Call
	g := guard(t, abate.Policy{Retry: fixed(100*ms, 3), Hedge: hedge.Config{Delay: ms}})
	g.Begin(&c, 0, core.NoDeadline)
	n, _, _ := c.Hedge(ms)
	c.AttemptDone(2*ms, 0, abate.Outcome{Class: abate.Overload, RetryAfter: 5 * time.Second, Err: errBusy})
	if step := c.AttemptDone(3*ms, n, failure()); step.Action != core.Sleep || step.Until < 5*time.Second {
		t.Errorf("%+v", step)
	}
}

func TestNothingIsSentForACallerThatLeftAtThatMoment(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p := abate.Policy{Retry: fixed(10*ms, 1)}
			p.Observer = abate.ObserverFunc(func(e abate.Event) {
				if e.Kind == core.RetryScheduled { // when the driver gets to wait, both the delay and the caller are gone
					<-time.After(20 * ms)
					cancel()
				}
			})
			n := 0
			abate.Do(ctx, guard(t, p), func(context.Context) (int, error) { n++; return 0, errDown })
			if n != 1 {
				t.Error("sent for a caller that had left")
			}
		})
	}
}

func TestAHedgedCallFinishesUnderThePolicyItBeganWith(t *testing.T) {
	old := abate.Policy{Retry: retry.Config{MaxRetries: 2, Backoff: retry.NoBackoff}, NeverRetryOn: []string{"error"},
		Hedge: hedge.Config{Delay: time.Hour}}
	g := guard(t, old)
	n := 0
	abate.DoHedged(t.Context(), g, func(context.Context) (int, error) {
		n++
		next := old
		next.NeverRetryOn = nil
		if err := g.Update(next); err != nil {
			t.Error(err)
		}
		return 0, errDown
	})
	if n != 1 {
		t.Errorf("%d attempts", n)
	}
}

func TestEveryAttemptThatBeganHasAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ended := map[int]int{}, map[int]int{}
		p := abate.Policy{Hedge: hedge.Config{Delay: ms, MaxHedges: 2}, Retry: fixed(5*ms, 2)}
		p.Observer = abate.ObserverFunc(func(e abate.Event) {
			switch e.Kind {
			case core.AttemptBegan, core.HedgeSent:
				began[e.Attempt]++
			case core.AttemptEnded:
				ended[e.Attempt]++
			}
		})
		var n atomic.Int32
		abate.DoHedged(t.Context(), guard(t, p), func(ctx context.Context) (int, error) {
			if n.Add(1) == 5 {
				return 1, nil
			}
			return after(10*ms, 0, errDown)(ctx)
		})
		if fmt.Sprint(began) != fmt.Sprint(ended) || len(began) != 5 {
			t.Errorf("began %v, ended %v", began, ended)
		}
	})
}

func TestABulkheadThatWasOffKnowsWhoIsInside(t *testing.T) {
	on := abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 2, NoQueue: true}}
	g := guard(t, on)
	update := func(p abate.Policy) {
		if err := g.Update(p); err != nil {
			t.Fatal(err)
		}
	}
	update(abate.Policy{})
	var calls [11]core.Call
	for i := range 10 {
		if step := g.Begin(&calls[i], 0, core.NoDeadline); step.Action != core.Attempt {
			t.Fatalf("call %d: %+v", i, step)
		}
	}
	update(on)
	if step := g.Begin(&calls[10], 0, core.NoDeadline); step.Action != core.Finish {
		t.Errorf("an eleventh beside ten with a limit of 2: %+v", step)
	}
}

func TestElapsedOfARefusalCountsTheQueue(t *testing.T) {
	var first, second core.Call
	g := guard(t, abate.Policy{
		Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1}, CircuitBreaker: breaker.Config{FailureThreshold: 1},
	})
	g.Begin(&first, 0, core.NoDeadline)
	g.Begin(&second, 0, core.NoDeadline)
	second.Enqueue(0, new(bulkhead.Waiter))
	first.AttemptDone(500*ms, 0, failure())
	var e *abate.Error
	if step := second.Admitted(500 * ms); !errors.As(step.Err, &e) || e.Elapsed != 500*ms ||
		!errors.Is(e, abate.ErrCircuitOpen) {
		t.Errorf("%+v", step)
	}
}

func TestAMarkComesOffForACallerThatLeftToo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := abate.Do(ctx, guard(t, abate.DefaultPolicy()), func(context.Context) (int, error) {
		cancel()
		return 0, abate.Permanent(errFinal)
	})
	if err != errFinal {
		t.Errorf("%T %v", err, err)
	}
}

func TestAContextsErrorNeverChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		abate.Do(ctx, guard(t, abate.Policy{AttemptTimeout: ms}), func(ctx context.Context) (int, error) {
			<-time.After(time.Second)
			first := ctx.Err()
			cancel()
			if again := ctx.Err(); again != first || first != context.DeadlineExceeded {
				t.Error(first, again)
			}
			return 0, nil
		})
	})
}

func TestASlidingWindowHasLimits(t *testing.T) {
	for _, w := range []breaker.Window{
		{Calls: -1}, {Duration: -time.Second}, {Duration: 1000 * time.Hour}, {Duration: 1},
	} {
		if err := (abate.Policy{CircuitBreaker: breaker.Config{FailureRateThreshold: 0.5, SlidingWindow: w}}).
			Validate(); err == nil {
			t.Errorf("%+v is accepted", w)
		}
	}
}

func TestImpatientCallersDoNotOpenTheBreakerForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.DefaultPolicy())
		for range 20 {
			abate.Do(t.Context(), g, after(20*ms, 1, nil))
		}
		for range 25 {
			ctx, cancel := context.WithTimeout(t.Context(), ms)
			abate.Do(ctx, g, after(20*ms, 1, nil))
			cancel()
		}
		if _, err := abate.Do(t.Context(), g, after(20*ms, 1, nil)); err != nil {
			t.Error(err)
		}
		var patient sync.WaitGroup
		for range 40 { // had they waited long enough, it would have been the dependency's failure
			patient.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				abate.Do(ctx, g, hang)
				cancel()
			})
		}
		patient.Wait()
		if st := g.State().Breaker.State; st == breaker.Closed {
			t.Error("a dependency that hangs is", st)
		}
	})
}

func TestAnIgnoredErrorIsAnAnswerThatNeedsNoFallback(t *testing.T) {
	fallback := func(context.Context, error) (int, error) { return 7, nil }
	_, err := abate.DoWithFallback(t.Context(), guard(t, abate.DefaultPolicy()),
		after(0, 0, abate.Ignore(errFinal)), fallback)
	if err != errFinal {
		t.Error(err)
	}
	inner := guard(t, abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}})
	v, err := abate.DoWithFallback(t.Context(), guard(t, abate.DefaultPolicy()), func(ctx context.Context) (int, error) {
		return abate.Do(ctx, inner, after(0, 1, nil))
	}, fallback)
	if v != 7 || err != nil {
		t.Error("a refusal further in is no answer:", v, err)
	}
}

func TestRampUpKeepsItsPlacesForFirstAttempts(t *testing.T) {
	g := guard(t, abate.Policy{Retry: fixed(100*ms, 3), RetryBudget: budget.Config{Ratio: 0.1, Reserve: 5},
		CircuitBreaker: breaker.Config{FailureThreshold: 2, SuccessThreshold: 1, RampUp: time.Hour, RampUpFrom: 1}})
	at := func(now time.Duration, o abate.Outcome) core.Step {
		var c core.Call
		g.Begin(&c, now, core.NoDeadline)
		return c.AttemptDone(now, 0, o)
	}
	for range 2 {
		at(0, abate.Outcome{Class: abate.Failure, NoRetry: true, Err: errDown})
	}
	at(time.Minute, abate.Outcome{})
	before := g.StateAt(time.Minute)
	step := at(time.Minute, failure())
	if before.Breaker.State != breaker.RampUp || step.Action != core.Finish || !errors.Is(step.Err, abate.ErrCircuitOpen) {
		t.Errorf("%+v in state %v", step, before.Breaker.State)
	}
	if spent := before.Budget - g.StateAt(time.Minute).Budget; spent > 0 {
		t.Errorf("it cost %v of the budget", spent)
	}
}

func TestTheCauseOfALeavingIsInTheError(t *testing.T) {
	shutdown := errors.New("shutdown")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(shutdown)
	_, err := abate.Do(ctx, guard(t, abate.DefaultPolicy()), after(0, 1, nil))
	if !errors.Is(err, shutdown) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
