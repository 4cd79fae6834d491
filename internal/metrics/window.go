package metrics

import (
	"sync/atomic"
	"time"
)

// window counts attempts and the calls they were sent for over the last minute. Each second has a slot, one word that
// holds the minute it is about, the calls and the attempts; a slot begins anew when its second comes again.
type window struct {
	origin atomic.Pointer[time.Time] // where the events' clock began; nil before the first event
	slots  [seconds]atomic.Uint64
}

const (
	seconds   = 60
	countBits = 22 // four million attempts a second, then the slot is full
	countMask = 1<<countBits - 1
	oneCall   = 1 << countBits
)

// add counts one attempt, sent at a time of the events' clock. first reports whether it is the first of its call.
func (w *window) add(at time.Duration, first bool) {
	if w.origin.Load() == nil {
		origin := time.Now().Add(-at)
		w.origin.CompareAndSwap(nil, &origin)
	}
	minute, slot := place(at)
	sent := uint64(1)
	if first {
		sent += oneCall
	}
	for s := &w.slots[slot]; ; {
		old := s.Load()
		next := old + sent
		switch {
		case old>>(2*countBits) != minute:
			next = minute<<(2*countBits) + sent
		case old&countMask == countMask:
			return
		}
		if s.CompareAndSwap(old, next) {
			return
		}
	}
}

// place returns the minute, of which only the lowest bits count, and the second of it. at may be negative: its origin
// is arbitrary.
func place(at time.Duration) (minute, second uint64) {
	s := (uint64(at) + 1<<62) / uint64(time.Second)
	return s / seconds & (1<<(64-2*countBits) - 1), s % seconds
}

// ratio returns the attempts sent per call over the last minute; 1 when there were none.
func (w *window) ratio() float64 {
	origin := w.origin.Load()
	if origin == nil {
		return 1
	}
	minute, second := place(time.Since(*origin))
	const minutes = 1<<(64-2*countBits) - 1
	var attempts, calls uint64
	for i := range w.slots {
		latest := minute
		if uint64(i) > second {
			latest = (minute - 1) & minutes
		}
		s := w.slots[i].Load()
		// A slot of the next minute is about now, as seen by somebody whose clock is a moment ahead of ours.
		if of := s >> (2 * countBits); of == latest || of == (latest+1)&minutes {
			attempts += s & countMask
			calls += s >> countBits & countMask
		}
	}
	if attempts == 0 {
		return 1
	}
	return float64(attempts) / float64(max(calls, 1))
}
