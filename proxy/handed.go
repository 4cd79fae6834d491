package proxy

import (
	"time"

	"github.com/abate-go/abate/core"
)

// handed returns how far the body of a has been handed over, and whether the service has all of it. streams is false
// for a body that is no stream.
func handed(a *answer) (h core.Handover, whole, streams bool) {
	b := a.body
	switch {
	case b.upload != nil:
		u := b.upload
		whole = u.done.Load() // before the time, which was set before
		h.Asks = !whole && u.granted && u.asking.Load()
		h.Began, h.Moved = u.began, time.Duration(u.moved.Load())
	case b.feed != nil:
		f := b.feed
		behind := f.behind.Load()
		whole = f.over.Load() && !behind
		h.Asks = !whole && !behind && f.asking.Load()
		h.Began, h.Moved = a.h2.began, time.Duration(f.moved.Load())
	default:
		return h, false, false
	}
	return h, whole, true
}

// followBody gives an attempt whose client is still sending its time anew, and has the guard know. The time of the call
// ends it all the same. It reports whether there is more to follow. The client of a gRPC call that does not go on may
// be waiting for a message, or have none: nobody can tell, so that is its time too.
func followBody(a *answer, now time.Duration) (more bool) {
	h, whole, streams := handed(a)
	if !streams {
		return false
	}
	date(a, h.Since(now))
	if a.patience > 0 {
		a.until = max(a.until, h.Until(now, a.patience, a.callEnd))
	}
	if a.call != nil {
		h.Tell(a.call, now, glance)
	}
	return !whole
}

// nextLook is when to look again how far the client is. The second time is soon: at the first, what reads from the
// client has hardly begun.
func nextLook(a *answer, now time.Duration) time.Duration {
	if a.body.kind == streamed && !a.looked {
		a.looked = true
		return later(now, glance/32)
	}
	return later(now, glance)
}

// tellHandedOver has the guard know when the service had the request of an attempt that has ended, or whose answer has
// begun.
func tellHandedOver(a *answer) {
	if h, _, streams := handed(a); streams && a.call != nil {
		now := core.Now()
		h.Tell(a.call, now, 0)
		date(a, h.Since(now))
	}
}

// date has the endpoint's time of a begin at since.
func date(a *answer, since time.Duration) {
	if a.picked && since > a.dated {
		a.begun.Spent(since - a.dated)
		a.dated = since
	}
}

// fill reads the body of an attempt that is to be held, if that has not been done before the call: its client asked
// whether to send it. It waits for the attempt's time at most, for the call has its place meanwhile. The attempt's time
// begins when the body is there. It returns the time then.
func fill(a *answer, now time.Duration) (time.Duration, error) {
	if a.body.kind != toHold {
		return now, nil
	}
	if a.call == nil {
		err := a.body.fill(a.until)
		return core.Now(), err
	}
	core.HandedOver(a.call, now, a.callEnd)
	err := a.body.fill(a.until)
	now = core.Now()
	core.HandedOver(a.call, now, now)
	if a.patience > 0 {
		a.until = min(a.callEnd, later(now, a.patience))
		a.head.until = a.until
	}
	return now, err
}
