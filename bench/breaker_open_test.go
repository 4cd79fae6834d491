package bench_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/breaker"
	eapache "github.com/eapache/go-resiliency/breaker"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
)

// BenchmarkBreakerOpen is a call refused by an open breaker: what a client pays
// for every request while its dependency is down.
func BenchmarkBreakerOpen(b *testing.B) {
	config := breaker.Config{FailureThreshold: 1, WaitDurationInOpenState: time.Hour}
	g, ctx := guard(b, abate.Policy{CircuitBreaker: config}), context.Background()
	abate.Do(ctx, g, func(context.Context) (int, error) { return 0, errFlaky })
	refused(b, "impl=abate", abate.ErrCircuitOpen, func() error {
		_, err := abate.Do(ctx, g, workIntCtx)
		return err
	})

	ours := breaker.New(config, rand.Uint64, nil)
	permit, _ := ours.Allow(now())
	ours.Record(now(), permit, breaker.Failure)
	refused(b, "impl=abate-policy", errOpen, func() error {
		if _, ok := ours.Allow(now()); ok {
			return nil
		}
		return errOpen
	})

	gb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
		Timeout:     time.Hour,
		ReadyToTrip: func(gobreaker.Counts) bool { return true },
	})
	gb.Execute(func() (int, error) { return 0, errFlaky })
	refused(b, "impl=gobreaker", gobreaker.ErrOpenState, func() error {
		_, err := gb.Execute(workInt)
		return err
	})

	fs := circuitbreaker.NewBuilder[any]().WithDelay(time.Hour).Build()
	fs.Open()
	fsExec := failsafe.With[any](fs)
	refused(b, "impl=failsafe", circuitbreaker.ErrOpen, func() error { return fsExec.Run(work) })
	refused(b, "impl=failsafe-policy", circuitbreaker.ErrOpen, failsafeBreakerByHand(fs))

	ea := eapache.New(1, 1, time.Hour)
	ea.Run(func() error { return errFlaky })
	refused(b, "impl=eapache", eapache.ErrBreakerOpen, func() error { return ea.Run(work) })
}
