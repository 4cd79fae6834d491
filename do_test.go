package abate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
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

// guard makes a guard for a test of one thing: budget and circuit breaker are off, where the policy does not say
// otherwise.
func guard(t testing.TB, p abate.Policy) *abate.Guard {
	t.Helper()
	g, err := abate.New("payment-service", alone(p))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// alone declines in words what a policy that retries or hedges gets if it says nothing.
func alone(p abate.Policy) abate.Policy {
	if p.Budget == nil && p.RetryBudget == (budget.Config{}) {
		p.RetryBudget.Disabled = true
	}
	if p.CircuitBreaker == (breaker.Config{}) {
		p.CircuitBreaker.Disabled = true
	}
	return p
}

// fullPolicy has every part that a plain Do uses.
func fullPolicy() abate.Policy {
	p := abate.DefaultPolicy()
	p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 100}
	return p
}

func TestSuccessAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	for _, row := range []struct {
		name   string
		policy abate.Policy
		want   float64
	}{
		{"pass-through", abate.Policy{}, 0},
		{"full policy", fullPolicy(), 0},
		{"with timeouts: the context", func() abate.Policy {
			p := fullPolicy()
			p.Timeout, p.AttemptTimeout = time.Second, 500*ms
			return p
		}(), 1},
	} {
		g := guard(t, row.policy)
		order := t.Name() // captured: the closure must stay on the stack
		got := testing.AllocsPerRun(200, func() {
			n, err := abate.Do(ctx, g, func(context.Context) (int, error) { return len(order), nil })
			if n == 0 || err != nil {
				t.Error(n, err)
			}
		})
		if got != row.want {
			t.Errorf("%s: %v allocations, want %v", row.name, got, row.want)
		}
	}
}

func TestRetryingAtOnceAllocatesNothing(t *testing.T) {
	g := guard(t, abate.Policy{Retry: retry.Config{MaxRetries: 3, Backoff: retry.NoBackoff}})
	got := testing.AllocsPerRun(200, func() {
		n := 0
		abate.Do(context.Background(), g, func(context.Context) (int, error) {
			if n++; n < 3 {
				return 0, errDown
			}
			return n, nil
		})
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

func TestRefusalByAnOpenBreakerAllocatesNothing(t *testing.T) {
	g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}})
	got := testing.AllocsPerRun(200, func() {
		_, err := abate.Do(context.Background(), g, func(context.Context) (int, error) { return 0, nil })
		if !errors.Is(err, abate.ErrCircuitOpen) {
			t.Error(err)
		}
	})
	if got > 1 { // errors.Is asks Unwrap for a slice
		t.Errorf("%v allocations", got)
	}
}

func TestErrorNamesGuardReasonAndCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{Retry: fixed(100*ms, 2)})
		_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, io.ErrUnexpectedEOF })
		if !errors.Is(err, abate.ErrAttemptsExhausted) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("reason or cause lost: %v", err)
		}
		want := "payment-service: attempts exhausted after 3 attempts in 200ms: unexpected EOF"
		if err.Error() != want {
			t.Errorf("got  %q\nwant %q", err, want)
		}
		var e *abate.Error
		if !errors.As(err, &e) || e.Attempts != 3 || e.Elapsed != 200*ms || e.Guard != "payment-service" {
			t.Errorf("%+v", e)
		}
	})
}

func TestDeadlineReasonIsAlsoContextDeadlineExceeded(t *testing.T) {
	g := guard(t, abate.Policy{Retry: fixed(5*time.Second, 2), Timeout: time.Second})
	_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, errDown })
	if !errors.Is(err, abate.ErrDeadline) || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errDown) {
		t.Error(err)
	}
	if want := "deadline leaves no time for another attempt, after 1 attempt in "; !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want it to say %q", err, want)
	}
	var timeout net.Error
	if wrapped := error(&url.Error{Err: err}); !errors.As(wrapped, &timeout) || !timeout.Timeout() {
		t.Error("no timeout for net.Error users")
	}
}

func TestMarkedErrorsComeBackUnmarked(t *testing.T) {
	g := guard(t, abate.DefaultPolicy())
	for name, marked := range map[string]error{"permanent": abate.Permanent(errFinal), "ignore": abate.Ignore(errFinal)} {
		_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, marked })
		if err != errFinal {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if abate.Permanent(nil) != nil || abate.Ignore(nil) != nil || abate.RetryAfter(nil, 1) != nil {
		t.Error("a mark on no error is an error")
	}
}

func TestAMarkInsideAWrappedErrorCounts(t *testing.T) {
	g := guard(t, abate.DefaultPolicy())
	n := 0
	wrapped := errors.Join(errDown, abate.Permanent(errFinal))
	_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) { n++; return 0, wrapped })
	if n != 1 || err != wrapped {
		t.Errorf("%d attempts, %v", n, err)
	}
}

func TestIgnoredErrorsDoNotOpenTheBreaker(t *testing.T) {
	g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}})
	for range 5 {
		abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, abate.Ignore(errFinal) })
	}
	if st := g.State().Breaker.State; st != breaker.Closed {
		t.Error(st)
	}
	abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, abate.Permanent(errFinal) })
	if st := g.State().Breaker.State; st != breaker.Open {
		t.Error("a permanent failure is still a failure:", st)
	}
}

func TestARefusalForLoadIsAFailureToTheBreaker(t *testing.T) {
	g := guard(t, abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}})
	_, err := abate.Do(t.Context(), g, func(context.Context) (int, error) {
		return 0, abate.RetryAfter(errBusy, time.Second)
	})
	if st := g.State().Breaker.State; st != breaker.Open || err != errBusy {
		t.Error(st, err)
	}
}

func TestClassifierJudgesErrors(t *testing.T) {
	p := abate.DefaultPolicy()
	p.Classify = func(err error) abate.Outcome { return abate.Outcome{Class: abate.Failure, NoRetry: true} }
	n := 0
	_, err := abate.Do(t.Context(), guard(t, p), func(context.Context) (int, error) { n++; return 0, errDown })
	if n != 1 || err != errDown {
		t.Errorf("%d attempts, %v", n, err)
	}
}

func TestRetryOnAndNeverRetryOnChooseErrors(t *testing.T) {
	for _, row := range []struct {
		on, never []string
		err       error
		attempts  int
	}{
		{nil, nil, errDown, 3},
		{[]string{"timeout"}, nil, errDown, 1},
		{[]string{"timeout"}, nil, context.DeadlineExceeded, 3},
		{nil, []string{"timeout"}, context.DeadlineExceeded, 1},
		{[]string{"timeout"}, nil, &net.DNSError{IsTimeout: true}, 3},
		{[]string{"reset"}, nil, fmt.Errorf("reading: %w", io.EOF), 3},
		{[]string{"reset"}, nil, fmt.Errorf("writing: %w", syscall.EPIPE), 3},
		{[]string{"reset"}, nil, errDown, 1},
		{[]string{"connect-failure"}, nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, 3},
		{[]string{"connect-failure"}, nil, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, 1},
		{[]string{"error"}, []string{"timeout"}, errDown, 3},
		{[]string{"5xx"}, nil, statusError(503), 3},
		{[]string{"5xx"}, nil, statusError(404), 1},
		{[]string{"5xx"}, []string{"501"}, statusError(501), 1},
	} {
		p := abate.Policy{
			Retry: retry.Config{MaxRetries: 2, Backoff: retry.NoBackoff}, RetryOn: row.on, NeverRetryOn: row.never,
		}
		n := 0
		abate.Do(t.Context(), guard(t, p), func(context.Context) (int, error) { n++; return 0, row.err })
		if n != row.attempts {
			t.Errorf("retryOn %v neverRetryOn %v on %v: %d attempts, want %d", row.on, row.never, row.err, n, row.attempts)
		}
	}
}

type statusError int

func (s statusError) Error() string   { return "status" }
func (s statusError) StatusCode() int { return int(s) }

func TestNestedGuardsDoNotMultiplyAttempts(t *testing.T) {
	p := abate.Policy{Retry: retry.Config{MaxRetries: 2, Backoff: retry.NoBackoff}}
	outer, middle, inner := guard(t, p), guard(t, p), guard(t, p)
	n := 0
	_, err := abate.Do(t.Context(), outer, func(ctx context.Context) (int, error) {
		return abate.Do(ctx, middle, func(ctx context.Context) (int, error) {
			return abate.Do(ctx, inner, func(context.Context) (int, error) { n++; return 0, errDown })
		})
	})
	if n != 3 || !errors.Is(err, errDown) {
		t.Errorf("%d attempts reached the failing service, want 3; %v", n, err)
	}
}

func TestARefusalInsideIsNoFailureOutside(t *testing.T) {
	inner := guard(t, abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}})
	outer := guard(t, abate.Policy{
		Retry: retry.Config{MaxRetries: 2, Backoff: retry.NoBackoff}, CircuitBreaker: breaker.Config{FailureThreshold: 1},
	})
	n := 0
	_, err := abate.Do(t.Context(), outer, func(ctx context.Context) (int, error) {
		n++
		return abate.Do(ctx, inner, func(context.Context) (int, error) { return 0, nil })
	})
	if n != 1 || !errors.Is(err, abate.ErrCircuitOpen) {
		t.Errorf("%d attempts, %v", n, err)
	}
	if st := outer.State().Breaker.State; st != breaker.Closed {
		t.Error("outer breaker is", st)
	}
}

func TestPanicGivesPermitsBackAndGoesOn(t *testing.T) {
	for name, do := range map[string]func(context.Context, *abate.Guard, func(context.Context) (int, error)) (int, error){
		"Do": abate.Do[int], "DoHedged": abate.DoHedged[int],
	} {
		p := abate.Policy{
			Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1}, CircuitBreaker: breaker.Config{FailureThreshold: 1},
			AttemptTimeout: time.Minute, Hedge: hedge.Config{Delay: time.Minute},
		}
		g := guard(t, p)
		var attempt context.Context
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("%s: recovered %v", name, r)
				}
			}()
			do(t.Context(), g, func(ctx context.Context) (int, error) { attempt = ctx; panic("boom") })
		}()
		if attempt.Err() == nil {
			t.Errorf("%s: the attempt's context is still alive", name)
		}
		if st := g.State(); st.Bulkhead.InFlight != 0 || st.Breaker.State != breaker.Closed {
			t.Errorf("%s: %+v", name, st)
		}
		if _, err := do(t.Context(), g, func(context.Context) (int, error) { return 1, nil }); err != nil {
			t.Errorf("%s: the next call: %v", name, err)
		}
	}
}

func TestACallWhoseCallerLeftBeforehandIsNotSent(t *testing.T) {
	g := guard(t, fullPolicy())
	before := g.State().Budget
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := abate.Do(ctx, g, func(context.Context) (int, error) { t.Error("called"); return 0, nil })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if after := g.State().Budget; after != before {
		t.Errorf("budget went from %v to %v", before, after)
	}
}

func TestFallbackAnswersWhenTheCallFails(t *testing.T) {
	g := guard(t, abate.Policy{})
	var told error
	v, err := abate.DoWithFallback(t.Context(), g,
		func(context.Context) (string, error) { return "", errDown },
		func(_ context.Context, err error) (string, error) { told = err; return "degraded", nil })
	if v != "degraded" || err != nil || told != errDown {
		t.Error(v, err, told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = abate.DoWithFallback(ctx, g,
		func(context.Context) (string, error) { cancel(); return "", errDown },
		func(context.Context, error) (string, error) { t.Error("fallback for nobody"); return "", nil })
	if err == nil {
		t.Error("no error")
	}
}

func TestAttemptContextEndsWithAFailedAttempt(t *testing.T) {
	g := guard(t, abate.Policy{AttemptTimeout: time.Minute})
	var kept, child context.Context
	abate.Do(t.Context(), g, func(ctx context.Context) (int, error) {
		kept = ctx
		var cancel context.CancelFunc
		child, cancel = context.WithCancel(ctx)
		_ = cancel
		if ctx.Err() != nil {
			t.Error("ended early")
		}
		return 0, errDown
	})
	<-child.Done()
	if kept.Err() != context.Canceled || child.Err() != context.Canceled {
		t.Error(kept.Err(), child.Err())
	}
	<-kept.Done()
}

func TestAttemptContextBehavesLikeAContext(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{AttemptTimeout: time.Second})
		parent := context.WithValue(t.Context(), key{}, "v")
		abate.Do(parent, g, func(ctx context.Context) (int, error) {
			if d, ok := ctx.Deadline(); !ok || time.Until(d) != time.Second {
				t.Error("deadline", time.Until(d), ok)
			}
			if ctx.Value(key{}) != "v" || ctx.Err() != nil {
				t.Error(ctx.Value(key{}), ctx.Err())
			}
			<-time.After(time.Second)
			if ctx.Err() != context.DeadlineExceeded { // by the clock: nobody has asked for Done
				t.Error(ctx.Err())
			}
			<-ctx.Done()
			if ctx.Err() != context.DeadlineExceeded || ctx.Value(key{}) != "v" {
				t.Error(ctx.Err())
			}
			return 0, nil
		})
	})
}

func TestTimeLimitIsTheAttemptsShareOfTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := abate.Policy{Timeout: 1500 * ms, AttemptTimeout: time.Second, Retry: fixed(100*ms, 1)}
		var limits []time.Duration
		abate.Do(t.Context(), guard(t, p), func(ctx context.Context) (int, error) {
			limit, ok := core.TimeLimit(ctx)
			if !ok {
				t.Error("no limit")
			}
			limits = append(limits, limit)
			<-time.After(900 * ms)
			return 0, errDown
		})
		if got := fmt.Sprint(limits); got != "[1s 500ms]" {
			t.Error(got)
		}
		if _, ok := core.TimeLimit(t.Context()); ok {
			t.Error("a limit for a context that is no attempt's")
		}
	})
}

func TestAChildOfTheAttemptContextStartsNoGoroutine(t *testing.T) {
	g := guard(t, abate.Policy{AttemptTimeout: time.Minute})
	abate.Do(t.Context(), g, func(ctx context.Context) (int, error) {
		before := runtime.NumGoroutine()
		for range 100 {
			_, cancel := context.WithCancel(ctx)
			defer cancel()
		}
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines for 100 children", after-before)
		}
		return 0, nil
	})
}

func TestUpdateKeepsStateAndLetsRunningCallsFinish(t *testing.T) {
	p := abate.Policy{
		Retry:       retry.Config{MaxRetries: 5, Backoff: retry.NoBackoff},
		RetryBudget: budget.Config{Kind: budget.Ratio, Ratio: 0.1, Reserve: 2},
		CircuitBreaker: breaker.Config{
			FailureThreshold: 1, WaitDurationInOpenState: time.Hour, MaxWaitDurationInOpenState: time.Hour,
		},
	}
	noBreaker := p
	noBreaker.CircuitBreaker = breaker.Config{}
	g := guard(t, noBreaker)
	abate.Do(t.Context(), g, func(context.Context) (int, error) {
		if err := g.Update(noBreaker); err != nil {
			t.Error(err)
		}
		return 0, errDown
	})
	if b := g.State().Budget; b >= 1 {
		t.Errorf("budget %v after an outage and a reload", b)
	}
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, errDown })
	p.MaxRetries = 1
	if err := g.Update(p); err != nil {
		t.Fatal(err)
	}
	if st := g.State().Breaker.State; st != breaker.Open {
		t.Error("a reload closed the breaker:", st)
	}
}

func TestSwitchingTheBudgetOffAndOnDoesNotRefillIt(t *testing.T) {
	on := abate.Policy{
		Retry: retry.Config{MaxRetries: 9, Backoff: retry.NoBackoff}, RetryBudget: budget.Config{Ratio: 0.1, Reserve: 2},
	}
	off := on
	off.RetryBudget.Disabled = true
	g := guard(t, on)
	abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, errDown })
	for _, p := range []abate.Policy{off, on} {
		if err := g.Update(p); err != nil {
			t.Fatal(err)
		}
	}
	if b := g.State().Budget; b >= 1 {
		t.Errorf("budget is %v", b)
	}
}

func TestAnInvalidUpdateChangesNothing(t *testing.T) {
	g := guard(t, abate.Policy{Retry: retry.Config{MaxRetries: 2}})
	err := g.Update(abate.Policy{
		Retry: retry.Config{MaxRetries: -1, Multiplier: 0.5, JitterFactor: 7}, RetryOn: []string{"flood"},
	})
	for _, part := range []string{"maxRetries: -1", "multiplier: 0.5", "jitterFactor: 7", `retryOn[0]: "flood"`} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in %v", part, err)
		}
	}
	if n := g.Describe().MaxRetries; n != 2 {
		t.Errorf("maxRetries is now %d", n)
	}
}

func TestDescribeWritesEveryDefaultOut(t *testing.T) {
	d := guard(t, abate.DefaultPolicy()).Describe()
	if d.InitialDelay != 100*ms || d.MaxDelay != 10*time.Second || d.Multiplier != 2 || d.Jitter != retry.FullJitter ||
		d.MaxRetries != 3 {
		t.Errorf("%+v", d.Retry)
	}
	if d.RetryBudget.Ratio != 0.1 || d.RetryBudget.Window != 10*time.Second || d.RetryBudget.Reserve != 10 {
		t.Errorf("%+v", d.RetryBudget)
	}
	if d.CircuitBreaker.Kind != breaker.Adaptive || d.CircuitBreaker.Mode != breaker.Enforce {
		t.Errorf("%+v", d.CircuitBreaker)
	}
	numbers := abate.DefaultPolicy()
	numbers.CircuitBreaker.FailureThreshold = 5
	if d := guard(t, numbers).Describe().CircuitBreaker; d.Kind != breaker.Thresholds || d.MinimumNumberOfCalls != 20 ||
		d.SlidingWindow.Duration != 10*time.Second || d.FailureRateThreshold != 0.5 || d.RampUp != 2*time.Second {
		t.Errorf("a number beside the default kind: %+v", d)
	}
	if d := guard(t, abate.Policy{Fallback: core.Fallback{Status: 200}}).Describe(); d.Fallback.ContentType !=
		"application/json" {
		t.Error(d.Fallback)
	}
	lease := abate.Policy{AttemptTimeout: 3 * time.Second, CircuitBreaker: breaker.Config{FailureThreshold: 1}}
	if d := guard(t, lease).Describe(); d.CircuitBreaker.HalfOpenPermitLease != 3*time.Second {
		t.Error("a probe's lease is the attempt timeout, got", d.CircuitBreaker.HalfOpenPermitLease)
	}
}

func TestAGuardNeedsAName(t *testing.T) {
	if _, err := abate.New("", abate.Policy{}); err == nil {
		t.Error("no error")
	}
}

func TestAThousandCallersThroughASmallBulkhead(t *testing.T) {
	g := guard(t, abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 3, MaxQueue: 1000, MaxWait: time.Minute}})
	var running, most atomic.Int64
	done := make(chan error)
	for range 1000 {
		go func() {
			_, err := abate.Do(context.Background(), g, func(context.Context) (int, error) {
				n := running.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				runtime.Gosched()
				running.Add(-1)
				return 0, nil
			})
			done <- err
		}()
	}
	for range 1000 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if most.Load() > 3 {
		t.Errorf("%d at once", most.Load())
	}
	if st := g.State().Bulkhead; st.InFlight != 0 || st.Queued != 0 {
		t.Errorf("%+v", st)
	}
}
