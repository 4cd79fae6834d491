package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
)

// guard makes a guard of ours with the parts that p names. What a policy that retries or hedges gets besides is
// declined in words: a row about retries is not one about a budget, too, which would refuse what always fails at first.
func guard(b *testing.B, p abate.Policy) *abate.Guard {
	b.Helper()
	if p.RetryBudget == (budget.Config{}) {
		p.RetryBudget.Disabled = true
	}
	if p.CircuitBreaker == (breaker.Config{}) {
		p.CircuitBreaker.Disabled = true
	}
	g, err := abate.New("payment-service", p)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// do is a maker for work under a guard.
func do(g *abate.Guard) maker {
	ctx := context.Background()
	return shared(func() error {
		_, err := abate.Do(ctx, g, workIntCtx)
		return err
	})
}

// doFail2 is a maker for a call that fails twice, then succeeds.
func doFail2(g *abate.Guard) maker {
	ctx := context.Background()
	return func() func() error {
		f := new(flaky)
		fn := func(context.Context) (int, error) { return f.workInt() }
		return func() error {
			_, err := abate.Do(ctx, g, fn)
			return err
		}
	}
}

// workIntCtx is work for a function that is handed a context and returns a value.
//
//go:noinline
func workIntCtx(context.Context) (int, error) { return 1, nil }

// repeatable is a maker for work that may be hedged.
func repeatable(g *abate.Guard) maker {
	ctx := context.Background()
	return shared(func() error {
		_, release, err := core.Run(ctx, g, copies{})
		release.Done()
		return err
	})
}

// copies is work as an operation that may run twice at once.
type copies struct{}

func (copies) Attempt(ctx context.Context, _ core.Sending) (int, error) { return workIntCtx(ctx) }

func (copies) Classify(int, error) abate.Outcome { return abate.Outcome{} }

func (copies) Discard(int) {}

func (copies) MayHedge() bool { return true }

// abateStack is our version of each stack of BenchmarkStack5.
func abateStack(policies string) abate.Policy {
	p := abate.Policy{
		Retry:          abate.Retry{MaxRetries: 3},
		RetryBudget:    budget.Config{Ratio: 0.1, Reserve: 10},
		CircuitBreaker: windowBreaker,
		Bulkhead:       bulkhead.Config{MaxConcurrentCalls: 1024},
	}
	if policies == "timeout" {
		p.Timeout, p.AttemptTimeout = 2*time.Second, time.Second
	}
	return p
}

// windowBreaker counts a failure rate over ten seconds, as the peers' breakers do.
var windowBreaker = breaker.Config{FailureRateThreshold: 0.5, MinimumNumberOfCalls: 20}
