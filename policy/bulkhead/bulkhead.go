package bulkhead

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Bulkhead hands out permits. It is shared state: all calls to one dependency use the
// same Bulkhead, and one built per call limits nothing. All methods are safe for
// concurrent use.
type Bulkhead struct {
	// word holds the calls in flight in its upper half and the waiting ones in its lower
	// half, so that one atomic operation sees both. In flight is on top because a
	// surplus release then runs over the end instead of into the other half.
	word   atomic.Uint64
	limit  atomic.Int64 // of the calls in flight
	beside atomic.Int64 // what limit is higher by for those whose callers are still sending
	away   atomic.Int64 // calls that have let their permit go and come back for one

	mu       sync.Mutex // guards what follows and every change of the waiting half
	queue    queue
	again    queue // of those that come back: they go first
	maxQueue int   // 0 is unlimited
	noQueue  bool
	order    Order
	pressed  bool  // not all who wait will be served in time
	sending  int64 // calls in flight whose callers are still sending
	learner  *learner
}

const (
	oneInFlight = 1 << 32
	oneWaiting  = 1
	unlimited   = math.MaxInt32
	most        = 1_000_000
)

func inFlight(word uint64) int64 { return int64(word >> 32) }
func waiting(word uint64) int64  { return int64(word & (oneInFlight - 1)) }

// Verdict is the answer to a caller that asked to wait.
type Verdict uint8

// The answers of [Bulkhead.Enqueue].
const (
	Admitted Verdict = iota // a permit became free: go on, and Release it
	Queued                  // wait for Wake, or Abandon
	Full                    // no permit is free and nobody may wait any more
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "admitted"
	case Queued:
		return "queued"
	case Full:
		return "full"
	}
	return "unknown"
}

// State is what a bulkhead looks like at one moment.
type State struct {
	InFlight int // permits taken; above Limit for a while after Limit was lowered
	Sending  int // permits of calls whose callers are still sending, see Suspend
	Limit    int // permits there are; 0 is unlimited
	Queued   int // callers that wait
	MaxQueue int // callers that may wait, those that come back aside; 0 is unlimited
	Away     int // calls in back-off that have let their permit go, until they have another
	Learned  Learned
}

// New returns a bulkhead. Values outside their range are moved to the nearest end. One
// that is off still counts the calls in flight, so that it can be switched on later.
func New(c Config) *Bulkhead {
	b := &Bulkhead{}
	b.Reconfigure(c)
	return b
}

// TryAcquire takes a permit if one is free and nobody waits for it. It never blocks and
// takes no lock. On true the caller must call Release once.
func (b *Bulkhead) TryAcquire() bool {
	for {
		word := b.word.Load()
		if waiting(word) != 0 || inFlight(word) >= b.limit.Load() {
			return false
		}
		if b.word.CompareAndSwap(word, word+oneInFlight) {
			return true
		}
	}
}

// Enqueue asks for a permit or a place in the queue, after TryAcquire failed. On Admitted
// the caller has a permit and Wake is not called. On Queued it waits for Wake, which may
// already have been called when Enqueue returns. On Full it is refused.
func (b *Bulkhead) Enqueue(now time.Duration, w *Waiter) Verdict {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.queued {
		return Queued
	}
	for {
		word := b.word.Load()
		next, verdict := word+oneInFlight, Admitted
		if waiting(word) != 0 || inFlight(word) >= b.limit.Load() {
			// One that comes back has been let in once, and has slept: it may wait again.
			if !w.Again && (b.noQueue || b.maxQueue > 0 && waiting(word) >= int64(b.maxQueue)) || waiting(word) >= most {
				return Full
			}
			next, verdict = word+oneWaiting, Queued
		}
		if b.word.CompareAndSwap(word, next) {
			if verdict == Queued {
				b.push(now, w)
			}
			return verdict
		}
	}
}

// push puts w at the end of its queue, and looks whether those in front of it get along. mu is held.
func (b *Bulkhead) push(now time.Duration, w *Waiter) {
	w.since = now
	b.line(w).push(w)
	if o := b.queue.oldest; o != nil && now-o.since > o.Until-now {
		b.pressed = true
	}
}

// line is the queue of w.
func (b *Bulkhead) line(w *Waiter) *queue {
	if w.Again {
		return &b.again
	}
	return &b.queue
}

// Abandon ends the wait of w, for which Enqueue returned Queued: its time is up or its
// caller left. True means that w has left the queue. False means that w has been given a
// permit already: the caller owns it and must use or Release it. Its Wake has been
// called, or will be.
func (b *Bulkhead) Abandon(w *Waiter) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !w.queued {
		return false
	}
	b.pressed = true
	b.take(w)
	b.word.Add(^uint64(oneWaiting - 1))
	return true
}

// take takes w out of its queue. With the last one the pressure is gone. mu is held.
func (b *Bulkhead) take(w *Waiter) {
	b.line(w).remove(w)
	if b.queue.oldest == nil && b.again.oldest == nil {
		b.pressed = false
	}
}

// Pause is Release for a call that comes back for another permit, after its back-off.
// Call Back once, when it has that or when it has ended without.
func (b *Bulkhead) Pause() {
	b.away.Add(1)
	b.Release()
}

// Back ends what Pause began.
func (b *Bulkhead) Back() { b.away.Add(-1) }

// Release gives one permit back and passes it on to a waiter, if there is one, whose Wake
// it calls. It panics when no permit is out, as unlocking an unlocked mutex does: the
// limit would not hold any more.
func (b *Bulkhead) Release() {
	word := b.word.Add(^uint64(oneInFlight - 1))
	if inFlight(word) > unlimited {
		b.word.Add(oneInFlight)
		panic("bulkhead: Release without a permit")
	}
	if waiting(word) != 0 {
		b.admit()
	}
}

// admit gives the free permits to those who wait. Whoever makes a permit free while
// somebody waits calls it, so that when nobody is in here and somebody waits, no permit
// is free. It takes the lock once per waiter because Wake is called without it.
func (b *Bulkhead) admit() {
	for {
		word := b.word.Load()
		if waiting(word) == 0 || inFlight(word) >= b.limit.Load() {
			return
		}
		if w := b.next(); w != nil && w.Wake != nil {
			w.Wake()
		}
	}
}

// next takes the next waiter out of the queue and gives it a permit.
func (b *Bulkhead) next() *Waiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	word := b.word.Load()
	// While somebody waits nobody else takes a permit, and nobody else stops waiting
	// without the lock, so what is free now stays free.
	if waiting(word) == 0 || inFlight(word) >= b.limit.Load() {
		return nil
	}
	line := &b.again
	if line.oldest == nil {
		line = &b.queue
	}
	w := line.oldest
	if b.order == LIFO || b.order == Adaptive && b.pressed {
		w = line.newest
	}
	b.take(w)
	b.word.Add(oneInFlight - oneWaiting)
	return w
}

// Busy reports whether a call holds a permit, or has let one go and comes back.
func (b *Bulkhead) Busy() bool { return inFlight(b.word.Load()) > 0 || b.away.Load() > 0 }

// Scarce reports whether the permits are scarce, see the function of that name.
func (b *Bulkhead) Scarce() bool {
	beside := b.beside.Load()
	return Scarce(inFlight(b.word.Load())-beside, b.limit.Load()-beside)
}

// Scarce reports whether fewer than a quarter of limit permits, or workers, are free while used of
// them are taken: whoever holds one should not wait with it for long.
func Scarce(used, limit int64) bool { return 4*used > 3*limit }

// Reconfigure puts c into effect. Calls in flight keep their permits and waiting callers
// their places. A raised limit admits waiting callers at once, and their Wake is called; a
// lowered one takes effect as calls end. A shorter queue refuses newcomers and drains.
func (b *Bulkhead) Reconfigure(c Config) {
	b.mu.Lock()
	b.learn(c)
	b.maxQueue = min(max(c.MaxQueue, 0), most)
	b.noQueue = c.NoQueue
	b.order = c.Order
	if b.order != FIFO && b.order != LIFO {
		b.order = Adaptive
	}
	b.mu.Unlock()
	b.admit()
}

// State returns how many calls are in flight and waiting, both at the same moment.
func (b *Bulkhead) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	word, limit := b.word.Load(), b.limit.Load()
	if l := b.learner; l != nil {
		limit = l.shown(b.sending)
	}
	if limit == unlimited {
		limit = 0
	}
	return State{InFlight: int(inFlight(word)), Sending: int(b.sending), Limit: int(limit),
		Queued: int(waiting(word)), MaxQueue: b.maxQueue, Away: int(b.away.Load()), Learned: b.learner.learned()}
}
