package bulkhead_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/policy/bulkhead"
)

// load is what 1,000 goroutines do with one bulkhead, and what is counted.
type load struct {
	b                                        *bulkhead.Bulkhead
	limit                                    int64 // the largest that was ever in force
	inside, served, refused, left, leftLate  atomic.Int64
	atOnce, fromEnqueue, woken, wakes, queue atomic.Int64
}

// call makes one call. patience is what the caller does once it is queued: wait, or leave
// at once, or leave a moment later. retries is how often it lets its permit go and comes back for another.
func (c *load) call(t *testing.T, patience, retries int) {
	if !c.enter(patience, false) {
		return
	}
	for range retries {
		c.work(t)
		c.b.Pause()
		runtime.Gosched()
		got := c.enter(0, true)
		c.b.Back()
		if !got {
			t.Error("one that came back was refused")
			return
		}
	}
	c.work(t)
	c.served.Add(1)
	c.b.Release()
}

// work is what a permit is for.
func (c *load) work(t *testing.T) {
	if n := c.inside.Add(1); n > c.limit {
		t.Errorf("%d inside, the limit is %d", n, c.limit)
	}
	runtime.Gosched()
	c.inside.Add(-1)
}

// enter reports whether it has got a permit.
func (c *load) enter(patience int, again bool) bool {
	switch {
	case c.b.TryAcquire():
		c.atOnce.Add(1)
	default:
		ready := make(chan struct{}, 2)
		w := &bulkhead.Waiter{Again: again, Wake: func() { c.wakes.Add(1); ready <- struct{}{} }}
		switch c.b.Enqueue(0, w) {
		case bulkhead.Admitted:
			c.fromEnqueue.Add(1)
		case bulkhead.Full:
			c.refused.Add(1)
			return false
		case bulkhead.Queued:
			c.queue.Add(1)
			if patience > 0 {
				for range patience - 1 {
					runtime.Gosched()
				}
				if c.b.Abandon(w) {
					c.left.Add(1)
					return false
				}
				c.leftLate.Add(1)
			}
			<-ready
			c.woken.Add(1)
		}
	}
	return true
}

// run makes the calls, again and again until somebody has waited and somebody has left: that is for the scheduler to
// say.
func (c *load) run(t *testing.T, goroutines, calls int) {
	t.Helper()
	const most = 100
	came := 0
	for range most {
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() {
				for i := range calls {
					c.call(t, max(0, (g+i)%7-3), max(0, (g+i)%5-2))
				}
			})
		}
		wg.Wait()
		if came += goroutines * calls; c.woken.Load() > 0 && c.left.Load() > 0 {
			break
		}
	}
	if got := c.served.Load() + c.refused.Load() + c.left.Load(); got != int64(came) {
		t.Errorf("%d calls came out of %d", got, came)
	}
	if q, out := c.queue.Load(), c.woken.Load()+c.left.Load(); q != out || c.wakes.Load() != c.woken.Load() {
		t.Errorf("%d waited, %d were woken, %d of them got out, %d left", q, c.wakes.Load(), c.woken.Load(), c.left.Load())
	}
	if got := c.b.State(); got.InFlight != 0 || got.Queued != 0 || got.Away != 0 {
		t.Errorf("state at the end %+v", got)
	}
	t.Logf("served %d (at once %d, by Enqueue %d, woken %d), full %d, left %d, permit while leaving %d",
		c.served.Load(), c.atOnce.Load(), c.fromEnqueue.Load(), c.woken.Load(), c.refused.Load(), c.left.Load(),
		c.leftLate.Load())
	if c.woken.Load() == 0 || c.left.Load() == 0 {
		t.Error("nobody waited, or nobody left: the test tests nothing")
	}
}

func TestACrowdGetsThroughAndNoWakeUpIsLost(t *testing.T) {
	for _, order := range []bulkhead.Order{bulkhead.FIFO, bulkhead.LIFO, bulkhead.Adaptive} {
		t.Run(string(order), func(t *testing.T) {
			c := &load{limit: 3, b: bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 3, MaxQueue: 50, Order: order})}
			c.run(t, 1000, 20)
		})
	}
}

// One permit and a queue for everybody: each hand-over has one chance to get lost, and
// then everybody stands still.
func TestOnePermitIsPassedThroughACrowd(t *testing.T) {
	c := &load{limit: 1, b: bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1000})}
	c.run(t, 50, 200)
}

func TestACrowdGetsThroughAReloadStorm(t *testing.T) {
	const most = 9
	c := &load{limit: most, b: bulkhead.New(bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 50})}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				c.b.Reconfigure(bulkhead.Config{MaxConcurrentCalls: 1 + i%most, MaxQueue: 1 + i%60})
				runtime.Gosched()
			}
		}
	})
	c.run(t, 200, 20)
	close(done)
	wg.Wait()
}

// race runs f in four goroutines that begin together.
func race(f func(g int)) {
	var ready, wg sync.WaitGroup
	ready.Add(4)
	for g := range 4 {
		wg.Go(func() {
			ready.Done()
			ready.Wait()
			f(g)
		})
	}
	wg.Wait()
}

// Callers that ask without a pause until they are refused take each permit once, whether
// they ask by TryAcquire or by Enqueue.
func TestConcurrentCallersNeverShareAPermit(t *testing.T) {
	const limit = 20_000
	for range 100 {
		b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: limit, NoQueue: true})
		var got atomic.Int64
		race(func(g int) {
			for b.TryAcquire() || g%2 == 0 && b.Enqueue(0, &bulkhead.Waiter{}) == bulkhead.Admitted {
				got.Add(1)
			}
		})
		if got.Load() != limit || b.State().InFlight != limit {
			t.Fatalf("%d permits out of %d, state %+v", got.Load(), limit, b.State())
		}
	}
}

// One only enqueues: what it saw must still be true when it takes the permit.
func TestEnqueueAndTryAcquireNeverShareAPermit(t *testing.T) {
	const limit = 5000
	for range 200 {
		b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: limit, NoQueue: true})
		var got atomic.Int64
		race(func(g int) {
			ask := b.TryAcquire
			if g%2 == 0 {
				w := &bulkhead.Waiter{}
				ask = func() bool { return b.Enqueue(0, w) == bulkhead.Admitted }
			}
			for ask() {
				got.Add(1)
			}
		})
		if got.Load() != limit {
			t.Fatalf("%d permits out of %d", got.Load(), limit)
		}
	}
}

// Callers that release at the same time pass on as many permits as there are waiters, and
// free the others.
func TestConcurrentReleasesWakeEachWaiterOnce(t *testing.T) {
	const limit, waiters = 1000, 300
	for range 100 {
		var woken atomic.Int64
		b := bulkhead.New(bulkhead.Config{MaxConcurrentCalls: limit, MaxQueue: waiters})
		for b.TryAcquire() {
		}
		for b.Enqueue(0, &bulkhead.Waiter{Wake: func() { woken.Add(1) }}) == bulkhead.Queued {
		}
		race(func(int) {
			for range limit / 4 {
				b.Release()
			}
		})
		if got := b.State(); woken.Load() != waiters || got.InFlight != waiters || got.Queued != 0 {
			t.Fatalf("%d of %d woken, state %+v", woken.Load(), waiters, got)
		}
	}
}
