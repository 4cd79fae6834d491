package inbound

import "time"

// lending is what an Arrival knows of its slot's being lent.
type lending struct {
	lent  bool
	since time.Duration // when it was lent last
	away  time.Duration // for how long it was lent, all in all
}

// Lend gives the slot of a request that is handled to others, while the service waits for the request's client:
// for the rest of what it sends, or until it takes more of the answer. A slot that is lent already stays so.
// Resume ends that, or Done.
func (a *Arrival) Lend(now time.Duration) {
	if a.lent {
		return
	}
	a.lent, a.since = true, now
	if a.held {
		a.s.shedder.Lend(now, &a.permit)
	}
}

// Resume takes the slot again: the client has done its part. It does not queue, whatever the limit says: what has
// begun may hold what others wait for. Without a Lend before it, it does nothing.
func (a *Arrival) Resume(now time.Duration) {
	if !a.lent {
		return
	}
	a.lent = false
	a.away += now - a.since
	if a.held {
		a.s.shedder.Resume(now, &a.permit)
	}
}

// Holds reports whether the request has a slot of its gate, lent or not: one that has none has none to lend.
func (a *Arrival) Holds() bool { return a.held }

// Away is for how long the slot has been lent until now: the client's part of the time that the request takes.
func (a *Arrival) Away(now time.Duration) time.Duration {
	if a.lent {
		return a.away + now - a.since
	}
	return a.away
}
