package breaker

import (
	"math"
	"time"
)

// Restart has the time of an admitted call begin anew at at: until then its caller was still sending, and what that
// takes says nothing about the dependency. If at is later than now he is not done yet: the call is no evidence before
// the next Restart. Record the permit that it returns instead of permit; recorded before at, it has taken no time.
//
// A probe of the kind Thresholds keeps its lease as it is: a caller who sends for longer makes room for another probe,
// and how his call ends still counts. One of the kind Adaptive takes no place while its caller sends.
//
// It may be called as often as there is news. It takes the lock with the kind Adaptive, and does not allocate.
func Restart(b *Breaker, now time.Duration, permit Permit, at time.Duration) Permit {
	if permit.gen&adaptiveMark != 0 {
		b.loop.restart(now, permit, at)
		permit.start = at
		return permit
	}
	p := b.cur.Load()
	if permit.gen != p.gen || permit.gen == 0 {
		return permit
	}
	was := permit.start
	permit.start = at
	if p.state != Closed && p.state != RampUp { // the others count nothing of calls that are out but leases
		return permit
	}
	h := p.ev.hanging
	if h != nil && was != sending {
		h.end(permit.mark)
	}
	switch {
	case at > now:
		permit.start = sending
	case h != nil:
		if h.due(now) { // else it would begin in a tick that is long over
			b.advance(p, now)
		}
		permit.mark = h.start()
	}
	return permit
}

// sending is the start of a permit of the kind Thresholds whose caller is still sending: it is not among the calls that
// may hang.
const sending = math.MaxInt64

// restart moves the beginning of an attempt that is out. While its caller sends it takes no place of a half-open
// circuit: callers who take long would keep all others out.
func (a *adaptive) restart(now time.Duration, p Permit, at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	serial := p.gen & serials
	if serial == 0 || int(p.mark) >= len(a.flights.places) || a.flights.places[p.mark].serial != serial {
		return
	}
	f := &a.flights.places[p.mark]
	f.start = at
	aside := at > now
	if f.aside == aside {
		return
	}
	if !aside {
		a.moved = now
		busies(a, now)
	}
	f.aside = aside
	change := 1
	if aside {
		change = -1
	}
	if a.flights.aside -= change; aside && a.flights.busy() == 0 {
		a.idle = now
	}
	if a.current() != Closed && !f.foreign && since(serial, a.round) {
		a.out += change
	}
}
