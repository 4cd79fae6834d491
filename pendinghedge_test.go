package abate_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// An answer that is not there yet says nothing to a circuit that tries whether its dependency is back, however many
// copies bring it: the permits of the trial come back, and the answer that is there closes it.
func TestPendingAnswersOfHedgedCallsGiveTheProbesPermitBack(t *testing.T) {
	for name, copies := range map[string]time.Duration{
		"one copy at a time": time.Hour, "copies beside each other": time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := abate.Policy{
					Retry: abate.Retry{MaxRetries: 9, Backoff: retry.NoBackoff, MaxElapsed: time.Hour},
					Hedge: hedge.Config{Delay: copies},
					CircuitBreaker: breaker.Config{
						FailureThreshold: 1, PermittedCallsInHalfOpen: 1, WaitDurationInOpenState: time.Second,
						MaxWaitDurationInOpenState: time.Second,
					},
				}
				p.RetryBudget.Disabled = true
				g := guard(t, p)
				_ = abate.DoErr(t.Context(), g, func(context.Context) error { return abate.Permanent(errDown) })
				if g.State().Breaker.State != breaker.Open {
					t.Fatal("the circuit is closed")
				}
				for round := range 5 {
					time.Sleep(time.Minute)
					var n atomic.Int32
					fn := func(ctx context.Context) (int, error) {
						time.Sleep(10 * time.Millisecond)
						return int(n.Add(1)), ctx.Err()
					}
					v, err := abate.DoHedged(t.Context(), g, abate.RetryIf(fn, func(v int) bool { return v < 4 || round < 4 }))
					synctest.Wait()
					switch st := g.State(); {
					case round < 4 && (!errors.Is(err, abate.ErrPending) || st.Breaker.State == breaker.Closed):
						t.Errorf("round %d: %d, %v after %d attempts, circuit %v", round, v, err, n.Load(), st.Breaker.State)
					case round == 4 && (err != nil || st.Breaker.State == breaker.Open):
						t.Errorf("in the end: %d, %v after %d attempts, circuit %v", v, err, n.Load(), st.Breaker.State)
					}
				}
			})
		})
	}
}
