package ratelimit

import (
	"math"
	"sync/atomic"
	"time"
)

// cell is one bucket that many use at once, without a lock. Changed settings get a new cell.
type cell struct {
	s    *settings
	tat  atomic.Uint64
	seen atomic.Uint64 // when something was last taken while the bucket was full
	_    [40]byte      // a cache line of its own
}

// frozen is the tat of a cell that another one has replaced.
const frozen = math.MaxUint64

// take is settings.take. False means that the cell has been replaced.
func (c *cell) take(own uint64, cost float64, maxWait time.Duration) (a answer, ok bool) {
	price := c.s.price(cost)
	for {
		tat := c.tat.Load()
		if tat == frozen {
			return a, false
		}
		// seen is read after tat and written before it, so x is never earlier than the time tat was counted from: a caller
		// whose now is a little older than that of another, who found the bucket full, finds what that one has left.
		seen := c.seen.Load()
		x := max(own, seen)
		a = c.s.take(x, own, tat, price, maxWait)
		if a.over || price == 0 {
			return a, true
		}
		if x > seen && a.full == a.earned+price {
			c.see(seen, x)
		}
		if c.tat.CompareAndSwap(tat, a.full) {
			return a, true
		}
	}
}

// see moves seen, last known to be old, up to x.
func (c *cell) see(old, x uint64) {
	for old < x && !c.seen.CompareAndSwap(old, x) {
		old = c.seen.Load()
	}
}

// replaced returns a cell with settings s that goes on where c stops. Nobody can use c any more.
func (c *cell) replaced(s *settings, x uint64) *cell {
	tat := c.tat.Swap(frozen)
	x = max(x, c.seen.Load())
	next := &cell{s: s}
	next.seen.Store(c.seen.Load())
	next.tat.Store(s.adopt(c.s, x, tat))
	return next
}
