package shed

import (
	"math"
	"math/bits"
	"time"
)

// Waiter is a request in the queue. The zero Waiter, with Wake set, is ready for Enqueue; it is used for one wait, and
// must not be copied before that has ended.
type Waiter struct {
	// Wake is called once, when Outcome is known, without any lock held. It must not block. It may be nil, and it may be
	// called before Enqueue has returned.
	Wake func()

	prev, next *Waiter // towards the oldest, towards the newest of its rank; next also chains those to be woken
	since      time.Duration
	until      time.Duration
	deadline   time.Duration
	permit     Permit
	slot       int // in the queue's heap
	rank       rank
	reason     Reason
	queued     bool
}

// Outcome is the waiter's permit and None, or why it was refused. It is known when Wake has been called, when Enqueue
// has answered Admitted or Refused, and when Leave has returned.
func (w *Waiter) Outcome() (Permit, Reason) { return w.permit, w.reason }

// never is later than every time.
const never = time.Duration(math.MaxInt64)

// queue holds the waiters: a list for each rank, and a heap in the order of their last moments. Guarded by the
// shedder's lock.
type queue struct {
	lists [ranks]list
	used  uint32 // bit k: lists[k] has somebody
	heap  []*Waiter
}

type list struct{ oldest, newest *Waiter }

func (q *queue) len() int { return len(q.heap) }

// most and least are the highest and the lowest rank that waits. There must be one.
func (q *queue) most() rank  { return rank(bits.Len32(q.used) - 1) }
func (q *queue) least() rank { return rank(bits.TrailingZeros32(q.used)) }

// oldest is when the one that has waited longest came.
func (q *queue) oldest() time.Duration {
	first := never
	for used := q.used; used != 0; used &= used - 1 {
		first = min(first, q.lists[bits.TrailingZeros32(used)].oldest.since)
	}
	return first
}

// due is when the next waiter has waited too long.
func (q *queue) due() time.Duration {
	if len(q.heap) == 0 {
		return never
	}
	return q.heap[0].until
}

func (q *queue) push(w *Waiter) {
	l := &q.lists[w.rank]
	w.prev, w.next, w.queued = l.newest, nil, true
	if w.prev != nil {
		w.prev.next = w
	} else {
		l.oldest = w
	}
	l.newest = w
	q.used |= 1 << w.rank
	q.heap = append(q.heap, w)
	q.up(w, len(q.heap)-1)
}

func (q *queue) remove(w *Waiter) {
	l := &q.lists[w.rank]
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.oldest = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.newest = w.prev
	}
	if l.oldest == nil {
		q.used &^= 1 << w.rank
	}
	last := len(q.heap) - 1
	moved := q.heap[last]
	q.heap[last] = nil
	q.heap = q.heap[:last]
	if moved != w {
		q.down(moved, w.slot)
		q.up(moved, moved.slot)
	}
	w.prev, w.next, w.queued = nil, nil, false
}

// up puts w at slot i or above it.
func (q *queue) up(w *Waiter, i int) {
	for i > 0 && w.until < q.heap[(i-1)/2].until {
		q.put(q.heap[(i-1)/2], i)
		i = (i - 1) / 2
	}
	q.put(w, i)
}

// down puts w at slot i or below it.
func (q *queue) down(w *Waiter, i int) {
	for {
		child := 2*i + 1
		if child+1 < len(q.heap) && q.heap[child+1].until < q.heap[child].until {
			child++
		}
		if child >= len(q.heap) || w.until <= q.heap[child].until {
			break
		}
		q.put(q.heap[child], i)
		i = child
	}
	q.put(w, i)
}

func (q *queue) put(w *Waiter, i int) { q.heap[i], w.slot = w, i }

// codel distinguishes a burst from a standing queue, as RFC 8289 does: by delays that have been above the target for an
// interval. What follows from it is not the RFC's: senders there slow down when one packet is dropped, clients that
// ignore us do not, so from then on everything that has waited longer than the target goes, until the queue has been
// empty once. The target as the time limit of a standing queue, and the newest first, are those of "Fail at Scale"
// (ACM Queue, 2015).
type codel struct {
	target, interval time.Duration
	since            time.Duration // when delays went above the target
	above            bool
	standing         bool
	patient          bool          // BBR's queue: all wait as long as they can
	told             bool          // by their deadlines
	wait             time.Duration // for so long, where that is not known
	many             int           // and then more of them are a standing queue
}

// watch brings the state up to date with the queue.
func (c *codel) watch(now time.Duration, q *queue) {
	if c.patient {
		switch {
		case c.told: // who goes next is decided by deadlines
			c.standing = false
		case q.len() > c.many:
			c.standing = true
		case q.len() == 0:
			c.standing = false
		}
		return
	}
	switch {
	case q.len() == 0:
		c.above, c.standing = false, false
	case c.standing:
	case now-q.oldest() < c.target:
		c.above = false
	case !c.above:
		c.above, c.since = true, now
	case now-c.since >= c.interval:
		c.standing = true
	}
}

// patience is how long one that comes now may wait.
func (c *codel) patience() time.Duration {
	if c.patient {
		return c.wait
	}
	if c.standing {
		return c.target
	}
	return c.interval
}
