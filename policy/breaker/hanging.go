package breaker

import (
	"sync/atomic"
	"time"
)

const (
	// ticksPerThreshold is how finely start times are kept. A call counts as hanging once it has certainly
	// reached the slow threshold, and at the latest one eighth of the threshold after that.
	ticksPerThreshold = 8
	// overdueTicks later, even a call that began at the very end of its tick has reached the threshold.
	overdueTicks = ticksPerThreshold + 1
	// slots is a power of two above overdueTicks.
	slots = 16
)

// hanging counts the calls in flight by the tick in which they began, and those among them that have reached
// the slow threshold. Memory is constant, whatever the number of calls: a slot holds a tick and how many of its
// calls are out; when the tick has become overdue, that number moves on to the overdue count.
type hanging struct {
	pace                  // one step is one tick
	tick    atomic.Uint32 // the current tick; written before the end of the step
	overdue atomic.Int64
	_       [cacheLine]byte
	ring    [slots]atomic.Uint64 // tick<<32 | calls
}

func newHanging(threshold time.Duration) *hanging {
	h := &hanging{}
	h.init(threshold, ticksPerThreshold)
	return h
}

// age is how many ticks before tick the slot's calls began, and how many calls that are.
func age(slot uint64, tick uint32) (ticks int32, calls int64) {
	return int32(tick - uint32(slot>>32)), int64(uint32(slot))
}

// start notes a call that begins in the current tick, and returns the tick.
func (h *hanging) start() uint32 {
	for {
		tick := h.tick.Load()
		slot := &h.ring[tick%slots]
		old := slot.Load()
		switch ticks, calls := age(old, tick); {
		case ticks == 0:
			if slot.CompareAndSwap(old, old+1) {
				return tick
			}
		case ticks > 0: // left from an earlier round, so calls still in it are overdue
			h.overdue.Add(calls)
			if slot.CompareAndSwap(old, uint64(tick)<<32|1) {
				return tick
			}
			h.overdue.Add(-calls)
		} // below zero: the tick has moved on since we looked
	}
}

// end takes back what start noted. Done once too often it can hide one hanging call, but no count goes below zero.
func (h *hanging) end(tick uint32) {
	slot := &h.ring[tick%slots]
	for {
		old := slot.Load()
		if ticks, calls := age(old, tick); ticks != 0 || calls == 0 {
			break // it has moved on
		}
		if slot.CompareAndSwap(old, old-1) {
			return
		}
	}
	for {
		n := h.overdue.Load()
		if n <= 0 || h.overdue.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// moveTo makes the tick of now the current one and moves overdue slots on. It reports whether the tick is new.
// The breaker's lock is held, so that nobody judges a count that is only halfway.
func (h *hanging) moveTo(now time.Duration) bool {
	n := h.passed(now, slots)
	if n == 0 {
		return false
	}
	tick := h.tick.Load() + n
	h.tick.Store(tick)
	for i := range h.ring {
		for slot := &h.ring[i]; ; {
			old := slot.Load()
			ticks, calls := age(old, tick)
			if ticks < overdueTicks || calls == 0 {
				break
			}
			h.overdue.Add(calls) // before the slot is emptied: a call that ends now must find itself in one of the two
			if slot.CompareAndSwap(old, old>>32<<32) {
				break
			}
			h.overdue.Add(-calls)
		}
	}
	h.advance(now, n, slots)
	return true
}

// at counts the calls that hang at now, without moving anything.
func (h *hanging) at(now time.Duration) int64 {
	n := h.overdue.Load()
	tick := h.tick.Load() + h.passed(now, slots)
	for i := range h.ring {
		if ticks, calls := age(h.ring[i].Load(), tick); ticks >= overdueTicks {
			n += calls
		}
	}
	return n
}
