package bench_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/eapache/go-resiliency/retrier"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// BenchmarkStack5 is a call that succeeds at once under a whole policy: what a
// production call pays while everything is well. The dimension says which policies:
//
//	policies=four     bulkhead, retry with budget, breaker over a time window
//	policies=timeout  four, and a timeout
//	policies=five     timeout, and a rate limiter that never refuses
func BenchmarkStack5(b *testing.B) {
	ctx := context.Background()
	for _, policies := range []string{"four", "timeout", "five"} {
		if policies != "five" { // abate has no rate limiter yet
			run(b, "policies="+policies+"/impl=abate", do(guard(b, abateStack(policies))))
		}
		fs := failsafe.With(failsafeStack[any](policies)...)
		run(b, "policies="+policies+"/impl=failsafe", shared(func() error { return fs.Run(work) }))
		run(b, "policies="+policies+"/impl=failsafe-ctx", shared(func() error {
			return fs.WithContext(ctx).RunWithExecution(func(exec failsafe.Execution[any]) error {
				return workCtx(exec.Context())
			})
		}))
		glued := newGlued(policies)
		run(b, "policies="+policies+"/impl=glued", shared(func() error { return glued.do(ctx) }))
	}
}

// failsafeStack is the peer's version of each stack, outermost policy first. The
// budget is a part of the retry policy there.
func failsafeStack[R any](policies string) []failsafe.Policy[R] {
	stack := []failsafe.Policy[R]{
		bulkhead.New[R](1024),
		retrypolicy.NewBuilder[R]().WithMaxRetries(3).WithBackoff(100*time.Millisecond, 10*time.Second).
			WithJitterFactor(0.5).WithBudget(budget.New()).Build(),
		circuitbreaker.NewBuilder[R]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build(),
	}
	if policies == "five" {
		stack = append(stack, ratelimiter.NewBursty[R](math.MaxInt32, time.Second))
	}
	if policies == "timeout" || policies == "five" {
		stack = append(stack, timeout.New[R](time.Second))
	}
	return stack
}

// glued is what a careful team writes today: one single-purpose library per
// policy, nested by hand.
type glued struct {
	permits *semaphore.Weighted
	retry   *retrier.Retrier
	budget  *rate.Limiter
	breaker *gobreaker.CircuitBreaker[int]
	limit   *rate.Limiter // nil when the stack has no rate limiter
	timeout time.Duration // 0 when the stack has no timeout
}

func newGlued(policies string) *glued {
	g := &glued{permits: semaphore.NewWeighted(1024), budget: rate.NewLimiter(10, 10)}
	g.retry = retrier.New(retrier.LimitedExponentialBackoff(3, 100*time.Millisecond, 10*time.Second), g)
	g.retry.SetJitter(0.5)
	g.breaker = gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
		Interval: 10 * time.Second, BucketPeriod: time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.Requests >= 20 && c.TotalFailures*2 >= c.Requests },
	})
	if policies == "five" {
		g.limit = rate.NewLimiter(math.MaxInt32, math.MaxInt32)
	}
	if policies == "timeout" || policies == "five" {
		g.timeout = time.Second
	}
	return g
}

// Classify lets the retrier ask the budget before it tries again.
func (g *glued) Classify(err error) retrier.Action {
	if err == nil {
		return retrier.Succeed
	}
	if g.budget.Allow() {
		return retrier.Retry
	}
	return retrier.Fail
}

func (g *glued) do(ctx context.Context) error {
	if g.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, g.timeout)
		defer cancel()
	}
	if err := g.permits.Acquire(ctx, 1); err != nil {
		return err
	}
	defer g.permits.Release(1)
	return g.retry.RunCtx(ctx, func(ctx context.Context) error {
		_, err := g.breaker.Execute(func() (int, error) {
			if g.limit != nil && !g.limit.Allow() {
				return 0, errFlaky
			}
			return 0, workCtx(ctx)
		})
		return err
	})
}
