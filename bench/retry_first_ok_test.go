package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/budget"
	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	"github.com/cenkalti/backoff/v5"
	"github.com/eapache/go-resiliency/retrier"
	"github.com/failsafe-go/failsafe-go"
	fsbudget "github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

// BenchmarkRetryFirstOK is a call that succeeds at the first attempt under a
// policy of three retries: what every healthy call pays.
func BenchmarkRetryFirstOK(b *testing.B) {
	run(b, "impl=abate", do(guard(b, abate.Policy{Retry: abate.Retry{MaxRetries: 3}})))
	run(b, "impl=abate-budget", do(guard(b, abate.Policy{
		Retry: abate.Retry{MaxRetries: 3}, RetryBudget: budget.Config{Ratio: 0.1, Reserve: 10},
	})))
	run(b, "impl=floor", shared(work))

	policy := func() retrypolicy.Builder[any] {
		return retrypolicy.NewBuilder[any]().WithMaxRetries(3).WithBackoff(100*time.Millisecond, 10*time.Second)
	}
	fs := failsafe.With[any](policy().Build())
	run(b, "impl=failsafe", shared(func() error { return fs.Run(work) }))
	fsBudget := failsafe.With[any](policy().WithBudget(fsbudget.New()).Build())
	run(b, "impl=failsafe-budget", shared(func() error { return fsBudget.Run(work) }))

	run(b, "impl=backoff", shared(func() error {
		_, err := backoff.Retry(context.Background(), workInt, backoff.WithMaxTries(4))
		return err
	}))

	run(b, "impl=avast4", shared(func() error {
		return avast4.Do(work, avast4.Attempts(4))
	}))
	av5 := avast5.New(avast5.Attempts(4))
	run(b, "impl=avast5", shared(func() error { return av5.Do(work) }))

	ea := retrier.New(retrier.ExponentialBackoff(3, 100*time.Millisecond), nil)
	run(b, "impl=eapache", shared(func() error { return ea.Run(work) }))
}
