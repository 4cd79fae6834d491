package abate_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/pacing"
)

func admit(t *testing.T, ctx context.Context, g *abate.Guard) *core.Admission {
	t.Helper()
	a, err := core.AdmitOne(ctx, g)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// What one attempt comes to, and whether the circuit breaker, which opens at the first failure, counts it.
func TestDoneJudgesAsDoDoes(t *testing.T) {
	for _, row := range []struct {
		name    string
		err     error
		want    error
		leaves  bool
		failure bool
		policy  func(*abate.Policy)
	}{
		{name: "success"},
		{name: "success of a caller that has left", leaves: true},
		{name: "an error", err: errDown, want: errDown, failure: true},
		{name: "an error that is final", err: abate.Permanent(errFinal), want: errFinal, failure: true},
		{name: "a refusal for load", err: abate.RetryAfter(errBusy, time.Second), want: errBusy, failure: true},
		{name: "an answer", err: abate.Ignore(errFinal), want: errFinal},
		{name: "a caller that has left", err: errDown, want: errDown, leaves: true},
		{name: "a mark of a caller that has left", err: abate.Permanent(errDown), want: errDown, leaves: true},
		{name: "by the classifier", err: errFinal, want: errFinal, policy: func(p *abate.Policy) {
			p.Classify = func(error) abate.Outcome { return abate.Outcome{Class: abate.Ignored} }
		}},
		{name: "an attempt that took too long", err: context.DeadlineExceeded, want: context.DeadlineExceeded, failure: true},
	} {
		var ends []abate.Event
		p := abate.Policy{Retry: fixed(ms, 3), CircuitBreaker: breaker.Config{FailureThreshold: 1},
			Observer: abate.ObserverFunc(func(e abate.Event) {
				if e.Kind == core.CallEnded || e.Kind == core.RetryScheduled {
					ends = append(ends, e)
				}
			})}
		if row.policy != nil {
			row.policy(&p)
		}
		g := guard(t, p)
		ctx, leave := context.WithCancel(context.Background())
		a := admit(t, ctx, g)
		if row.leaves {
			leave()
		}
		if err := a.Done(row.err); err != row.want {
			t.Errorf("%s: Done returns %v, want %v", row.name, err, row.want)
		}
		if open := g.State().Breaker.State == breaker.Open; open != row.failure {
			t.Errorf("%s: counted as a failure: %v", row.name, open)
		}
		if len(ends) != 1 || ends[0].Kind != core.CallEnded || ends[0].Attempt != 1 {
			t.Errorf("%s: %+v, want one end after one attempt and no retry", row.name, ends)
		}
		leave()
	}
}

func TestNoRetryFollowsAnAdmission(t *testing.T) {
	var retries int
	g := guard(t, abate.Policy{Retry: fixed(ms, 3), Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1},
		Observer: abate.ObserverFunc(func(e abate.Event) {
			if e.Kind == core.RetryScheduled {
				retries++
			}
		})})
	for range 3 {
		if err := admit(t, t.Context(), g).Done(errDown); err != errDown {
			t.Errorf("%v", err)
		}
	}
	if n := g.State().Bulkhead.InFlight; retries != 0 || n != 0 {
		t.Errorf("%d retries, and %d permits are out", retries, n)
	}
}

func TestOnlyTheFirstDoneCounts(t *testing.T) {
	g := guard(t, abate.Policy{
		CircuitBreaker: breaker.Config{FailureThreshold: 1}, Bulkhead: bulkhead.Config{MaxConcurrentCalls: 2},
	})
	a, other := admit(t, t.Context(), g), admit(t, t.Context(), g)
	_ = a.Done(nil)
	if err := a.Done(abate.Permanent(errDown)); err != errDown {
		t.Errorf("the second Done returns %v, want the error without its mark", err)
	}
	if s := g.State(); s.Breaker.State != breaker.Closed || s.Bulkhead.InFlight != 1 {
		t.Errorf("%+v", s)
	}
	_ = other.Done(nil)
	if n := g.State().Bulkhead.InFlight; n != 0 {
		t.Errorf("%d permits are out", n)
	}
}

func TestDoneMayComeFromSeveralGoroutinesAtOnce(t *testing.T) {
	g := guard(t, abate.Policy{
		CircuitBreaker: breaker.Config{FailureThreshold: 1000}, Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1},
	})
	for range 100 {
		a := admit(t, t.Context(), g)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { _ = a.Done(errDown) })
		}
		all.Wait()
		if n := g.State().Bulkhead.InFlight; n != 0 {
			t.Fatalf("%d permits are out", n)
		}
	}
}

func TestAProbeWithoutDoneIsReplacedAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := guard(t, abate.Policy{AttemptTimeout: time.Second, CircuitBreaker: breaker.Config{
			FailureThreshold: 1, WaitDurationInOpenState: 100 * ms, PermittedCallsInHalfOpen: 1, SuccessThreshold: 1}})
		_ = admit(t, t.Context(), g).Done(errDown)
		<-time.After(200 * ms)
		lost := admit(t, t.Context(), g)
		if _, err := core.AdmitOne(t.Context(), g); !errors.Is(err, abate.ErrCircuitOpen) {
			t.Errorf("a second probe: %v", err)
		}
		<-time.After(time.Second)
		_ = admit(t, t.Context(), g).Done(nil)
		if got := g.State().Breaker.State; got != breaker.Closed {
			t.Errorf("the circuit is %v", got)
		}
		_ = lost.Done(errDown)
	})
}

func TestAdmitOneWaitsForTheBulkheadAndForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := paced(pacing.Config{})
		p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 1, MaxWait: time.Second}
		g, begin := guard(t, p), time.Now()
		var mu sync.Mutex
		var at []time.Duration
		var all sync.WaitGroup
		for n := range 4 {
			<-time.After(ms)
			all.Go(func() {
				a, err := core.AdmitOne(t.Context(), g)
				switch {
				case n == 3: // two are in, one waits
					if !errors.Is(err, abate.ErrBulkheadFull) {
						t.Errorf("the last one: %v", err)
					}
					return
				case err != nil:
					t.Errorf("%d: %v", n, err)
					return
				}
				mu.Lock()
				at = append(at, time.Since(begin))
				mu.Unlock()
				<-time.After(20 * ms)
				_ = a.Done(nil)
			})
		}
		all.Wait()
		if want := []time.Duration{1 * ms, 101 * ms, 201 * ms}; !slices.Equal(at, want) {
			t.Errorf("admitted at %v, want %v", at, want)
		}
	})
}

func TestAdmitOneReturnsWhenItsCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := paced(pacing.Config{MaxWait: time.Minute})
		p.Pacing.PerSecond, p.Bulkhead = 0.1, bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 5}
		g := guard(t, p)
		_ = admit(t, t.Context(), g).Done(nil)
		for _, waits := range []string{"for its turn", "for the bulkhead"} {
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(10*ms, leave)
			held := []*core.Admission{}
			if waits == "for the bulkhead" {
				q := p
				q.Pacing.Disabled = true
				if err := g.Update(q); err != nil {
					t.Fatal(err)
				}
				held = append(held, admit(t, t.Context(), g), admit(t, t.Context(), g))
			}
			a, err := core.AdmitOne(ctx, g)
			if a != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, %v", waits, a, err)
			}
			for _, h := range held {
				_ = h.Done(nil)
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if a, err := core.AdmitOne(ctx, g); a != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("who has left before: %v, %v", a, err)
		}
		if s := g.State().Bulkhead; s.InFlight != 0 || s.Queued != 0 {
			t.Errorf("permits lost: %+v", s)
		}
	})
}

func TestTheContextOfAnAdmissionHasTheDeadlineAndEndsWithDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, 7)
		a := admit(t, ctx, guard(t, abate.Policy{AttemptTimeout: time.Second}))
		if d, ok := a.Context().Deadline(); !ok || time.Until(d) != time.Second || a.Context().Value(key{}) != 7 {
			t.Errorf("deadline in %v, %v", time.Until(d), ok)
		}
		done := a.Context().Done()
		_ = a.Done(nil)
		<-done
		if err := a.Context().Err(); err != context.Canceled {
			t.Errorf("after Done: %v", err)
		}
		b := admit(t, ctx, guard(t, abate.Policy{AttemptTimeout: time.Second}))
		<-b.Context().Done()
		if err := b.Done(b.Context().Err()); err != context.DeadlineExceeded {
			t.Errorf("%v", err)
		}
		if plain := admit(t, ctx, guard(t, abate.Policy{})); plain.Context() != ctx {
			t.Error("without a time limit the context is not the caller's own")
		}
	})
}

func TestAdmitOneAllocatesOnce(t *testing.T) {
	p := abate.DefaultPolicy()
	p.Timeout, p.AttemptTimeout = time.Minute, time.Second
	g := guard(t, p)
	if n := testing.AllocsPerRun(200, func() {
		a, err := core.AdmitOne(context.Background(), g)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Done(nil)
	}); n != 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
