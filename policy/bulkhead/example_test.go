package bulkhead_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/abate-go/abate/policy/bulkhead"
)

var errFull, errWaited = errors.New("bulkhead is full"), errors.New("waited too long")

const maxWait = 300 * time.Millisecond

// acquire is a blocking driver. Its nil error means: the caller has a permit.
func acquire(ctx context.Context, b *bulkhead.Bulkhead) error {
	if b.TryAcquire() {
		return nil
	}
	ready := make(chan struct{}, 1)
	w := &bulkhead.Waiter{Wake: func() { ready <- struct{}{} }, Until: maxWait}
	switch b.Enqueue(0, w) {
	case bulkhead.Admitted:
		return nil
	case bulkhead.Full:
		return errFull
	}
	timer := time.NewTimer(w.Until)
	defer timer.Stop()
	err := errWaited
	select {
	case <-ready:
		return nil
	case <-timer.C:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if b.Abandon(w) {
		return err
	}
	return nil // the permit came at the last moment, and it is ours
}

// Two calls run, one waits, the fourth is refused.
func Example() {
	b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 2, MaxQueue: 1})
	ctx := context.Background()

	fmt.Println(acquire(ctx, b), acquire(ctx, b))
	third := make(chan error)
	go func() { third <- acquire(ctx, b) }()
	for b.State().Queued == 0 {
		runtime.Gosched()
	}
	fmt.Println(acquire(ctx, b))

	b.Release()
	fmt.Println(<-third)
	// Output:
	// <nil> <nil>
	// bulkhead is full
	// <nil>
}
