package engine

import (
	"context"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/sim/kernel"
)

// fleetLimits are the rate limits that the replicas of a service share through Redis. What a replica decides and asks
// is its ratelimit.Lease's, whether it asks is the guard's in front of Redis, and what Redis answers a
// ratelimit.Pool's. Here is what adapter/abateredis does of it: who waits for whose question, when something is brought
// back.
type fleetLimits struct {
	world    *world
	replicas []replica
	of       []*leaseholder // of instances, by index; nil without a shared limit
	redis    []limitServer  // of nodes, by index
	trips    slab[trip]
	told     []told // by the last event
}

// told is what a question has led to for a request.
type told struct {
	waiter
	decision ratelimit.Decision
}

// limitServer is what Redis keeps for the replicas of a service.
type limitServer struct {
	pools map[string]*ratelimit.Pool
	beats map[int32]int64 // of instances: when their last heartbeat came
}

// leaseholder is one replica, and an inbound.FleetLimiter.
type leaseholder struct {
	limits   *fleetLimits
	inst     int32
	terms    *ratelimit.Terms
	whenAway string
	stream   *kernel.Stream
	guard    *abate.Guard // in front of Redis
	outage   ratelimit.Outage
	living   ratelimit.Census
	leases   map[string]*lease
	all      []*lease // in the order of their first use
	era      uint32   // of the program: what was due in an earlier one is not
	beat     int64    // when the next heartbeat is due
}

// lease is what a replica holds of one key's bucket.
type lease struct {
	ratelimit.Lease
	key     string
	asking  bool     // a question is under way
	waiting []waiter // for its answer
}

// waiter is a request that waits for the answer to a question, the first one for its own.
type waiter struct {
	arrival, generation uint32
	need                int64
	since               int64
}

// trip is one question to Redis and its answer, or a heartbeat.
type trip struct {
	by       *leaseholder
	lease    *lease // nil for a heartbeat
	question ratelimit.Question
	asker    bool // the lease's first waiter is whose question it is
	unsent   bool // the guard has refused
	answered bool
	given    int64 // or how many are alive
	left     int64
	core.Call
}

const (
	leaseSweep = int64(100 * time.Millisecond) // give or take a quarter, as adapter/abateredis does it
	heartbeat  = int64(time.Second)
)

// reset forgets all that was shared.
func (f *fleetLimits) reset() {
	f.trips = f.trips.emptied()
	f.of = append(f.of[:0], make([]*leaseholder, len(f.world.instances))...)
	f.redis = make([]limitServer, len(f.world.nodes))
	for n := range f.redis {
		f.redis[n] = limitServer{map[string]*ratelimit.Pool{}, map[int32]int64{}}
	}
}

// hold makes what a program that starts knows of its limit.
func (f *fleetLimits) hold(i int32, limit inbound.ArrivalLimit) (*leaseholder, error) {
	name, number, restarts := f.world.program(i)
	policy := inbound.FleetPolicy()
	policy.Rand = f.world.lend(name, number, "redis", restarts).Uint64
	guard, err := abate.New("redis", policy)
	if err != nil {
		return nil, err
	}
	h := &leaseholder{limits: f, inst: i, terms: ratelimit.NewTerms(limit.Config), whenAway: limit.WhenAway, guard: guard,
		stream: f.world.lend(name, number, "lease", restarts), leases: map[string]*lease{}}
	if before := f.of[i]; before != nil {
		h.era = (before.era + 1) & generationMask
	}
	f.of[i] = h
	f.world.queue.Push(f.world.now, uint32(i), kernel.Meta(evLeases, h.era))
	return h, nil
}

func (h *leaseholder) now() time.Duration { return time.Duration(h.limits.world.now) }

// lease returns what the replica holds of a key's bucket.
func (h *leaseholder) lease(key string) *lease {
	l := h.leases[key]
	if l == nil {
		l = &lease{key: key}
		h.leases[key] = l
		h.all = append(h.all, l)
	}
	return l
}

// TryTake decides a request by what the replica holds.
func (h *leaseholder) TryTake(now time.Duration, key string, cost float64) (ratelimit.Decision, bool) {
	need := h.terms.Need(cost)
	if d, ok := h.terms.Settled(need); ok {
		return d, true
	}
	l := h.lease(key)
	d, ok, low := l.Take(now, h.terms, need)
	if low && !l.asking {
		h.ask(l, l.Ask(now, h.terms, 0, 0, h.living.Instances()), false)
	}
	if !ok && h.keepsToItsShare(now) {
		return h.alone(now, l, need), true
	}
	return d, ok
}

// Take is never asked: a request that has to wait comes to wait.
func (h *leaseholder) Take(context.Context, string, float64) ratelimit.Decision {
	panic("engine: a gate that blocks")
}

// keepsToItsShare reports whether Redis is away, or was just now.
func (h *leaseholder) keepsToItsShare(now time.Duration) bool {
	return inbound.FleetApart(h.guard, &h.outage, &h.living, now)
}

// alone decides without Redis.
func (h *leaseholder) alone(now time.Duration, l *lease, need int64) ratelimit.Decision {
	back := h.guard.Breaker().RetryIn(now)
	if d, ok := h.terms.Unreachable(h.whenAway, back); ok {
		return d
	}
	return l.Alone(now, h.terms, need, h.living.Instances(), back)
}

// wait has a request wait for Redis: for an answer to its own question, or for the one that is under way first.
func (h *leaseholder) wait(arrival, generation uint32, key string, cost float64) {
	l := h.lease(key)
	l.waiting = append(l.waiting, waiter{arrival, generation, h.terms.Need(cost), h.limits.world.now})
	if !l.asking {
		h.askFor(l)
	}
}

// askFor asks for those who wait, of whom the first one is the asker.
func (h *leaseholder) askFor(l *lease) {
	beside := int64(0)
	for _, w := range l.waiting[1:] {
		beside += w.need
	}
	h.ask(l, l.Ask(h.now(), h.terms, l.waiting[0].need, beside, h.living.Instances()), true)
}

// ask sends a question.
func (h *leaseholder) ask(l *lease, q ratelimit.Question, asker bool) {
	l.asking = true
	i, t := h.limits.trips.get()
	*t = trip{by: h, lease: l, question: q, asker: asker}
	h.limits.depart(i)
}

// depart asks the guard in front of Redis, and goes if it may.
func (f *fleetLimits) depart(i uint32) {
	t := f.trips.at(i)
	t.Caller = core.Terse
	if step := t.by.guard.Begin(&t.Call, t.by.now(), core.NoDeadline); step.Action == core.Finish {
		t.unsent = true
		f.world.queue.Push(f.world.now, i, kernel.Meta(evLimitTimeout, f.trips.generation(i)))
		return
	}
	w := f.world
	w.queue.Push(w.now+int64(w.limitTimeout), i, kernel.Meta(evLimitTimeout, f.trips.generation(i)))
	f.travel(i)
}

// travel takes a question to Redis, or an answer back.
func (f *fleetLimits) travel(i uint32) {
	t, w := f.trips.at(i), f.world
	delay := w.scenario.Redis.Latency.Sample(t.by.stream)
	w.queue.Push(w.now+delay, i, kernel.Meta(evLimitTrip, f.trips.generation(i)))
}

// moves is a question or an answer that has travelled, or the end of the time that its asker has for it. It returns
// what becomes of requests that waited.
func (f *fleetLimits) moves(i uint32, tooLate bool) []told {
	f.told = f.told[:0]
	if tooLate {
		f.failed(i)
	} else {
		f.arrives(i)
	}
	return f.told
}

// arrives is a question that has come to Redis, or an answer that is back. What is under way when the way is cut is
// lost, but who asked notices only when its time is up.
func (f *fleetLimits) arrives(i uint32) {
	t, w := f.trips.at(i), f.world
	h := t.by
	switch {
	case w.instances[h.inst].cutOff > 0:
	case t.answered:
		f.answered(i)
	default:
		t.answered = true
		f.serve(t)
		f.travel(i)
	}
}

// serve is what Redis does.
func (f *fleetLimits) serve(t *trip) {
	w, h := f.world, t.by
	server := &f.redis[w.instances[h.inst].node]
	if t.lease != nil {
		pool := server.pools[t.lease.key]
		if pool == nil {
			pool = new(ratelimit.Pool)
			server.pools[t.lease.key] = pool
		}
		t.given, t.left = pool.Take(h.now(), h.terms, t.question)
		return
	}
	server.beats[h.inst] = w.now
	for _, at := range server.beats {
		if w.now-at < int64(ratelimit.AliveFor) {
			t.given++
		}
	}
}

// answered takes in an answer, and goes on with those who wait.
func (f *fleetLimits) answered(i uint32) {
	t := *f.trips.at(i)
	h, l, now := t.by, t.lease, t.by.now()
	f.trips.at(i).AttemptDone(now, 0, abate.Outcome{})
	f.trips.put(i)
	h.outage.Answered(now)
	if l == nil {
		h.living.Count(now, t.given)
		return
	}
	l.asking = false
	d := l.Answered(now, h.terms, t.question, t.given, t.left, !h.keepsToItsShare(now), h.stream.Uint64())
	if t.asker {
		w := l.waiting[0]
		l.waiting = l.waiting[1:]
		f.tell(w, d)
	}
	f.goOn(h, l)
}

// failed ends a question that was not answered in time, or not sent at all.
func (f *fleetLimits) failed(i uint32) {
	t := *f.trips.at(i)
	h, l, now := t.by, t.lease, t.by.now()
	if !t.unsent {
		f.trips.at(i).AttemptDone(now, 0, abate.Outcome{Class: abate.Failure, NoRetry: true, Err: failures[TimedOut].err})
		inbound.FleetMissed(&h.outage, h.guard, l == nil)
	}
	f.trips.put(i)
	if l == nil {
		h.living.Count(now, 0)
		return
	}
	l.asking = false
	if t.unsent {
		l.Unsent(t.question)
	}
	if !t.asker {
		l.Failed(now)
	}
	waiting := l.waiting
	l.waiting = nil
	for _, w := range waiting {
		f.tell(w, h.alone(now, l, w.need))
	}
}

// goOn decides for those who waited for somebody else's answer. What that left open is asked for them.
func (f *fleetLimits) goOn(h *leaseholder, l *lease) {
	now := h.now()
	for len(l.waiting) > 0 && !l.asking {
		w := l.waiting[0]
		d, ok, _ := l.Take(now, h.terms, w.need)
		if !ok && (h.keepsToItsShare(now) || f.world.now-w.since >= int64(f.world.limitTimeout)) {
			d, ok = h.alone(now, l, w.need), true
		}
		if !ok {
			h.askFor(l)
			return
		}
		l.waiting = l.waiting[1:]
		f.tell(w, d)
	}
}

// tell lets a request go on.
func (f *fleetLimits) tell(w waiter, d ratelimit.Decision) { f.told = append(f.told, told{w, d}) }

// keep is what a replica does all the time: it says that it lives, and brings back what it does not need.
func (f *fleetLimits) keep(i int32, era uint32) {
	h, w := f.of[i], f.world
	if h.era != era {
		return
	}
	next := w.now + leaseSweep*3/4 + int64(h.stream.Float64()*float64(leaseSweep/2))
	w.queue.Push(next, uint32(i), kernel.Meta(evLeases, era))
	if f.replicas[i].refuse > 0 { // it is down
		return
	}
	now := h.now()
	if w.now >= h.beat {
		h.beat = w.now + heartbeat
		ti, t := f.trips.get()
		*t = trip{by: h}
		f.depart(ti)
	}
	if inbound.FleetAway(h.guard, now) {
		return
	}
	for _, l := range h.all {
		if !l.asking && l.Overdue(now) && (l.InHand() > 0 || l.Owes(now)) {
			h.ask(l, l.GiveBack(now, h.terms), false)
		}
	}
}
