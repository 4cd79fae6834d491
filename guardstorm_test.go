package abate_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// Many more keys than places, all failing in every way that there is, while the policy changes: nobody gets a budget of
// his own again by being forgotten, and every permit comes back.
func TestAStormOfKeysKeepsItsDebtsAndItsPermits(t *testing.T) {
	const places, workers, reserve, ratio, reserveOfAll = 64, 16, 5, 0.1, 2000
	keys := 10_000
	if testing.Short() {
		keys = 3000
	}
	shared := budget.New(budget.Config{Ratio: ratio, Reserve: reserveOfAll, Window: time.Hour})
	policy := func(n int) abate.Policy {
		p := abate.Policy{
			Retry:        abate.Retry{MaxRetries: 3, Backoff: retry.NoBackoff},
			RetryBudget:  budget.Config{Ratio: ratio, Reserve: reserve, Window: time.Hour},
			Bulkhead:     bulkhead.Config{MaxConcurrentCalls: 1 + n%3, MaxQueue: n % 2},
			SharedBudget: shared,
		}
		p.CircuitBreaker = breaker.Config{Disabled: n%2 == 0, FailureThreshold: 1_000_000}
		if n%5 == 0 {
			p.Hedge = hedge.Config{Delay: time.Millisecond}
		}
		return p
	}
	guards, err := abate.NewGuards[int]("orders", policy(0), places)
	if err != nil {
		t.Fatal(err)
	}
	var first, extra atomic.Int64
	var next atomic.Int64
	down := errors.New("down")
	one := func(key int) {
		began := false
		var mu sync.Mutex
		_, _ = abate.DoHedgedWithFallback(t.Context(), guards.For(key), func(ctx context.Context) (int, error) {
			mu.Lock()
			again := began
			began = true
			mu.Unlock()
			if again {
				extra.Add(1)
			} else {
				first.Add(1)
			}
			switch key % 14 {
			case 0:
				panic("boom")
			case 1:
				runtime.Goexit()
			case 2:
				return 0, abate.ErrPending
			case 3, 4:
				return 0, down
			}
			return 0, nil // most are well, so that they are forgotten and others come
		}, func(context.Context, error) (int, error) {
			if key%11 == 0 {
				panic("in the fallback")
			}
			return 0, nil
		})
	}
	var wg, reloads sync.WaitGroup
	stop := make(chan struct{})
	reloads.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
				if err := guards.Update(policy(n)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range workers {
		wg.Go(func() {
			for n := int(next.Add(1)); n <= 2*keys; n = int(next.Add(1)) {
				ended := make(chan struct{})
				go func() { // which one may end, by Goexit
					defer close(ended)
					defer func() { _ = recover() }()
					one(n % keys)
				}()
				<-ended
			}
		})
	}
	wg.Wait()
	close(stop)
	reloads.Wait()
	if most := ratio*float64(first.Load()) + (places+1)*reserve; float64(extra.Load()) > most {
		t.Errorf("%d extra attempts of %d calls, at most %.0f", extra.Load(), first.Load(), most)
	}
	if most := ratio*float64(first.Load()) + reserveOfAll; float64(extra.Load()) > most {
		t.Errorf("%d extra attempts of %d calls, at most %.0f of the budget for all", extra.Load(), first.Load(), most)
	}
	t.Logf("%d extra attempts of %d calls", extra.Load(), first.Load())
	if guards.Len() > places {
		t.Errorf("%d guards", guards.Len())
	}
	for key := range keys { // those that are there still, and the overflow
		if st := guards.For(key).State().Bulkhead; st.InFlight != 0 || st.Queued != 0 {
			t.Fatalf("key %d: %+v", key, st)
		}
	}
}

// A budget that is put away by a policy and taken back by another one owes what it owed.
func TestNoReloadForgivesADebt(t *testing.T) {
	fail := func(context.Context) error { return errors.New("down") }
	own := abate.Policy{Retry: abate.Retry{MaxRetries: 100, Backoff: retry.NoBackoff}, RetryBudget: budget.Config{
		Ratio: 0.001, Reserve: 5, Window: time.Hour,
	}}
	own.CircuitBreaker.Disabled = true
	shared := own
	shared.Budget = budget.New(budget.Config{Ratio: 0.001, Reserve: 5, Window: time.Hour})
	beside := own
	beside.SharedBudget = shared.Budget
	off := own
	off.RetryBudget = budget.Config{Disabled: true}
	for name, other := range map[string]abate.Policy{
		"another's budget": shared, "a second budget": beside, "no budget": off,
	} {
		t.Run(name, func(t *testing.T) {
			g, err := abate.New("orders", own)
			if err != nil {
				t.Fatal(err)
			}
			attempts := 0
			once := func() {
				_ = abate.DoErr(t.Context(), g, func(ctx context.Context) error { attempts++; return fail(ctx) })
			}
			once()
			if attempts != 6 {
				t.Fatalf("%d attempts", attempts)
			}
			for range 3 {
				for _, p := range []abate.Policy{other, own} {
					if err := g.Update(p); err != nil {
						t.Fatal(err)
					}
				}
				attempts = 0
				if once(); attempts > 1 {
					t.Errorf("%d attempts after the reload", attempts)
				}
			}
		})
	}
}
