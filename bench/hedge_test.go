package bench_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
)

// BenchmarkHedgeNotFired is a call that answers before its second copy is due:
// what the 95 of 100 calls pay that hedging does nothing for.
//
//	delay=fixed     the copy is due after one second
//	delay=quantile  the copy is due after a quantile of the observed latencies
func BenchmarkHedgeNotFired(b *testing.B) {
	run(b, "delay=fixed/impl=abate", repeatable(guard(b, abate.Policy{Hedge: hedge.Config{Delay: time.Second}})))
	run(b, "delay=quantile/impl=abate", repeatable(guard(b, abate.Policy{
		Hedge: hedge.Config{Quantile: 0.95, Delay: time.Second, MinDelay: 100 * time.Millisecond},
	})))

	fixed := failsafe.With[any](hedgepolicy.NewWithDelay[any](time.Second))
	run(b, "delay=fixed/impl=failsafe", shared(func() error { return fixed.Run(work) }))

	// One slow call first, and a memory so long that the fast ones do not move the
	// estimate: the hedge is armed at 100 ms and never fires.
	quantile := failsafe.With[any](hedgepolicy.NewWithDelayQuantile[any](0.95, 1<<60, 1))
	if err := quantile.Run(slow); err != nil {
		b.Fatal(err)
	}
	run(b, "delay=quantile/impl=failsafe", shared(func() error { return quantile.Run(work) }))
}

// slow succeeds after 100 ms.
func slow() error {
	<-time.After(100 * time.Millisecond)
	return nil
}
