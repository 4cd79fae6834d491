package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// Result is what became of an attempt.
type Result uint8

const (
	// Success is an attempt that the endpoint answered.
	Success Result = 0
	// Failure is an attempt that the endpoint failed. An attempt timeout of ours is one.
	Failure Result = 1
	// Neutral is an attempt that says nothing about the endpoint: the caller left, a policy of ours rejected it, a faster
	// copy won. It is counted nowhere.
	Neutral Result = 2
)

// Balancer chooses among the endpoints of one service. It is shared state: build one per service, and let all attempts
// use it. All methods are safe for concurrent use. Where they are given a time that is older than one they have seen,
// what has happened since stays as it is.
type Balancer struct {
	endpoints []*endpoint
	config    Config
	mayBeOut  int   // endpoints out at once
	limit     int64 // failures in a row

	choice atomic.Pointer[choice]
	line   *line
	ramps  ramps
	zones  *zones // nil: none is preferred
}

// New returns a balancer over the endpoints 0 to endpoints-1, all in the choice. Values of c outside their range are
// moved to its nearest end. Without endpoints, or with a negative number of them, there is nothing to choose.
func New(c Config, endpoints int) *Balancer {
	c = c.WithDefaults()
	n := max(endpoints, 0)
	b := &Balancer{endpoints: make([]*endpoint, n), config: c, mayBeOut: c.mayBeOut(n),
		limit: int64(c.ConsecutiveFailures), line: new(line), ramps: newRamps(c.SlowStart)}
	all := make([]endpoint, n)
	for i := range b.endpoints {
		b.endpoints[i], all[i].ramp = &all[i], warm
		all[i].position.Store(int32(i))
	}
	b.line.newest.Store(b)
	b.choose(0)
	return b
}

// Pick chooses the endpoint of the next attempt, which counts as pending until Done: of two endpoints drawn at random
// from those that are in the choice, the one with fewer attempts pending, or the first drawn where that is equal. rnd
// are 64 uniform random bits. avoid is the endpoint just tried, -1 for none; it is chosen only if all others are out of
// the choice. Pick returns -1 if the balancer has no endpoints. It takes no lock, unless an endpoint's ejection is
// over, or it is time to look at zones.
func (b *Balancer) Pick(now time.Duration, rnd uint64, avoid int) int {
	c := b.at(now)
	at := c.draw(rnd, avoid)
	if at < 0 {
		return -1
	}
	m := &c.in[at]
	m.begun.Add(1)
	if c.timed {
		m.starts.Add(int64(now))
	}
	return int(m.i)
}

// Begin is Pick, and returns the attempt too, where there are endpoints: to end it by its own Done keeps only its
// endpoint in memory, and not the balancer, which may be one of thousands while a stream lasts.
func (b *Balancer) Begin(now time.Duration, rnd uint64, avoid int) (i int, a Attempt) {
	i = b.Pick(now, rnd, avoid)
	if i >= 0 {
		a = Attempt{b.endpoints[i], b.line, b.zones != nil}
	}
	return i, a
}

// Attempt is one that Begin has begun.
type Attempt struct {
	e     *endpoint
	line  *line
	timed bool
}

// Done ends an attempt for which Pick returned i. Call it once for each. It panics if none is pending on i, as
// unlocking an unlocked mutex does: the choice would be wrong from then on. A Success takes no lock, and neither does a
// Failure unless it ejects the endpoint, ends ejections that have not helped, or the endpoint has been ejected lately.
//
// Results that arrive while the endpoint is ejected change nothing, whether the attempt began before the ejection or
// not. After a change of the endpoints they count for the balancer that has carried on.
func (b *Balancer) Done(i int, now time.Duration, r Result) {
	Attempt{b.endpoints[i], b.line, b.zones != nil}.Done(now, r)
}

// Spent takes d, for which the attempt has waited for its own caller, from what the endpoint has taken for it: a client
// who sends slowly makes no zone slow. Call it before Done, as often as there is news.
func (a Attempt) Spent(d time.Duration) {
	if a.timed {
		a.e.starts.Add(int64(d))
	}
}

// Done ends the attempt, as Balancer.Done does. Call it once.
func (a Attempt) Done(now time.Duration, r Result) {
	e := a.e
	if a.timed {
		e.ends.Add(int64(now))
	}
	if ended := e.ended.Add(1); ended > e.begun.Load() {
		e.ended.Add(-1)
		panic("balance: Done without a pending attempt")
	}
	switch r {
	case Success:
		if e.streak.Load() != 0 {
			e.streak.Store(0)
		}
	case Failure:
		e.failures.Add(1)
		a.line.newest.Load().failed(e, now)
	default:
		e.neutrals.Add(1)
	}
}

// failed notes a failure of an endpoint that may be one of b.
func (b *Balancer) failed(e *endpoint, now time.Duration) {
	c := b.at(now)
	streak := e.streak.Add(1)
	i := b.number(e)
	if i < 0 {
		return
	}
	if e.lately.Load() || streak >= b.limit && b.matters(c, i) {
		b.line.mu.Lock()
		defer b.line.mu.Unlock()
		b.consider(i, now)
	}
}

// matters reports whether as many failures in a row as eject endpoint i change anything.
func (b *Balancer) matters(c *choice, i int) bool {
	return c.ejected < b.mayBeOut && b.othersDoBetter(c, i) || c.ejected > 0 && b.allFail(c)
}

// number is which endpoint of b e is, -1 for none.
func (b *Balancer) number(e *endpoint) int {
	if i := int(e.position.Load()); i < len(b.endpoints) && b.endpoints[i] == e {
		return i
	}
	return -1
}

// othersDoBetter reports whether an endpoint in the choice, other than i, has not failed last.
func (b *Balancer) othersDoBetter(c *choice, i int) bool {
	for k := range c.in {
		if m := &c.in[k]; int(m.i) != i && m.streak.Load() == 0 {
			return true
		}
	}
	return false
}

// allFail reports whether each endpoint in the choice has failed as often in a row as one that is ejected.
func (b *Balancer) allFail(c *choice) bool {
	for k := range c.in {
		if c.in[k].streak.Load() < b.limit {
			return false
		}
	}
	return true
}

// consider notes a failure and ejects endpoint i if it is time to and allowed. What is counted while it is out is
// forgotten when it comes back. When those that are left all fail, ejections have not helped, and end.
func (b *Balancer) consider(i int, now time.Duration) {
	e, c := b.endpoints[i], b.choice.Load()
	if e.out {
		return
	}
	e.forgive(now, b.config.BaseEjectionTime)
	if c.ejected > 0 && b.allFail(c) {
		b.allBack(now)
		return
	}
	if e.streak.Load() < b.limit || e.sinceReturn() < b.limit || c.ejected >= b.mayBeOut || !b.othersDoBetter(c, i) {
		return
	}
	e.ejections++
	e.multiplier = min(e.multiplier+1, b.config.maxMultiplier())
	e.out, e.since, e.until = true, now, later(now, b.config.ejection(e.multiplier))
	e.lately.Store(true)
	b.choose(now)
}

// at returns the choice at a time, after having brought it up to that time.
func (b *Balancer) at(now time.Duration) *choice {
	if c := b.choice.Load(); now < c.until {
		return c
	}
	b.line.mu.Lock()
	defer b.line.mu.Unlock()
	c := b.choice.Load()
	if now < c.until || c.until == never {
		return c
	}
	if b.line.newest.Load() == b { // else another one decides
		for _, e := range b.endpoints {
			if e.out && now >= e.until {
				e.comeBack()
				b.ramps.begin(e, e.until)
			}
		}
		b.look(now)
	}
	return b.choose(now)
}

// allBack ends all ejections, at once: what is left cannot do it alone.
func (b *Balancer) allBack(now time.Duration) {
	for _, e := range b.endpoints {
		if e.out {
			e.until = min(e.until, now)
			e.comeBack()
		}
	}
	b.choose(now)
}

const never = time.Duration(math.MaxInt64)

// later is t + d, or the end of time.
func later(t, d time.Duration) time.Duration {
	if t > never-d {
		return never
	}
	return t + d
}
