package balance

import (
	"sync"
	"sync/atomic"
	"time"
)

// line is what balancers share that follow each other, from one change of their endpoints to the next. It knows only
// the newest of them: an attempt that lasts for a day, and its balancer with it, keeps none of those alive that came
// since.
type line struct {
	mu     sync.Mutex // guards the lower half of each endpoint, and every change of a choice
	newest atomic.Pointer[Balancer]
	zone   evidence // about the own zone; guarded
}

// carryOn makes b the newest balancer of the line.
func (b *Balancer) carryOn() {
	if was := b.line.newest.Load(); was != nil {
		for _, e := range was.endpoints {
			e.position = -1
		}
	}
	for i, e := range b.endpoints {
		e.position = int32(i)
	}
	b.line.newest.Store(b)
}

// counts is the balancer that decides about endpoint i of b now, and its number there; nil if the endpoint is gone.
// Called with the lock.
func (b *Balancer) counts(i int) (*Balancer, int) {
	newest := b.line.newest.Load()
	if newest == b {
		return b, i
	}
	if at := b.endpoints[i].position; at >= 0 {
		return newest, int(at)
	}
	return nil, -1
}

// Judge says what an endpoint's health check has found. One that is not healthy leaves the choice, unless fewer than
// Config.PanicThreshold of the endpoints would be left: checks that condemn so many are rather wrong themselves, or what
// they condemn is all there is. Then all whom only a check speaks against are in the choice, and their results decide.
// Where results speak against an endpoint, too, it is ejected without a look at MaxEjectionShare.
//
// A check that passes does not end an ejection: results have caused it. To say what has been said before costs a lock.
func (b *Balancer) Judge(i int, now time.Duration, healthy bool) {
	line := b.line
	line.newest.Load().at(now) // so that what is over by now is
	line.mu.Lock()
	defer line.mu.Unlock()
	e := b.endpoints[i]
	if e.unhealthy.Load() == !healthy {
		return
	}
	e.unhealthy.Store(!healthy)
	b, i = b.counts(i)
	if b == nil {
		return
	}
	if healthy && !e.out {
		b.ramps.begin(e, now)
	}
	b.choose(now)
}
