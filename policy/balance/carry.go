package balance

import (
	"cmp"
	"slices"
)

// Carry takes over the endpoints that from has, after a reload or a change of the list: endpoint i of b was endpoint
// index[i] of from. An index that from does not have (-1), and one that is missing, is a new endpoint. All that is
// known of the others carries over: attempts pending, streaks, what health checks say, the own zone's record; and
// ejections as far as b's configuration allows: no more endpoints than it may eject, those that come back last, and
// none for longer than its MaxEjectionTime.
//
// Attempts for which from chose the endpoint end at from, and count for b. From then on b decides: from goes on
// choosing for requests that know no better, as things stood then. Call Carry before b is used. It takes time and
// memory in proportion to the number of endpoints, and nothing is kept of those that are gone once their attempts have
// ended.
func (b *Balancer) Carry(from *Balancer, index []int) {
	line := from.line
	line.mu.Lock()
	defer line.mu.Unlock()
	if line.newest.Load().zones == nil { // nobody has counted
		line.zone = evidence{}
	}
	b.line = line
	n, taken, out := min(len(b.endpoints), len(index)), make([]bool, len(from.endpoints)), []int(nil)
	for i := range b.endpoints {
		if i >= n || uint(index[i]) >= uint(len(taken)) {
			b.endpoints[i] = newEndpoint() // by itself: the others made with it are not needed
			line.zone.meet(b.endpoints[i])
			if len(taken) > 0 {
				b.ramps.begin(b.endpoints[i], fromThere)
			}
			continue
		}
		e := from.endpoints[index[i]]
		if taken[index[i]] {
			e = e.twin()
		}
		taken[index[i]] = true
		b.endpoints[i] = e
		if e.suit(b.config); e.out {
			out = append(out, i)
		}
	}
	for i, e := range b.endpoints {
		e.position.Store(int32(i))
	}
	line.newest.Store(b)
	slices.SortStableFunc(out, func(x, y int) int {
		return cmp.Compare(b.endpoints[y].until, b.endpoints[x].until)
	})
	for _, i := range out[min(len(out), b.mayBeOut):] {
		b.endpoints[i].comeBack()
		b.ramps.begin(b.endpoints[i], fromThere)
	}
	b.choose(fromThere) // the first attempt says what time it is
}

// twin is another endpoint that is known for the same, with nothing pending.
func (e *endpoint) twin() *endpoint {
	t := newEndpoint()
	t.streak.Store(e.streak.Load())
	t.begunAtBack = -e.sinceReturn()
	t.multiplier, t.ejections, t.out, t.since, t.until = e.multiplier, e.ejections, e.out, e.since, e.until
	t.lately.Store(e.lately.Load())
	t.unhealthy.Store(e.unhealthy.Load())
	t.ramp = e.ramp
	return t
}

// suit cuts what an endpoint is known for to what another configuration allows.
func (e *endpoint) suit(c Config) {
	if c.SlowStart <= 0 {
		e.ramp = warm
	}
	if !c.Enabled() {
		e.multiplier = 0
		e.lately.Store(false)
		return
	}
	e.multiplier = min(e.multiplier, c.maxMultiplier())
	e.lately.Store(e.multiplier > 0)
	if e.out {
		e.until = min(e.until, later(e.since, c.MaxEjectionTime))
	}
}
