package abate_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// operation is a scripted core.Operation whose values are attempt numbers.
type operation struct {
	attempt   func(ctx context.Context, n int) (int, error)
	mu        sync.Mutex
	discarded []int
}

func (o *operation) Attempt(ctx context.Context, s core.Sending) (int, error) {
	return o.attempt(ctx, s.Number)
}
func (o *operation) MayHedge() bool { return true }
func (o *operation) Discard(v int) {
	o.mu.Lock()
	o.discarded = append(o.discarded, v)
	o.mu.Unlock()
}
func (o *operation) Classify(v int, err error) abate.Outcome {
	if err == nil && v < 0 { // a failure that is a value
		err = fmt.Errorf("value %d", v)
	}
	if err == nil {
		return abate.Outcome{}
	}
	return abate.Outcome{Class: abate.Failure, Err: err}
}

func hedged(delay time.Duration, copies int) abate.Policy {
	return abate.Policy{Hedge: hedge.Config{Delay: delay, MaxHedges: copies}}
}

func TestTheLoserIsCancelledAndDiscarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &operation{attempt: func(ctx context.Context, n int) (int, error) {
			if n == 2 {
				return 2, nil
			}
			<-ctx.Done()
			return n, nil // it had an answer after all: nobody will see it
		}}
		v, release, err := core.Run[int](t.Context(), guard(t, hedged(10*ms, 1)), op)
		defer release.Done()
		if v != 2 || err != nil {
			t.Error(v, err)
		}
		if got := fmt.Sprint(op.discarded); got != "[1]" {
			t.Error("discarded", got)
		}
	})
}

func TestALateHedgeIsDiscardedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &operation{}
		op.attempt = func(ctx context.Context, n int) (int, error) {
			if n == 1 {
				<-time.After(20 * ms)
				return 1, nil
			}
			<-ctx.Done()
			<-time.After(time.Second) // slow to notice
			return n, nil
		}
		v, release, err := core.Run[int](t.Context(), guard(t, hedged(10*ms, 1)), op)
		release.Done()
		if v != 1 || err != nil {
			t.Error(v, err)
		}
		<-time.After(2 * time.Second)
		op.mu.Lock()
		defer op.mu.Unlock()
		if got := fmt.Sprint(op.discarded); got != "[2]" {
			t.Error("discarded", got)
		}
	})
}

func TestTheWinnersContextLivesUntilItsRelease(t *testing.T) {
	for _, p := range []abate.Policy{hedged(time.Hour, 1), {AttemptTimeout: time.Hour}} {
		var ctx context.Context
		op := &operation{attempt: func(c context.Context, n int) (int, error) { ctx = c; return n, nil }}
		_, release, err := core.Run[int](t.Context(), guard(t, p), op)
		if err != nil || ctx.Err() != nil || !release.Needed() {
			t.Error(err, ctx.Err(), release.Needed())
		}
		release.Done()
		release.Done()
		if ctx.Err() == nil {
			t.Error("still alive")
		}
	}
}

func TestRunDiscardsEveryValueButTheLast(t *testing.T) {
	p := abate.Policy{Retry: retry.Config{MaxRetries: 2, Backoff: retry.NoBackoff}}
	op := &operation{attempt: func(_ context.Context, n int) (int, error) { return -n, nil }}
	v, release, err := core.Run[int](t.Context(), guard(t, p), op)
	release.Done()
	if v != -3 || err == nil {
		t.Error(v, err)
	}
	if got := fmt.Sprint(op.discarded); got != "[-1 -2]" {
		t.Error("discarded", got)
	}
}

func TestAHedgesPanicReachesTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if r := recover(); r != "boom" {
				t.Error("recovered", r)
			}
		}()
		abate.DoHedged(t.Context(), guard(t, hedged(10*ms, 1)), func(ctx context.Context) (int, error) {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(15 * ms):
				panic("boom")
			}
		})
		t.Error("no panic")
	})
}

func TestAHedgeThatEndsItsGoroutineDoesNotHangTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		var n atomic.Int32
		abate.DoHedged(t.Context(), guard(t, hedged(10*ms, 1)), func(ctx context.Context) (int, error) {
			if n.Add(1) == 2 {
				runtime.Goexit()
			}
			<-ctx.Done()
			return 0, ctx.Err()
		})
	})
}

func TestWithoutAHedgeSectionDoHedgedIsDo(t *testing.T) {
	n := 0
	v, err := abate.DoHedged(t.Context(), guard(t, abate.Policy{
		Retry: retry.Config{MaxRetries: 1, Backoff: retry.NoBackoff},
	}), func(context.Context) (int, error) {
		if n++; n == 1 {
			return 0, errDown
		}
		return n, nil
	})
	if v != 2 || err != nil {
		t.Error(v, err)
	}
}

func TestPlainDoIsNeverHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		running := 0 // unsynchronised on purpose: the race detector watches
		v, err := abate.Do(t.Context(), guard(t, hedged(ms, 3)), func(context.Context) (int, error) {
			running++
			<-time.After(time.Second)
			return running, nil
		})
		if v != 1 || err != nil {
			t.Error(v, err)
		}
	})
}

func TestHedgesStayWithinTheBudgetWhenEverythingIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := hedged(10*ms, 1)
		p.RetryBudget = budget.Config{Kind: budget.Ratio, Ratio: 0.1, Reserve: 10}
		g := guard(t, p)
		var sent atomic.Int64
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				abate.DoHedged(t.Context(), g, func(ctx context.Context) (int, error) {
					sent.Add(1)
					select {
					case <-time.After(100 * ms):
						return 0, nil
					case <-ctx.Done():
						return 0, ctx.Err()
					}
				})
			})
		}
		wg.Wait()
		if n := sent.Load(); n > 1000+100+10 || n < 1050 {
			t.Errorf("%d attempts for 1000 calls", n)
		}
	})
}

func TestHedgesLeaveNoGoroutines(t *testing.T) {
	g := guard(t, hedged(ms, 3))
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 20 {
				abate.DoHedged(context.Background(), g, func(ctx context.Context) (int, error) {
					select {
					case <-time.After(3 * ms):
					case <-ctx.Done():
					}
					return 0, nil
				})
			}
		})
	}
	wg.Wait()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines left", after-before)
	}
}
