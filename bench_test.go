package abate_test

import (
	"context"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// BenchmarkDo is the price of the guard alone: the guarded function does nothing. bench/ has the peers beside it.
func BenchmarkDo(b *testing.B) {
	timeouts := fullPolicy()
	timeouts.Timeout, timeouts.AttemptTimeout = 10*time.Second, time.Second
	for _, row := range []struct {
		name   string
		policy abate.Policy
	}{
		{"pass-through", abate.Policy{}},
		{"retry", abate.Policy{Retry: retry.Config{MaxRetries: 3}}},
		{"breaker", abate.Policy{CircuitBreaker: breaker.Config{FailureRateThreshold: 0.5}}},
		{"default", abate.DefaultPolicy()},
		{"full", fullPolicy()},
		{"full and timeouts", timeouts},
		{"refused", abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}}},
	} {
		g := guard(b, row.policy)
		fn := func(context.Context) (int, error) { return 1, nil }
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				abate.Do(context.Background(), g, fn)
			}
		})
	}
}

func BenchmarkDoTwoFailuresThenSuccess(b *testing.B) {
	g := guard(b, abate.Policy{Retry: retry.Config{MaxRetries: 3, Backoff: retry.NoBackoff}})
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		abate.Do(context.Background(), g, func(context.Context) (int, error) {
			if n++; n < 3 {
				return 0, errDown
			}
			return n, nil
		})
	}
}

func BenchmarkDoHedgedNotFired(b *testing.B) {
	g := guard(b, abate.Policy{Hedge: hedge.Config{Delay: time.Second}})
	fn := func(context.Context) (int, error) { return 1, nil }
	b.ReportAllocs()
	for b.Loop() {
		abate.DoHedged(context.Background(), g, fn)
	}
}
