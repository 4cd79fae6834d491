package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/kernel"
)

// gates are the gates in front of replicas, and the requests that they know of. A request that has come to a gate
// leaves it once.
type gates struct {
	world    *world
	rec      *recorder
	traffic  *traffic
	limits   *fleetLimits
	replicas []replica
	arrivals slab[arrival]
	callers  []caller // of instances, by index; nil without gates
	names    []caller // of nodes
}

// arrival is a request on its way to a gate, at it, or behind it. Every decision about it is inbound.Arrival's.
type arrival struct {
	task    uint32
	state   arrivalState
	began   int64 // when it came to the gate
	request inbound.Request
	waiter  shed.Waiter // does not move: no entity of a slab does
	wake    func()      // of the waiter, made once
	inbound.Arrival
}

type arrivalState uint8

const (
	underWay arrivalState = iota // to the gate, or refused
	inLine                       // in the gate's queue
	inside                       // the service has it
)

// verdict is what a gate says of a request for the time being.
type verdict uint8

const (
	mayWait verdict = iota
	mayEnter
	isRefused
)

// caller is who a gate takes a caller for.
type caller struct {
	name string
	hash uint64
}

func newCaller(name string) caller {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return caller{name, h.Sum64()}
}

// identify names all who may call, if there are gates that might ask.
func (g *gates) identify() {
	gated := false
	for n := range g.world.nodes {
		gated = gated || g.world.nodes[n].protection != nil
	}
	if !gated {
		return
	}
	for n := range g.world.nodes {
		node := &g.world.nodes[n]
		g.names = append(g.names, newCaller(node.name))
		for i := range node.count {
			g.callers = append(g.callers, newCaller(node.name+"/"+strconv.Itoa(int(i))))
		}
	}
}

// reset empties the gates and forgets what replicas share.
func (g *gates) reset() {
	*g = gates{world: g.world, rec: g.rec, traffic: g.traffic, limits: g.limits, replicas: g.replicas,
		arrivals: g.arrivals.emptied(), callers: g.callers, names: g.names}
	g.limits.reset()
}

// install puts a gate in front of a replica, as a program that starts has one.
func (g *gates) install(i int32) error {
	r, n := &g.replicas[i], g.world.instances[i].node
	r.gate, r.debt = nil, 0
	node := &g.world.nodes[n]
	if node.protection == nil {
		return nil
	}
	p := *node.protection
	name, number, restarts := g.world.program(i)
	random := g.world.lend(name, number, "gate", restarts)
	p.Rand, p.CPU = random.Uint64, nil // what a replica has instead of a processor: see replica.share
	p.Observer, p.Store, p.Idempotency = nil, nil, idempotency.Config{}
	if p.RateLimit.Fleet && p.RateLimit.Enabled() {
		h, err := g.limits.hold(i, p.RateLimit)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		p.Fleet = h
	}
	gate, err := inbound.NewGate(name, p)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.gate = gate
	return nil
}

// callerOf is who a gate takes an instance for: by its address one of many, by anything else its fleet or service.
func (g *gates) callerOf(inst int32, word string) *caller {
	if word == "" || word == "ip" {
		return &g.callers[inst]
	}
	return &g.names[g.world.instances[inst].node]
}

// address writes on a request what its caller says to the gate in front of a service.
func (g *gates) address(ti uint32, edge *edge, from int32, number int) {
	p := g.world.nodes[edge.callee].protection
	t := g.traffic.tasks.at(ti)
	gi, a := g.arrivals.get()
	*a = arrival{task: ti, state: underWay, wake: a.wake} // the one before may have held a permit when its run ended
	t.user = gi + 1
	r := &a.request
	*r = inbound.Request{Deadline: time.Duration(t.deadline), Priority: p.Priority.Default, Attempt: number,
		Caller: g.callerOf(from, p.Caller).hash}
	if t.ranked {
		r.Priority = t.priority
	}
	if edge.naive {
		r.Attempt = 1
	}
	switch key := p.RateLimit.Key; {
	case key == "caller":
		r.Key = g.callerOf(from, p.Caller).name
	case key == "ip", strings.HasPrefix(key, "header:"):
		r.Key = g.callerOf(from, key).name
	}
}

// knock is a request's arrival at the gate of its replica. With isRefused comes the answer.
func (g *gates) knock(ti uint32) (verdict, EndKind) {
	t := g.traffic.tasks.at(ti)
	gi := t.user - 1
	a := g.arrivals.at(gi)
	a.began = g.world.now
	g.rec.knocks(g.world.instances[t.inst].node, a.request.Priority)
	return g.proceed(gi, g.replicas[t.inst].gate.Arrive(&a.Arrival, time.Duration(g.world.now), a.request))
}

// lineEnds goes on with a request that waited in a gate's queue: it was woken, or has waited long enough.
func (g *gates) lineEnds(gi uint32, woken bool) (ti uint32, v verdict, end EndKind) {
	a, now := g.arrivals.at(gi), time.Duration(g.world.now)
	if woken {
		v, end = g.proceed(gi, a.Woken(now, &a.waiter))
	} else {
		v, end = g.proceed(gi, a.LeaveQueue(now, &a.waiter, nil))
	}
	return a.task, v, end
}

// limited goes on with a request that waited for Redis.
func (g *gates) limited(t told) (ti uint32, v verdict, end EndKind) {
	if !g.arrivals.is(t.arrival, t.generation) { // its caller has left
		return 0, mayWait, Answered
	}
	a := g.arrivals.at(t.arrival)
	v, end = g.proceed(t.arrival, a.Limited(time.Duration(g.world.now), t.decision))
	return a.task, v, end
}

// proceed carries out what an arrival says to do next, until it waits or the gate is done with it.
func (g *gates) proceed(gi uint32, step core.Step) (verdict, EndKind) {
	a, now := g.arrivals.at(gi), g.world.now
	for {
		g.arrivals.renew(gi)
		g.stand(a, underWay)
		switch step.Action {
		case core.Handle:
			g.stand(a, inside)
			t := g.traffic.tasks.at(a.task)
			n := g.world.instances[t.inst].node
			g.rec.service(n).GateWait[g.rec.window].Add(now - a.began)
			g.rec.traces.span(t.trace, "gate", n, a.began, now)
			return mayEnter, Answered
		case core.Measure:
			step = a.Measured(time.Duration(now), g.replicas[g.traffic.tasks.at(a.task).inst].share(now))
		case core.Ask:
			key, cost := a.Asks()
			g.limits.of[g.traffic.tasks.at(a.task).inst].wait(gi, g.arrivals.generation(gi), key, cost)
			return mayWait, Answered
		case core.Queue:
			if a.wake == nil {
				a.wake = func() { g.world.queue.Push(g.world.now, gi, kernel.Meta(evWoken, g.arrivals.generation(gi))) }
			}
			a.waiter = shed.Waiter{Wake: a.wake}
			step = a.Enqueue(time.Duration(now), &a.waiter)
		case core.Queued:
			g.stand(a, inLine)
			if step.Until != core.NoDeadline {
				g.world.queue.Push(int64(step.Until), gi, kernel.Meta(evOutOfPatience, g.arrivals.generation(gi)))
			}
			return mayWait, Answered
		case core.Refuse:
			return isRefused, g.turnAway(a)
		default:
			return mayWait, Answered
		}
	}
}

// stand notes where a request is. A balancer that counts requests counts those that wait at a gate, too.
func (g *gates) stand(a *arrival, at arrivalState) {
	r := &g.replicas[g.traffic.tasks.at(a.task).inst]
	if a.state == inLine {
		r.held--
	}
	if a.state = at; at == inLine {
		r.held++
	}
}

// turnAway records what a gate refuses, and returns the answer.
func (g *gates) turnAway(a *arrival) EndKind {
	t := g.traffic.tasks.at(a.task)
	r := &g.replicas[t.inst]
	n := r.node
	refusal := a.Refusal()
	end := Overloaded
	switch {
	case refusal.Reason == abate.ErrRateLimited:
		end = RateLimited
	case refusal.Reason == abate.ErrDeadline, refusal.Shed == shed.Expired:
		end = Expired
	}
	g.rec.turnedAway(n, end, refusal.Shed, a.request.Priority)
	g.rec.traces.span(t.trace, "gate", n, a.began, g.world.now)
	if !r.free() { // else a worker that has nothing else to do refuses it
		r.debt += int64(g.world.nodes[n].service.RefusalCost)
	}
	if g.traffic.awaited(t) {
		asked := g.traffic.attempts.at(t.attempt)
		asked.retryAfter, asked.noRetry = time.Duration(refusal.WholeSeconds())*time.Second, refusal.NoRetry
	}
	return end
}

// leave lets a gate know that the service is through with a request that ended so, or its caller with it. It has to be
// called before the request is given back.
func (g *gates) leave(t *task, class abate.Class) {
	if t.root || t.user == 0 {
		return
	}
	gi := t.user - 1
	a := g.arrivals.at(gi)
	t.user = 0
	now := time.Duration(g.world.now)
	switch a.state {
	case inLine:
		g.stand(a, underWay)
		a.LeaveQueue(now, &a.waiter, context.Canceled)
	case inside:
		if g.traffic.awaited(t) && a.NoRetry(now) {
			g.traffic.attempts.at(t.attempt).noRetry = true
		}
		a.Done(now, class)
	}
	g.arrivals.put(gi)
}

// holds reports whether a request waits in the queue of a gate.
func (g *gates) holds(t *task) bool {
	return !t.root && t.user > 0 && g.arrivals.at(t.user-1).state == inLine
}

// arrivedAt is when a request came to its replica that leaves its queue now.
func (g *gates) arrivedAt(t *task) int64 {
	if t.user > 0 {
		return g.arrivals.at(t.user - 1).began
	}
	return t.since
}

// limit is how many requests the gates of a service let in at once.
func (g *gates) limit(node *node) uint32 {
	if node.protection == nil {
		return 0
	}
	sum := 0
	for i := range node.count {
		sum += g.replicas[node.first+i].gate.StateAt(time.Duration(g.world.now)).Shed.Limit
	}
	return uint32(sum)
}
