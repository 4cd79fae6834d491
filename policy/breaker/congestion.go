package breaker

import (
	"math"
	"time"
)

// congestion is what a breaker knows of a dependency that answers, but too late, because it has more to do than it can.
// The breaker's lock guards it.
type congestion struct {
	usual  time.Duration // what the quicker successes take while the circuit is closed
	prompt time.Duration // when the last success in time was, idle times left out
	late   float32       // surprise, in nats, at the successes since, which were late
	rate   successRate
	places float64       // half-open: how many attempts may be out
	limits bool          // half-open because of it
	cut    uint32        // half-open: serial of the last attempt of the round before
	least  time.Duration // that a success has taken while few were out, since the circuit was closed; 0: not known
}

// successRate is how many successes there were lately, in two windows, of which the second is not over.
type successRate struct {
	from    time.Duration
	was, is float64
	known   bool // how many there were in the first
}

// leastForRate is how many successes a rate needs.
const leastForRate = 8

// note notes a success in windows of such a length.
func (r *successRate) note(now, span time.Duration) {
	r.turn(now, span)
	r.is++
}

func (r *successRate) turn(now, span time.Duration) {
	switch passed := now - r.from; {
	case passed < span:
	case passed < 2*span:
		r.from, r.was, r.is, r.known = r.from+span, r.is, 0, r.is > 0
	default:
		r.from, r.was, r.is, r.known = now, 0, 0, false
	}
}

// at returns how many successes there are in a window; 0 if there are too few to say.
func (r *successRate) at(now, span time.Duration) float64 {
	r.turn(now, span)
	n := r.is + r.was*(1-float64(now-r.from)/float64(span))
	if n < leastForRate || !r.known {
		return 0
	}
	return n
}

// tardy returns the age from which a success is late: it has taken half of what callers give it, unless that is usual,
// or the dependency is no quicker with less to do.
func (a *adaptive) tardy() time.Duration {
	limit := a.learned.limit()
	return max(min(max(limit/2, 2*a.usual, 2*a.least), limit-limit/64), shortest)
}

// learn learns how long successes take while the circuit is closed: the lower quartile, in small steps, so that a queue
// that grows for a while is not what is usual.
func (c *congestion) learn(age time.Duration) {
	switch {
	case c.usual == 0:
		c.usual = age
	case age > c.usual:
		c.usual += c.usual/1024 + 1
	default:
		c.usual -= 3 * c.usual / 1024
	}
}

// congested reports whether it is too surprising that all successes since the last prompt one came late, if any came.
func (a *adaptive) congested(now time.Duration) bool {
	if a.current() != Closed {
		return false
	}
	if a.crowded(now) {
		return true
	}
	if a.late == 0 {
		return false
	}
	a.learned.surprises(&a.doubts)
	return a.flights.lateness(now, a.prompt, a.tardy(), &a.doubts)+a.late+a.ended >= alarm
}

// crowded reports whether more attempts are out than chance explains, and than are answered in time at the rate of
// successes lately.
func (a *adaptive) crowded(now time.Duration) bool {
	out, most := float64(a.flights.busy()), a.manageable(now)
	if most == 0 || out <= most || out <= a.typical || !a.learned.strained() {
		return false
	}
	return out*math.Log(out/max(a.typical, 1e-3))-(out-a.typical) >= alarm
}

// lateness is the sum of the surprises at the attempts that are late, since a success in time.
func (f *flights) lateness(now, good, tardy time.Duration, d *doubts) (nats float32) {
	for i := range f.places {
		start := f.places[i].start
		if f.places[i].serial == 0 || now-start < tardy {
			continue
		}
		nats += d[class(now-start)]
		if start < good {
			nats -= d[class(good-start)]
		}
	}
	return nats
}

// manageable returns how many attempts are answered in time at the rate of successes lately (Little's law); 0 if nobody
// knows.
func (a *adaptive) manageable(now time.Duration) float64 {
	tardy := a.tardy()
	return 2 * a.rate.at(now, tardy/2)
}

// limit begins to limit how many attempts are out: to as many as are answered in time, by Little's law.
func (a *adaptive) limit(now time.Duration, share float64) Change {
	a.cut = a.flights.serial
	a.out, a.round = a.flights.count()
	a.first, a.limits, a.least = a.round, true, 0
	most := a.manageable(now)
	if most == 0 {
		most = float64(a.out) / max(share, 1)
	}
	a.places = max(2, a.typical, most)
	a.limited = now
	return a.enter(HalfOpen, now, reasonTardy)
}

// answered moves the number of places by a success while half-open: up by one at most, and down, once in a round, to as
// many as would have been answered in time. last is the serial of the latest attempt.
func (c *congestion) answered(age, tardy time.Duration, serial, last uint32) {
	share := float64(age) / float64(tardy)
	switch {
	case age <= 2*c.usual: // nothing stands in a queue
		c.places++
	case share <= 1:
		c.places += 1 - share
	case since(serial, c.cut):
		c.shrink(share, last)
	}
}

// shrink divides the number of places, and begins a round after the latest attempt.
func (c *congestion) shrink(by float64, last uint32) {
	c.places = max(1, c.places/by)
	c.cut = last
}

// floor notes what a success takes while no more attempts are out than usual: with less to do nobody is quicker.
func (a *adaptive) floor(age time.Duration, serial uint32) {
	if age < a.least || a.least == 0 && a.current() == HalfOpen && since(serial, a.cut) &&
		a.places <= max(2, a.typical) {
		a.least = age
	}
}

// count returns how many attempts are out whose results are somebody's, those aside left out, and the serial before
// that of the oldest.
func (f *flights) count() (n int, before uint32) {
	before = f.serial
	for i := range f.places {
		p := &f.places[i]
		if p.serial == 0 || p.foreign {
			continue
		}
		if !p.aside {
			n++
		}
		if !since(p.serial, before) {
			before = p.serial - 1
		}
	}
	return n, before
}
