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

// Judge says what an endpoint's health check has found. One that is not healthy leaves the choice, unless fewer than
// Config.PanicThreshold of the endpoints would be left: checks that condemn so many may be wrong themselves, and what
// is left would not bear the load. Then all whom only a check speaks against are in the choice, and their results
// decide, as far as MaxEjectionShare lets them.
//
// A check that passes does not end an ejection: results have caused it. To say what has been said before costs a lock.
func (b *Balancer) Judge(i int, now time.Duration, healthy bool) {
	e, line := b.endpoints[i], b.line
	line.newest.Load().at(now) // so that what is over by now is
	line.mu.Lock()
	defer line.mu.Unlock()
	if e.unhealthy.Swap(!healthy) == !healthy {
		return
	}
	newest := line.newest.Load()
	if newest.number(e) < 0 {
		return
	}
	if healthy && !e.out && !newest.choice.Load().panics { // else it was in the choice
		newest.ramps.begin(e, now)
	}
	newest.choose(now)
}
