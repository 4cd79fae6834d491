package bench_test

import (
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

// BenchmarkBreaker is a successful call through a closed breaker that counts a
// failure rate over a time window of ten seconds.
func BenchmarkBreaker(b *testing.B) {
	run(b, "window=time/impl=abate", do(guard(b, abate.Policy{CircuitBreaker: windowBreaker})))
	ours := breaker.New(windowBreaker, rand.Uint64, nil)
	run(b, "window=time/impl=abate-policy", shared(abateBreakerByHand(ours)))

	gb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
		Interval: 10 * time.Second, BucketPeriod: time.Second,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.Requests >= 20 && c.TotalFailures*2 >= c.Requests },
	})
	run(b, "window=time/impl=gobreaker", shared(func() error {
		_, err := gb.Execute(workInt)
		return err
	}))

	fs := circuitbreaker.NewBuilder[any]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build()
	fsExec := failsafe.With[any](fs)
	run(b, "window=time/impl=failsafe", shared(func() error { return fsExec.Run(work) }))
	run(b, "window=time/impl=failsafe-policy", shared(failsafeBreakerByHand(fs)))
}

// BenchmarkBreakerConsecutive is the same call through a breaker that counts
// consecutive failures only, the simplest kind.
func BenchmarkBreakerConsecutive(b *testing.B) {
	run(b, "impl=abate", do(guard(b, abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 5}})))
	ours := breaker.New(breaker.Config{FailureThreshold: 5}, rand.Uint64, nil)
	run(b, "impl=abate-policy", shared(abateBreakerByHand(ours)))

	gb := gobreaker.NewCircuitBreaker[int](gobreaker.Settings{})
	run(b, "impl=gobreaker", shared(func() error {
		_, err := gb.Execute(workInt)
		return err
	}))

	fs := circuitbreaker.NewBuilder[any]().WithFailureThreshold(5).Build()
	fsExec := failsafe.With[any](fs)
	run(b, "impl=failsafe", shared(func() error { return fsExec.Run(work) }))
	run(b, "impl=failsafe-policy", shared(failsafeBreakerByHand(fs)))

	ea := eapache.New(5, 1, time.Second)
	run(b, "impl=eapache", shared(func() error { return ea.Run(work) }))
}

// abateBreakerByHand drives the policy as its documentation says: the clock is read
// where the breaker looks at it.
func abateBreakerByHand(cb *breaker.Breaker) func() error {
	return func() error {
		start := time.Duration(0)
		if cb.State() != breaker.Closed || cb.TracksStart() {
			start = now()
		}
		permit, ok := cb.Allow(start)
		if !ok {
			return errOpen
		}
		err := work()
		switch {
		case err != nil:
			cb.Record(now(), permit, breaker.Failure)
		case cb.TracksEnd():
			cb.Record(now(), permit, breaker.Success)
		default:
			cb.Record(start, permit, breaker.Success)
		}
		return err
	}
}

// failsafeBreakerByHand drives the bare policy object, without an executor.
func failsafeBreakerByHand(cb circuitbreaker.CircuitBreaker[any]) func() error {
	return func() error {
		if !cb.TryAcquirePermit() {
			return circuitbreaker.ErrOpen
		}
		err := work()
		if err != nil {
			cb.RecordFailure()
			return err
		}
		cb.RecordSuccess()
		return nil
	}
}
