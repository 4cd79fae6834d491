package drill

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Act is one load that runs through an outage, under one policy. Run calls the methods in the order in which they stand
// here.
type Act interface {
	// SetUp starts what the act needs. since is the time of the act, see Drill.
	SetUp(ctx context.Context, since func() time.Duration) error
	// Events returns what breaks and is fixed again while the load runs.
	Events() []Event
	// Load sends on schedule until the time of the act is over or ctx is done. What it sent may go on under ctx.
	Load(ctx context.Context) error
	// Drain waits for what is still under way, until ctx is done, and ends the measuring.
	Drain(ctx context.Context)
	// TearDown ends all that SetUp started, also when SetUp failed.
	TearDown()
}

// Event is something that happens at a time of an act.
type Event struct {
	At time.Duration
	Do func() error
}

// clock is the time of an act. It stands at the begin of the warm-up until start is called.
type clock struct {
	warmUp time.Duration
	began  atomic.Pointer[time.Time]
}

func (c *clock) start() {
	now := time.Now()
	c.began.Store(&now)
}

// since returns the time since the end of the warm-up, which is negative before it.
func (c *clock) since() time.Duration {
	began := c.began.Load()
	if began == nil {
		return -c.warmUp
	}
	return time.Since(*began) - c.warmUp
}

// each calls do for all acts at once, and returns when all have returned.
func each(acts []Act, do func(Act)) {
	var all sync.WaitGroup
	for _, a := range acts {
		all.Go(func() { do(a) })
	}
	all.Wait()
}

// Sleep waits for d, and reports whether stop was still open then.
func Sleep(d time.Duration, stop <-chan struct{}) bool {
	if d <= 0 {
		select {
		case <-stop:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	}
}

// Send calls send at every time of an act that next returns, in order, however late it is, and returns when that is to
// or later, or ctx is done. send must not wait for what it begins: a slow answer holds no later request back.
func Send(ctx context.Context, since, next func() time.Duration, to time.Duration,
	send func(n int, due time.Duration)) {
	for n := 0; ; n++ {
		due := next()
		if due >= to || !Sleep(due-since(), ctx.Done()) {
			return
		}
		send(n, due)
	}
}
