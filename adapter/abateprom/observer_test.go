package abateprom_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

func bulkheadOf(n int) bulkhead.Config { return bulkhead.Config{MaxConcurrentCalls: n, NoQueue: true} }

// retrying is a policy of n retries after a second each, without budget or breaker.
func retrying(n int) abate.Policy {
	return abate.Policy{
		Retry: abate.Retry{MaxRetries: n, InitialDelay: time.Second, MaxDelay: time.Second, Jitter: retry.NoJitter},
	}
}

func TestHowCallsEndIsCounted(t *testing.T) {
	refused := func(reason string) string { return `abate_call_refusals_total{reason="` + reason + `",service="s"}` }
	outcome := func(name string) string { return `abate_calls_total{outcome="` + name + `",service="s"}` }
	attempts := func(class string) string { return `abate_attempts_total{class="` + class + `",service="s"}` }
	const succeeded, exhausted, retries = `abate_retry_success_total{service="s"}`,
		`abate_retry_exhausted_total{service="s"}`, `abate_retries_total{service="s"}`
	down := abate.Outcome{Class: abate.Failure, Err: errDown}
	for name, c := range map[string]struct {
		policy abate.Policy
		call   func(t *testing.T, g *abate.Guard) error
		reason error
		want   map[string]float64
	}{
		"success": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			return play(g, 0, func(int) abate.Outcome { return abate.Outcome{} })
		}, nil, map[string]float64{outcome("success"): 1, attempts("success"): 1, retries: 0, succeeded: 0}},
		"success after a retry": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			return play(g, 0, func(n int) abate.Outcome {
				if n == 1 {
					return abate.Outcome{Class: abate.Overload, Err: errDown}
				}
				return abate.Outcome{}
			})
		}, nil, map[string]float64{outcome("success"): 1, attempts("overload"): 1, attempts("success"): 1, succeeded: 1,
			exhausted: 0,
			`abate_retry_delay_seconds_sum{service="s"}`: 1, `abate_retry_delay_seconds_count{service="s"}`: 1}},
		"an answer after a retry": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			return play(g, 0, func(n int) abate.Outcome {
				if n == 1 {
					return abate.Outcome{Class: abate.Failure, Err: errDown}
				}
				return abate.Outcome{Class: abate.Ignored, Err: errDown}
			})
		}, errDown, map[string]float64{outcome("ignored"): 1, succeeded: 0, exhausted: 0}},
		"failure that nobody repeats": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			return play(g, 0, func(int) abate.Outcome {
				return abate.Outcome{Class: abate.Failure, NoRetry: true, Err: errDown}
			})
		}, errDown, map[string]float64{outcome("failure"): 1, exhausted: 0}},
		"an answer": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			return play(g, 0, func(int) abate.Outcome { return abate.Outcome{Class: abate.Ignored, Err: errDown} })
		}, errDown, map[string]float64{outcome("ignored"): 1, attempts("ignored"): 1}},
		"attempts exhausted": {retrying(2), func(_ *testing.T, g *abate.Guard) error { return failing(g, 0) },
			abate.ErrAttemptsExhausted, map[string]float64{
				outcome("failure"): 1, attempts("failure"): 3, retries: 2, exhausted: 1, succeeded: 0,
			}},
		"budget exhausted": {func() abate.Policy {
			p := retrying(2)
			p.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 1, CostPerRetry: 1}
			return p
		}(), func(_ *testing.T, g *abate.Guard) error { return failing(g, 0) },
			abate.ErrBudgetExhausted, map[string]float64{
				outcome("failure"): 1, refused("budget_exhausted"): 1, outcome("refused"): 0, exhausted: 0,
			}},
		"circuit open": {opening(), func(_ *testing.T, g *abate.Guard) error {
			_ = failing(g, 0)
			return failing(g, 0)
		}, abate.ErrCircuitOpen, map[string]float64{
			outcome("failure"): 1, outcome("refused"): 1, refused("circuit_open"): 1,
		}},
		"bulkhead full": {abate.Policy{Bulkhead: bulkheadOf(1)}, func(t *testing.T, g *abate.Guard) error {
			var running core.Call
			g.Begin(&running, 0, core.NoDeadline)
			defer running.AttemptDone(0, 0, abate.Outcome{})
			return failing(g, 0)
		}, abate.ErrBulkheadFull, map[string]float64{outcome("refused"): 1, refused("bulkhead_full"): 1}},
		"no time for a retry": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			var c core.Call
			g.Begin(&c, 0, time.Millisecond)
			return c.AttemptDone(0, 0, down).Err
		}, abate.ErrDeadline, map[string]float64{outcome("failure"): 1, refused("deadline"): 1}},
		"overloaded": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			return play(g, 0, func(int) abate.Outcome {
				return abate.Outcome{Class: abate.Overload, RetryAfter: time.Hour, Err: errDown}
			})
		}, abate.ErrOverloaded, map[string]float64{outcome("overload"): 1, refused("overloaded"): 1}},
		"the caller left before it began": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			ctx, leave := context.WithCancel(context.Background())
			leave()
			_, err := abate.Do(ctx, g, func(context.Context) (int, error) { return 0, nil })
			return err
		}, context.Canceled, map[string]float64{outcome("ignored"): 1, outcome("refused"): 0, refused("other"): 0}},
		"the caller had no time left": {retrying(2), func(_ *testing.T, g *abate.Guard) error {
			ctx, leave := context.WithTimeout(context.Background(), -1)
			defer leave()
			_, err := abate.Do(ctx, g, func(context.Context) (int, error) { return 0, nil })
			return err
		}, abate.ErrDeadline, map[string]float64{outcome("refused"): 1, refused("deadline"): 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := metrics(t)
			if err := c.call(t, m.guard(t, "s", c.policy)); !errors.Is(err, c.reason) {
				t.Errorf("the call ended with %v, want %v", err, c.reason)
			}
			p := m.scrape(t)
			p.want(t, c.want)
			p.want(t, map[string]float64{
				`abate_active_retries{service="s"}`: 0, `abate_calls_running{service="s"}`: 0,
				`abate_attempts_running{service="s"}`: 0,
			})
		})
	}
}

func TestAReasonFromAnotherDriverIsCounted(t *testing.T) {
	m := metrics(t)
	m.observer("s").Observe(abate.Event{Kind: core.CallEnded, Reason: errDown})
	m.scrape(t).want(t, map[string]float64{
		`abate_call_refusals_total{reason="other",service="s"}`: 1, `abate_calls_total{outcome="refused",service="s"}`: 1,
	})
}

func TestActiveRetriesAreTheCallsInOne(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "s", retrying(2))
	active := func(want float64) {
		t.Helper()
		m.scrape(t).want(t, map[string]float64{`abate_active_retries{service="s"}`: want})
	}
	down := abate.Outcome{Class: abate.Failure, Err: errDown}
	var a, b, c core.Call
	for _, call := range []*core.Call{&a, &b, &c} {
		g.Begin(call, 0, core.NoDeadline)
	}
	active(0)
	a.AttemptDone(0, 0, down)
	active(1) // it sleeps
	b.AttemptDone(0, 0, down)
	a.Resume(time.Second)
	active(2) // one sleeps, one is on its second attempt
	a.AttemptDone(time.Second, 0, down)
	active(2) // the second retry of a call is the same call
	b.Cancel(time.Second, context.Canceled)
	active(1)
	a.Resume(2 * time.Second)
	a.AttemptDone(2*time.Second, 0, abate.Outcome{})
	active(0)
	c.AttemptDone(0, 0, down)
	active(1)
	c.Abort(0)
	active(0)
}

// TestCallsAndAttemptsAreRunningUntilTheyEnd: a call that waits for its retry is running, and has no attempt with the
// service.
func TestCallsAndAttemptsAreRunningUntilTheyEnd(t *testing.T) {
	m := metrics(t)
	p := retrying(1)
	p.Bulkhead, p.Hedge = bulkheadOf(1), hedge.Config{Delay: time.Millisecond}
	p.Bulkhead.MaxQueue, p.Bulkhead.NoQueue = 1, false
	g := m.guard(t, "s", p)
	running := func(calls, attempts float64) {
		t.Helper()
		m.scrape(t).want(t, map[string]float64{
			`abate_calls_running{service="s"}`: calls, `abate_attempts_running{service="s"}`: attempts,
		})
	}
	down := abate.Outcome{Class: abate.Failure, Err: errDown}
	var a, b core.Call
	var queued bulkhead.Waiter
	queued.Wake = func() {}
	g.Begin(&a, 0, core.NoDeadline)
	g.Begin(&b, 0, core.NoDeadline)
	b.Enqueue(0, &queued)
	running(2, 1)
	b.LeaveQueue(0, &queued, context.Canceled)
	running(1, 1)
	a.Hedge(time.Millisecond)
	running(1, 2)
	a.AttemptDone(time.Millisecond, 0, down)
	running(1, 1)
	a.AttemptDone(time.Millisecond, 1, down)
	running(1, 0) // it sleeps
	a.Resume(time.Second)
	a.Hedge(2 * time.Second)
	running(1, 2)
	a.AttemptDone(2*time.Second, 1, abate.Outcome{})
	running(0, 0) // the first copy was given up
	m.scrape(t).want(t, map[string]float64{`abate_retries_total{service="s"}`: 1, `abate_hedges_total{service="s"}`: 2})
}

func TestAHedgeIsNoRetry(t *testing.T) {
	m := metrics(t)
	p := retrying(1)
	p.Hedge = hedge.Config{Delay: time.Millisecond}
	p.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 1, CostPerRetry: 1}
	g := m.guard(t, "s", p)
	var c, denied core.Call
	g.Begin(&c, 0, core.NoDeadline)
	n, _, ok := c.Hedge(time.Millisecond)
	if !ok {
		t.Fatal("no hedge was sent")
	}
	m.scrape(t).want(t, map[string]float64{`abate_hedges_total{service="s"}`: 1, `abate_active_retries{service="s"}`: 0})
	c.AttemptDone(time.Millisecond, n, abate.Outcome{})
	g.Begin(&denied, 0, core.NoDeadline)
	if _, _, ok := denied.Hedge(0); ok {
		t.Fatal("the budget allowed a second hedge")
	}
	denied.AttemptDone(0, 0, abate.Outcome{})
	m.scrape(t).want(t, map[string]float64{
		`abate_hedges_total{service="s"}`: 1, `abate_retry_success_total{service="s"}`: 0,
		`abate_active_retries{service="s"}`:                                0,
		`abate_hedges_denied_total{reason="budget_exhausted",service="s"}`: 1,
		`abate_calls_total{outcome="success",service="s"}`:                 2,
		`abate_attempts_total{class="success",service="s"}`:                2,
		`abate_attempts_total{class="ignored",service="s"}`:                1, `abate_retries_total{service="s"}`: 0,
		`abate_amplification_ratio{service="s"}`: 1.5,
	})
}

func TestOtherEventsAreCounted(t *testing.T) {
	m := metrics(t)
	g := m.guard(t, "s", retrying(1))
	g.UsedFallback(errDown)
	g.CountHiddenRetries(3)
	p := retrying(3)
	m.Adjust("s", &p)
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	m.scrape(t).want(t, map[string]float64{
		`abate_fallbacks_total{service="s"}`: 1, `abate_hidden_retries_total{service="s"}`: 3,
		`abate_policy_changes_total{service="s"}`: 1,
	})
}

func TestAmplificationIsThatOfTheLastMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics(t)
		g := m.guard(t, "s", abate.Policy{Retry: abate.Retry{MaxRetries: 3, Backoff: retry.NoBackoff}})
		call := func(good bool) {
			_, _ = abate.Do(t.Context(), g, func(context.Context) (int, error) {
				if good {
					return 0, nil
				}
				return 0, errDown
			})
		}
		ratio := func(want float64) {
			t.Helper()
			m.scrape(t).want(t, map[string]float64{`abate_amplification_ratio{service="s"}`: want})
		}
		ratio(1) // nothing was sent
		call(true)
		ratio(1)
		call(false)
		ratio(2.5) // 1 and 4 attempts
		g.CountHiddenRetries(3)
		ratio(4)
		time.Sleep(58 * time.Second)
		ratio(4)
		call(true)
		ratio(3) // 9 attempts for 3 calls
		time.Sleep(3 * time.Second)
		ratio(1) // only the last one is left
		call(false)
		ratio(2.5)
		time.Sleep(time.Hour)
		ratio(1)
		call(false)
		ratio(4) // the slot of an hour ago began anew
		time.Sleep(59 * time.Second)
		ratio(4)
		time.Sleep(time.Second)
		ratio(1) // its second has come again, and nothing was sent in it
	})
}

// TestAmplificationWithoutFirstAttempts: a retry whose first attempt is out of the window must not divide by 0.
func TestAmplificationWithoutFirstAttempts(t *testing.T) {
	m := metrics(t)
	o := m.observer("s")
	for _, at := range []time.Duration{-time.Second, 0, time.Second / 2} {
		o.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: 2, At: at})
	}
	m.scrape(t).want(t, map[string]float64{`abate_amplification_ratio{service="s"}`: 3})
}

// TestAFullSecondIsCut: what does not fit into a slot must not run over into the calls, or the next minute.
func TestAFullSecondIsCut(t *testing.T) {
	m := metrics(t)
	o := m.observer("s")
	o.Observe(abate.Event{Kind: core.AttemptBegan, Attempt: 1})
	for range 1 << 22 {
		o.Observe(abate.Event{Kind: core.HiddenRetry})
	}
	m.scrape(t).want(t, map[string]float64{`abate_amplification_ratio{service="s"}`: 1<<22 - 1})
}
