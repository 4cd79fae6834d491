package balance

import (
	"math"
	"time"
)

// zones are which endpoints are in the caller's own zone.
type zones struct {
	own   string
	local []bool // of endpoints, by number
	known bool   // some are, and some are not
}

// Locate says in which zone each endpoint is, "" where nobody knows, and which zone is the caller's own. Endpoints
// there get attempts rather than others, as long as they do no worse: see the package comment. With own "", with
// nothing in that zone, or with everything there, no endpoint is preferred. Call Locate before b is used, and before
// Carry.
func (b *Balancer) Locate(own string, in []string) {
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	b.zones = nil
	if own == "" {
		return
	}
	z := &zones{own: own, local: make([]bool, len(b.endpoints))}
	n := 0
	for i := range min(len(z.local), len(in)) {
		if z.local[i] = in[i] == own; z.local[i] {
			n++
		}
	}
	z.known = n > 0 && n < len(z.local)
	b.zones = z
	b.choose(0)
}

const (
	doubts     = 3 // standard deviations that are no chance any more
	lookEvery  = time.Second / 2
	least      = 8       // attempts of each kind, before they are compared
	suspicious = 3       // failures, while the others have not half as many for what they get
	oldest     = 60      // looks after which they are forgotten
	elsewhere  = 1. / 64 // of the attempts go to other zones in any case, or there would be nothing to compare
	rise       = 1. / 32 // of the way to all that the own zone may get
	slower     = 1.25    // the own zone may be
	finest     = 1 << 12 // how many times as often an endpoint of the own zone may be drawn
	grain      = 1 << 4  // parts of a share
)

// tally is what came of attempts.
type tally struct {
	at            time.Duration
	area          int64 // attempts pending, summed up over time
	ended, failed int64
}

// evidence is how the own zone does, compared with the others.
type evidence struct {
	own          string
	trust        float64 // 0: it gets what every endpoint gets; 1: all that it may
	next         time.Duration
	looks        int
	usual        float64 // seconds that attempts took in the own zone when it last did as well
	here, beyond sample
}

// sample is what came of attempts in one part of the endpoints.
type sample struct{ seconds, ended, failed float64 }

// look compares how the endpoints of the own zone and the others have done, when it is time. Called with the lock.
func (b *Balancer) look(now time.Duration) {
	z, v := b.zones, &b.line.zone
	if z == nil || !z.known {
		return
	}
	if v.own != z.own {
		*v = evidence{own: z.own}
	}
	if now < v.next {
		return
	}
	first := v.next == 0
	v.next = later(now, lookEvery)
	for i, e := range b.endpoints {
		s := &v.beyond
		if z.local[i] {
			s = &v.here
		}
		s.add(e, now)
	}
	if first { // all that was before is of no zone
		v.here, v.beyond = sample{}, sample{}
		return
	}
	v.looks++
	verdict := v.here.against(v.beyond)
	if verdict == 0 && v.beyond.ended < least && v.here.ended >= least && v.usual > 0 && v.here.takes() > 2*v.usual {
		verdict = -1 // less goes there, and then there is more to compare with
	}
	switch {
	case verdict == 0 && v.looks < oldest:
		return
	case verdict < 0:
		v.trust /= 2
	case verdict > 0:
		v.trust, v.usual = min(v.trust+rise, 1), v.here.takes()
	}
	v.looks, v.here, v.beyond = 0, sample{}, sample{}
}

// meet prepares for the looks at a new endpoint.
func (v *evidence) meet(e *endpoint) { e.seen.at = max(v.next-lookEvery, 0) }

// add adds what an endpoint has done since the last look.
func (s *sample) add(e *endpoint, now time.Duration) {
	t := tally{at: now, ended: e.ended.Load(), failed: e.failures.Load()}
	pending := e.pending()
	t.area = e.ends.Load() - e.starts.Load() + pending*int64(now)
	was := e.seen
	e.seen = t
	area := t.area - was.area
	most := (t.ended - was.ended + pending) * int64(now-was.at)
	if area < 0 || area > most { // an attempt was just being counted
		return
	}
	s.seconds += time.Duration(area).Seconds()
	s.ended += float64(t.ended - was.ended)
	s.failed += float64(t.failed - was.failed)
}

// takes is how many seconds an attempt takes.
func (s sample) takes() float64 { return s.seconds / s.ended }

// against is -1 if s does worse than the others beyond chance, 1 if it does as well, 0 if nothing is known for certain.
func (s sample) against(o sample) int {
	if s.failed >= suspicious && s.failed*o.ended > 2*o.failed*s.ended || s.failed >= suspicious && o.ended == 0 {
		return -1 // less goes there, and then there is more to compare with
	}
	if s.ended < least || o.ended < least {
		return 0
	}
	fails, failsThere := s.failed/s.ended, o.failed/o.ended
	together := (s.failed + o.failed) / (s.ended + o.ended)
	chance := doubts * math.Sqrt(together*(1-together)*(1/s.ended+1/o.ended))
	// The time that an attempt takes, by Little's law. It varies about as much as it is long.
	takes, takesThere := s.takes(), o.takes()
	doubt := doubts * math.Hypot(takes/math.Sqrt(s.ended), takesThere/math.Sqrt(o.ended))
	switch {
	case fails > failsThere+chance, takes > slower*takesThere+doubt:
		return -1
	case fails <= failsThere && takes <= slower*takesThere:
		return 1
	}
	return 0
}

// prefer has endpoints of the own zone drawn more often.
func (c *choice) prefer(b *Balancer, now time.Duration) {
	z, v := b.zones, &b.line.zone
	if z == nil || !z.known {
		return
	}
	c.until = min(c.until, max(v.next, now+1))
	if now == fromThere {
		c.until = fromThere
	}
	var here, there float64
	for at, m := range c.in {
		if z.local[m.i] {
			here += float64(c.shares[at])
		} else {
			there += float64(c.shares[at])
		}
	}
	if here == 0 || there == 0 {
		return
	}
	all, own := 0., 0.
	for i := range b.endpoints {
		w := 1.
		if b.ramps.weights != nil {
			w = float64(b.ramps.weights[i])
		}
		if all += w; z.local[i] {
			own += w
		}
	}
	share := ownShare(here/(here+there), own/all, v.trust)
	ratio := math.Min(share/(1-share)*there/here, finest)
	for at, m := range c.in {
		times := 1.
		if z.local[m.i] {
			times = ratio
		}
		c.shares[at] = uint32(math.Round(float64(c.shares[at]) * times * grain))
	}
}

// ownShare is the share of the attempts that the own zone gets, which has that part of what all endpoints in the choice
// can do, and that part of what all endpoints can do when all are in the choice.
func ownShare(now, whole, trust float64) float64 {
	most := math.Max(now, math.Min(1-elsewhere, now/whole))
	return now + trust*(most-now)
}

// State is what a balancer knows of its endpoints together, for pages and metrics.
type State struct {
	In    int  // endpoints in the choice
	Panic bool // so few are left that health checks are not believed

	Zone      string  // the caller's own; "" if nobody knows it
	Here      int     // endpoints in it
	HereIn    int     // of those, in the choice
	Share     float64 // of the attempts that they get, as far as chance decides
	Preferred bool    // some endpoints are in the own zone, and some are not
}

// State returns the state at a time. It takes the lock that ejections take, and time in proportion to the endpoints.
func (b *Balancer) State(now time.Duration) State {
	b.at(now)
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	c := b.choice.Load()
	s := State{In: len(c.in), Panic: c.panics}
	if b.zones == nil {
		return s
	}
	s.Zone, s.Preferred = b.zones.own, b.zones.known
	for _, local := range b.zones.local {
		if local {
			s.Here++
		}
	}
	here, all := 0., 0.
	for at, m := range c.in {
		share := 1.
		if c.shares != nil {
			share = float64(c.shares[at])
		}
		if all += share; b.zones.local[m.i] {
			s.HereIn++
			here += share
		}
	}
	if all > 0 {
		s.Share = here / all
	}
	return s
}
