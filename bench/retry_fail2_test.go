package bench_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/retry"
	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	"github.com/eapache/go-resiliency/retrier"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// BenchmarkRetryFail2 is a call that fails twice and then succeeds, with a delay
// of zero: the cost of the retry loop itself.
func BenchmarkRetryFail2(b *testing.B) {
	config := retry.Config{MaxRetries: 3, Backoff: retry.NoBackoff}
	run(b, "impl=abate", doFail2(guard(b, abate.Policy{Retry: config})))
	ours := retry.New(config)
	run(b, "impl=abate-policy", fail2(func(op func() error) error {
		for retries := 0; ; retries++ {
			err := op()
			if err == nil {
				return nil
			}
			if _, verdict := ours.Next(retry.Question{Retries: retries, Rand: rand.Uint64()}); verdict != retry.Retry {
				return err
			}
		}
	}))

	run(b, "impl=floor", func() func() error {
		f := new(flaky)
		return func() error {
			for range 4 {
				if f.work() == nil {
					return nil
				}
			}
			return errFlaky
		}
	})

	fs := failsafe.With[any](retrypolicy.NewBuilder[any]().WithMaxRetries(3).Build())
	run(b, "impl=failsafe", fail2(fs.Run))
	// The peer's budget admits three concurrent retries besides its ratio, so it
	// never refuses in this group.
	fsBudget := failsafe.With[any](retrypolicy.NewBuilder[any]().WithMaxRetries(3).WithBudget(budget.New()).Build())
	run(b, "impl=failsafe-budget", fail2(fsBudget.Run))

	run(b, "impl=backoff", func() func() error {
		f := new(flaky)
		op, zero := f.workInt, &backoff.ZeroBackOff{}
		return func() error {
			_, err := backoff.Retry(context.Background(), op, backoff.WithBackOff(zero), backoff.WithMaxTries(4))
			return err
		}
	})

	run(b, "impl=avast4", fail2(func(op func() error) error {
		return avast4.Do(op, avast4.Attempts(4), avast4.Delay(0), avast4.DelayType(avast4.FixedDelay))
	}))
	av5 := avast5.New(avast5.Attempts(4), avast5.Delay(0), avast5.DelayType(avast5.FixedDelay))
	run(b, "impl=avast5", fail2(func(op func() error) error { return av5.Do(op) }))

	ea := retrier.New(make([]time.Duration, 3), nil)
	run(b, "impl=eapache", fail2(ea.Run))
}

// fail2 gives every goroutine its own flaky function and hands it to retry.
func fail2(retry func(func() error) error) maker {
	return func() func() error {
		op := new(flaky).work
		return func() error { return retry(op) }
	}
}
