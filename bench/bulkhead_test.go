package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/bulkhead"
	eapache "github.com/eapache/go-resiliency/semaphore"
	"github.com/failsafe-go/failsafe-go"
	fsbulkhead "github.com/failsafe-go/failsafe-go/bulkhead"
	"golang.org/x/sync/semaphore"
)

// BenchmarkBulkhead is one permit taken and given back, with room to spare.
func BenchmarkBulkhead(b *testing.B) {
	config := bulkhead.Config{MaxConcurrentCalls: 1024}
	run(b, "impl=abate", do(guard(b, abate.Policy{Bulkhead: config})))
	ours := bulkhead.New(config)
	run(b, "impl=abate-policy", shared(func() error {
		if !ours.TryAcquire() {
			return errFlaky
		}
		defer ours.Release()
		return work()
	}))

	ctx := context.Background()
	sem := semaphore.NewWeighted(1024)
	run(b, "impl=xsync", shared(func() error {
		if err := sem.Acquire(ctx, 1); err != nil {
			return err
		}
		defer sem.Release(1)
		return work()
	}))

	fs := fsbulkhead.New[any](1024)
	run(b, "impl=failsafe-policy", shared(func() error {
		if err := fs.AcquirePermit(ctx); err != nil {
			return err
		}
		defer fs.ReleasePermit()
		return work()
	}))
	fsExec := failsafe.With[any](fs)
	run(b, "impl=failsafe", shared(func() error { return fsExec.Run(work) }))

	ea := eapache.New(1024, time.Second)
	run(b, "impl=eapache", shared(func() error {
		if err := ea.Acquire(); err != nil {
			return err
		}
		defer ea.Release()
		return work()
	}))
}
