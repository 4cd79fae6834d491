package proxy

import (
	"time"

	"github.com/abate-go/abate/core"
)

// bodyProgress is how far a service has the request whose body comes from the client as a stream.
type bodyProgress struct {
	moved time.Duration // when it was handed something last, or there was something to hand over
	whole bool          // it has all of it
	asks  bool          // the client is waited for
}

// handed returns how far the body of a has been handed over. False for a body that is no stream.
func handed(a *answer) (p bodyProgress, streams bool) {
	b := a.body
	switch {
	case b.upload != nil:
		u := b.upload
		p.whole = u.done.Load() // before the time, which was set before
		p.asks = !p.whole && u.granted && u.asking.Load()
		p.moved = max(u.began, time.Duration(u.moved.Load()))
	case b.feed != nil:
		f := b.feed
		p.whole = f.over.Load()
		p.asks = !p.whole && f.asking.Load()
		p.moved = max(a.h2.began, time.Duration(f.lastAt.Load()))
	default:
		return p, false
	}
	return p, true
}

// since returns when the service's time began: while the client is waited for, that is now.
func (p *bodyProgress) since(now time.Duration) time.Duration {
	if p.asks {
		return now
	}
	return min(p.moved, now)
}

// followBody gives an attempt whose client is still sending its time anew, and has the guard know. The time of the call
// ends it all the same. It reports whether there is more to follow. The client of a gRPC call that does not go on may
// be waiting for a message, or have none: nobody can tell, so that is its time too.
func followBody(a *answer, now time.Duration) (more bool) {
	p, streams := handed(a)
	if !streams {
		return false
	}
	since := p.since(now)
	date(a, since)
	if a.patience > 0 {
		a.until = max(a.until, min(a.callEnd, later(since, a.patience)))
	}
	switch {
	case a.call == nil:
	case p.asks: // it is not late before somebody looks again
		core.HandedOver(a.call, now, later(now, 2*glance))
	default:
		core.HandedOver(a.call, now, since)
	}
	return !p.whole
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
func tellHandedOver(a *answer, now time.Duration) {
	if p, streams := handed(a); streams && a.call != nil {
		since := p.since(now)
		core.HandedOver(a.call, now, since)
		date(a, since)
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
// begins when the body is there.
func fill(a *answer) error {
	if a.body.kind != toHold || a.call == nil {
		return a.body.fill(a.until)
	}
	core.HandedOver(a.call, core.Now(), a.callEnd)
	err := a.body.fill(a.until)
	now := core.Now()
	core.HandedOver(a.call, now, now)
	if a.patience > 0 {
		a.until = min(a.callEnd, later(now, a.patience))
		a.head.until = a.until
	}
	return err
}
