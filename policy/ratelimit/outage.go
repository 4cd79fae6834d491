package ratelimit

import (
	"sync/atomic"
	"time"
)

// Outage is whether what a fleet shares is missed, and since when it is not any more. The zero Outage is none. It is
// safe for concurrent use.
type Outage struct {
	missed atomic.Int32 // answers that did not come, in a row
	out    atomic.Bool
	backAt atomic.Int64 // 0 if there was no outage yet
}

// Answered notes that an answer came.
func (o *Outage) Answered(now time.Duration) {
	if o.missed.Load() != 0 {
		o.missed.Store(0)
	}
	if o.out.Load() && o.out.CompareAndSwap(true, false) {
		o.backAt.Store(int64(now))
	}
}

// Missed notes that an answer did not come. Two in a row are an outage; one is if it is certain, because it was the
// heartbeat's, or the breaker in front was not closed.
func (o *Outage) Missed(certain bool) {
	if o.missed.Add(1) > 1 || certain {
		o.out.Store(true)
	}
}

// Over reports whether everybody else has had the time to notice that the outage is over, for which [ShareAfter] is.
func (o *Outage) Over(now time.Duration) bool {
	back := o.backAt.Load()
	return back == 0 || now >= time.Duration(back)+ShareAfter
}

// AliveFor is how long an instance counts as alive without a heartbeat.
const AliveFor = 5 * time.Second

// Census is how many instances share something. The zero Census counts one. Count is for one goroutine at a time,
// Instances for any.
type Census struct {
	seen  atomic.Int64
	fewer time.Duration // since when all counts were lower than seen, 0 if the last was not
}

// Count takes in how many there are now, 0 when nobody could be asked. Fewer are believed only when they have been
// fewer for [AliveFor] in which somebody could be asked: a Redis that was restarted empty counts one, and then the
// others come back.
func (c *Census) Count(now time.Duration, n int64) {
	switch {
	case n == 0:
		c.fewer = 0
	case n >= c.seen.Load():
		c.seen.Store(n)
		c.fewer = 0
	case c.fewer == 0:
		c.fewer = now
	case now-c.fewer > AliveFor:
		c.seen.Store(n)
		c.fewer = 0
	}
}

// Instances returns how many there are as far as is known, at least 1.
func (c *Census) Instances() int64 { return max(c.seen.Load(), 1) }
