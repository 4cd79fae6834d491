package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/kernel"
)

// arrival is a request on its way to a gate, at it, or behind it. Every decision about it is abate.Arrival's.
type arrival struct {
	task    uint32
	state   arrivalState
	began   int64 // when it came to the gate
	request abate.Request
	waiter  shed.Waiter // does not move: no entity of a slab does
	wake    func()      // of the waiter, made once
	abate.Arrival
}

type arrivalState uint8

const (
	underWay arrivalState = iota // to the gate, or refused
	inLine                       // in the gate's queue
	inside                       // the service has it
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
func (e *Engine) identify() {
	gated := false
	for n := range e.nodes {
		gated = gated || e.nodes[n].protection != nil
	}
	if !gated {
		return
	}
	e.callers = make([]caller, len(e.insts))
	for n := range e.nodes {
		node := &e.nodes[n]
		node.caller = newCaller(node.name)
		for i := range node.count {
			e.callers[node.first+i] = newCaller(node.name + "/" + strconv.Itoa(int(i)))
		}
	}
}

// callerOf is who a gate takes an instance for: by its address one of many, by anything else its fleet or service.
func (e *Engine) callerOf(inst int32, word string) *caller {
	if word == "" || word == "ip" {
		return &e.callers[inst]
	}
	return &e.nodes[e.insts[inst].node].caller
}

// newGate puts a gate in front of a replica, as a program that starts has one.
func (e *Engine) newGate(inst *instance, name, number string) error {
	node := &e.nodes[inst.node]
	inst.gate, inst.debt = nil, 0
	if node.protection == nil {
		return nil
	}
	p := *node.protection
	random := e.stream(name, number, "gate", strconv.Itoa(int(inst.restarts)))
	p.Rand, p.CPU = random.Uint64, nil // what a replica has instead of a processor: see share
	p.Observer, p.Store, p.Idempotency = nil, nil, idempotency.Config{}
	if p.RateLimit.Fleet {
		p.Fleet = sharedLimit{node.shared}
	}
	g, err := abate.NewGate(name, p)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	inst.gate = g
	return nil
}

// sharedLimit is a rate limit that replicas share: what production has a Redis for, without the time that asking takes.
type sharedLimit struct{ *ratelimit.Limiter }

func (s sharedLimit) TryTake(now time.Duration, key string, cost float64) (ratelimit.Decision, bool) {
	return s.Allow(now, key, cost), true
}

func (s sharedLimit) Take(context.Context, string, float64) ratelimit.Decision {
	panic("engine: TryTake decides") // so that no step is Ask
}

// address writes on a request what its caller tells the gate in front of a service.
func (e *Engine) address(ti uint32, edge *edge, from int32, number int) {
	node := &e.nodes[edge.callee]
	if node.protection == nil {
		return
	}
	t := e.tasks.at(ti)
	gi, a := e.arrivals.get()
	*a = arrival{task: ti, state: underWay, wake: a.wake} // the one before may have held a permit when its run ended
	t.user = gi + 1
	p := node.protection
	r := &a.request
	*r = abate.Request{Deadline: time.Duration(t.deadline), Priority: p.Priority.Default, Attempt: number, Caller: e.callerOf(from, p.Caller).hash}
	if t.ranked {
		r.Priority = t.priority
	}
	if edge.naive {
		r.Attempt = 1
	}
	switch key := p.RateLimit.Key; {
	case key == "caller":
		r.Key = e.callerOf(from, p.Caller).name
	case key == "ip", strings.HasPrefix(key, "header:"):
		r.Key = e.callerOf(from, key).name
	}
}

// knock is a request's arrival at the gate of its replica.
func (e *Engine) knock(ti uint32) {
	t := e.tasks.at(ti)
	gi := t.user - 1
	a := e.arrivals.at(gi)
	a.began = e.now
	e.admission(gi, e.insts[t.inst].gate.Arrive(&a.Arrival, time.Duration(e.now), a.request))
}

// admission carries out what an arrival says to do next.
func (e *Engine) admission(gi uint32, step abate.Step) {
	a := e.arrivals.at(gi)
	e.arrivals.renew(gi)
	a.state = underWay
	switch step.Action {
	case abate.Handle:
		a.state = inside
		t := e.tasks.at(a.task)
		e.admitted(e.insts[t.inst].node, e.now-a.began)
		e.traceSpan(t.trace, "gate", e.insts[t.inst].node, a.began, e.now)
		e.pass(a.task)
	case abate.Measure:
		e.admission(gi, a.Measured(time.Duration(e.now), e.share(&e.insts[e.tasks.at(a.task).inst])))
	case abate.Queue:
		if a.wake == nil {
			a.wake = func() { e.queue.Push(e.now, gi, kernel.Meta(evWoken, e.arrivals.generation(gi))) }
		}
		a.waiter = shed.Waiter{Wake: a.wake}
		e.admission(gi, a.Enqueue(time.Duration(e.now), &a.waiter))
	case abate.Queued:
		a.state = inLine
		if step.Until != abate.NoDeadline {
			e.queue.Push(int64(step.Until), gi, kernel.Meta(evOutOfPatience, e.arrivals.generation(gi)))
		}
	case abate.Refuse:
		e.turnAway(a)
	}
}

// lineEnds goes on with who waited in a gate's queue: he was woken, or has waited long enough.
func (e *Engine) lineEnds(gi uint32, woken bool) {
	a := e.arrivals.at(gi)
	if woken {
		e.admission(gi, a.Woken(time.Duration(e.now), &a.waiter))
		return
	}
	e.admission(gi, a.LeaveQueue(time.Duration(e.now), &a.waiter, nil))
}

// turnAway answers what a gate refuses.
func (e *Engine) turnAway(a *arrival) {
	ti := a.task
	t := e.tasks.at(ti)
	inst := &e.insts[t.inst]
	node := &e.nodes[inst.node]
	refusal := a.Refusal()
	end := Overloaded
	switch {
	case refusal.Reason == abate.ErrRateLimited:
		end = RateLimited
	case refusal.Reason == abate.ErrDeadline, refusal.Shed == shed.Expired:
		end = Expired
	}
	e.turnedAway(inst.node, end, refusal.Shed)
	e.traceSpan(t.trace, "gate", inst.node, a.began, e.now)
	if !inst.free() { // else a worker that has nothing else to do refuses it
		inst.debt += int64(node.service.RefusalCost)
	}
	if e.attempts.is(t.attempt, t.generation) {
		asked := e.attempts.at(t.attempt)
		asked.retryAfter, asked.noRetry = time.Duration(refusal.WholeSeconds())*time.Second, refusal.NoRetry
	}
	e.refuse(ti, end)
}

// leaveGate tells the gate that the service is through with a request that ended so, or its caller with it. It has to be
// called before the request is given back.
func (e *Engine) leaveGate(t *task, class abate.Class) {
	if t.root || t.user == 0 {
		return
	}
	gi := t.user - 1
	a := e.arrivals.at(gi)
	t.user = 0
	now := time.Duration(e.now)
	switch a.state {
	case inLine:
		a.LeaveQueue(now, &a.waiter, context.Canceled)
	case inside:
		if e.attempts.is(t.attempt, t.generation) && a.NoRetry(now) {
			e.attempts.at(t.attempt).noRetry = true
		}
		a.Done(now, class)
	}
	e.arrivals.put(gi)
}

// classes is what an answer tells a gate about the service behind it.
var classes = [EndKinds]abate.Class{Answered: abate.Success, Conflict: abate.Success, QueueFull: abate.Overload, ServerError: abate.Failure, BadGateway: abate.Failure, TimedOut: abate.Failure}

// atGate tells whether a request waits in the queue of a gate.
func (e *Engine) atGate(t *task) bool {
	return !t.root && t.user > 0 && e.arrivals.at(t.user-1).state == inLine
}

// arrivedAt is when a request came to its replica that leaves its queue now.
func (e *Engine) arrivedAt(t *task) int64 {
	if t.user > 0 {
		return e.arrivals.at(t.user - 1).began
	}
	return t.since
}

// tally adds the time up that the workers of a replica were busy. It has to be called before that changes.
func (inst *instance) tally(now int64) {
	inst.busyNS += int64(inst.busy) * (now - inst.tallied)
	inst.tallied = now
}

// share is which part of its workers a replica used since it was asked last: what it has instead of a processor.
func (e *Engine) share(inst *instance) float64 {
	if inst.workers == 0 || e.now == inst.asked {
		return 0
	}
	inst.tally(e.now)
	share := float64(inst.busyNS) / (float64(inst.workers) * float64(e.now-inst.asked))
	inst.busyNS, inst.asked = 0, e.now
	return share
}
