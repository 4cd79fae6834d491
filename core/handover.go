package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// Handover is how far a dependency has the request of an attempt whose body takes its time to come, as a driver sees
// it at one time. Whose time it is follows from that, for all drivers alike.
type Handover struct {
	Began time.Duration // the attempt
	Moved time.Duration // when the dependency was handed something last, or there was something to hand over; 0: never
	Asks  bool          // whoever sends the body is waited for
}

// Since returns when the dependency's time began: with what it was handed last, in this attempt; while the sender is
// waited for it begins now.
func (h *Handover) Since(now time.Duration) time.Duration {
	if h.Asks {
		return now
	}
	at := h.Began
	if h.Moved != 0 { // times may be below zero
		at = max(at, h.Moved)
	}
	return min(at, now)
}

// Until returns when the attempt ends, as far as can be known now, of a call that ends at end: the dependency has
// patience for its part, 0 for any.
func (h *Handover) Until(now, patience, end time.Duration) time.Duration {
	if patience <= 0 {
		return end
	}
	return min(end, clock.Later(h.Since(now), patience))
}

// Tell reports to the call of the attempt what HandedOver has to be told. again is how soon the driver looks again, 0
// if the attempt ends or its answer begins.
func (h *Handover) Tell(c *Call, now, again time.Duration) {
	at := h.Since(now)
	if h.Asks { // it is not late before somebody looks again
		at = clock.Later(now, 2*again)
	}
	HandedOver(c, now, at)
}
