package balance

import (
	"math"
	"sync"
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
	endpoints []endpoint
	config    Config
	mayBeOut  int   // endpoints out at once
	limit     int64 // failures in a row

	choice atomic.Pointer[choice]
	mu     sync.Mutex // guards the lower half of each endpoint and every change of choice
}

// New returns a balancer over the endpoints 0 to endpoints-1, all in the choice. Values of c outside their range are
// moved to its nearest end. Without endpoints, or with a negative number of them, there is nothing to choose.
func New(c Config, endpoints int) *Balancer {
	c = c.WithDefaults()
	n := max(endpoints, 0)
	b := &Balancer{endpoints: make([]endpoint, n), config: c, mayBeOut: c.mayBeOut(n), limit: int64(c.ConsecutiveFailures)}
	b.choose()
	return b
}

// Pick chooses the endpoint of the next attempt, which counts as pending until Done: of two endpoints drawn at random
// from those that are not ejected, the one with fewer attempts pending, or the first drawn where that is equal. rnd are
// 64 uniform random bits. avoid is the endpoint just tried, -1 for none; it is chosen only if all others are ejected.
// Pick returns -1 if the balancer has no endpoints. It takes no lock, unless an endpoint's ejection is over.
func (b *Balancer) Pick(now time.Duration, rnd uint64, avoid int) int {
	i := b.at(now).draw(b.endpoints, rnd, avoid)
	if i >= 0 {
		b.endpoints[i].begun.Add(1)
	}
	return i
}

// Done ends an attempt for which Pick returned i. Call it once for each. It panics if none is pending on i, as
// unlocking an unlocked mutex does: the choice would be wrong from then on. A Success takes no lock, and neither does a
// Failure unless it ejects the endpoint, ends ejections that have not helped, or the endpoint has been ejected lately.
//
// Results that arrive while the endpoint is ejected change nothing, whether the attempt began before the ejection or
// not.
func (b *Balancer) Done(i int, now time.Duration, r Result) {
	e := &b.endpoints[i]
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
		b.failed(i, now)
	}
}

func (b *Balancer) failed(i int, now time.Duration) {
	e, c := &b.endpoints[i], b.at(now)
	streak := e.streak.Add(1)
	out := len(b.endpoints) - len(c.in)
	if e.lately.Load() || streak >= b.limit && (out < b.mayBeOut && b.othersDoBetter(c, i) || out > 0 && b.allFail(c)) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.consider(i, now)
	}
}

// othersDoBetter reports whether an endpoint in the choice, other than i, has not failed last.
func (b *Balancer) othersDoBetter(c *choice, i int) bool {
	for _, other := range c.in {
		if int(other) != i && b.endpoints[other].streak.Load() == 0 {
			return true
		}
	}
	return false
}

// allFail reports whether each endpoint in the choice has failed as often in a row as one that is ejected.
func (b *Balancer) allFail(c *choice) bool {
	for _, i := range c.in {
		if b.endpoints[i].streak.Load() < b.limit {
			return false
		}
	}
	return true
}

// consider notes a failure and ejects endpoint i if it is time to and allowed. What is counted while it is out is
// forgotten when it comes back. When those that are left all fail, ejections have not helped, and end.
func (b *Balancer) consider(i int, now time.Duration) {
	e, c := &b.endpoints[i], b.choice.Load()
	if e.out {
		return
	}
	e.forgive(now, b.config.BaseEjectionTime)
	out := len(b.endpoints) - len(c.in)
	if out > 0 && b.allFail(c) {
		b.allBack(now)
		return
	}
	if e.streak.Load() < b.limit || e.sinceReturn() < b.limit || out >= b.mayBeOut || !b.othersDoBetter(c, i) {
		return
	}
	e.ejections++
	e.multiplier = min(e.multiplier+1, b.config.maxMultiplier())
	e.out, e.since, e.until = true, now, later(now, b.config.ejection(e.multiplier))
	e.lately.Store(true)
	b.choose()
}

// at returns the choice at a time, after having brought it up to that time.
func (b *Balancer) at(now time.Duration) *choice {
	if c := b.choice.Load(); now < c.until {
		return c
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.choice.Load()
	if now < c.until || c.until == never {
		return c
	}
	for i := range b.endpoints {
		if e := &b.endpoints[i]; e.out && now >= e.until {
			e.comeBack()
		}
	}
	return b.choose()
}

// allBack ends all ejections.
func (b *Balancer) allBack(now time.Duration) {
	for i := range b.endpoints {
		if e := &b.endpoints[i]; e.out {
			e.until = min(e.until, now)
			e.comeBack()
		}
	}
	b.choose()
}

// choose puts the choice together anew. Called with the lock, or before anybody else knows the balancer.
func (b *Balancer) choose() *choice {
	n := len(b.endpoints)
	c := &choice{in: make([]int32, 0, n), position: make([]int32, n), until: never}
	for i := range b.endpoints {
		e := &b.endpoints[i]
		c.position[i] = -1
		if e.out {
			c.until = min(c.until, e.until)
			continue
		}
		c.position[i] = int32(len(c.in))
		c.in = append(c.in, int32(i))
	}
	b.choice.Store(c)
	return c
}

const never = time.Duration(math.MaxInt64)

// later is t + d, or the end of time.
func later(t, d time.Duration) time.Duration {
	if t > never-d {
		return never
	}
	return t + d
}
