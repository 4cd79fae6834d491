package engine

import (
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/sim/kernel"
)

// call is one guarded call under way. Every decision about it is abate.Call's.
type call struct {
	task       uint32
	next       uint32 // + 1: of the same task
	edge       int32
	inst       int32 // of the caller
	last       EndKind
	trace      uint16
	span       int32
	copies     [abate.MaxCopies]uint32 // + 1: attempts in the air
	waiter     *bulkhead.Waiter
	abate.Call // 256 bytes in all: no call shares a cache line with another
}

// attempt is one attempt in the air.
type attempt struct {
	call    uint32
	task    uint32 // + 1: its request at the replica
	until   int64
	replica int32 // instance
	span    int32
	copy    uint8
	answer  EndKind // on its way back
	number  uint16  // among those of its call, from 1
	pooled  uint8   // what it has of a connection
	told    uint16  // + 1: the extra attempts that its callee may use; 0 if nothing is told
	epoch   uint32
	dial    uint32 // + 1: the opening of its connection under a guard

	// What the answer says of further attempts.
	retryAfter time.Duration
	noRetry    bool
	said       bool   // that so many were made behind the callee,
	final      bool   // and that there should be no more
	unopened   bool   // it got no connection, see dialEnds
	made       uint16 // see report
}

// startCall begins a call of a request on an edge.
func (e *Engine) startCall(ti uint32, k int32) {
	t := e.tasks.at(ti)
	ci, c := e.calls.get()
	*c = call{task: ti, next: t.call, edge: k, inst: t.inst, last: TimedOut, trace: t.trace}
	t.call = ci + 1
	edge := &e.edges[k]
	edge.record.Calls++
	c.span = e.traceBegin(c.trace, "call", edge.callee)
	if t.tree && !edge.naive {
		c.Under(e.trees.at(ti))
	}
	guard := e.insts[t.inst].guards[edge.slot]
	e.take(ci, guard.Begin(&c.Call, time.Duration(e.now), t.deadlineOf()))
}

// take carries out what a call says to do next.
func (e *Engine) take(ci uint32, step abate.Step) {
	c := e.calls.at(ci)
	if step.Action == abate.Await {
		return
	}
	e.calls.renew(ci)
	generation := e.calls.generation(ci)
	switch step.Action {
	case abate.Attempt:
		e.send(ci, 0, int64(step.Until))
		e.armHedge(ci)
	case abate.Sleep:
		e.traceSpan(c.trace, "backoff", e.edges[c.edge].callee, e.now, int64(step.Until))
		e.queue.Push(int64(step.Until), ci, kernel.Meta(evResume, generation))
	case abate.Queue:
		c.waiter = &bulkhead.Waiter{Wake: func() {
			e.queue.Push(e.now, ci, kernel.Meta(evAdmitted, e.calls.generation(ci)))
		}}
		e.take(ci, c.Enqueue(time.Duration(e.now), c.waiter))
	case abate.Queued:
		if step.Until != abate.NoDeadline {
			e.queue.Push(int64(step.Until), ci, kernel.Meta(evLeaveQueue, generation))
		}
	case abate.Finish:
		e.endCall(ci, step.Err)
	}
}

// endCall records how a call ended and goes on with its request.
func (e *Engine) endCall(ci uint32, err error) {
	c := e.calls.at(ci)
	e.dropAttempts(ci)
	edge := &e.edges[c.edge]
	e.tried = c.Attempts()
	end := endOf(err, e.tried, c.last)
	edge.record.Ends[end]++
	e.traceClose(c.trace, c.span, end)
	ti := c.task
	e.unlink(ti, ci)
	c.waiter = nil
	e.calls.put(ci)
	e.callEnded(ti, end, edge.call.Optional)
}

// unlink takes a call off its request's list.
func (e *Engine) unlink(ti, ci uint32) {
	at := &e.tasks.at(ti).call
	for *at != ci+1 {
		at = &e.calls.at(*at - 1).next
	}
	*at = e.calls.at(ci).next
}

// send puts a copy of an attempt in the air.
func (e *Engine) send(ci uint32, copy int, until int64) {
	c := e.calls.at(ci)
	edge := &e.edges[c.edge]
	ai, a := e.attempts.get()
	*a = attempt{call: ci, until: until, copy: uint8(copy), number: uint16(min(c.Attempts(), math.MaxUint16))}
	c.copies[copy] = ai + 1
	if edge.tells {
		a.delegate(&c.Call)
	}
	a.span = e.traceBegin(c.trace, "attempt", edge.callee)
	edge.record.Attempts++
	e.record.Attempts++
	if copy > 0 {
		edge.record.Hedges++
	}
	e.sentTo(edge.callee, a.number > 1)
	if until != int64(abate.NoDeadline) {
		meta := kernel.Meta(evTimeout, e.attempts.generation(ai))
		if edge.lane >= 0 && until == e.now+edge.timeout {
			e.queue.PushLane(edge.lane, e.now, ai, meta)
		} else {
			e.queue.Push(until, ai, kernel.Meta(evDeadline, e.attempts.generation(ai)))
		}
	}
	if edge.call.Pool > 0 {
		e.acquire(ai)
		return
	}
	e.launch(ai, e.choose(edge.callee))
}

// launch sends an attempt to a replica.
func (e *Engine) launch(ai uint32, replica int32) { e.launchAfter(ai, replica, 0) }

// launchAfter is launch for a request that has to wait before it leaves.
func (e *Engine) launchAfter(ai uint32, replica int32, delay int64) {
	a := e.attempts.at(ai)
	a.replica = replica
	c := e.calls.at(a.call)
	if e.lost(replica) {
		return
	}
	ti, t := e.tasks.get()
	*t = task{inst: replica, attempt: ai, generation: e.attempts.generation(ai), deadline: a.until, since: e.now, trace: c.trace}
	a.task = ti + 1
	if a.told > 0 {
		t.tree = true
		e.trees.plant(ti, int(a.told)-1)
	}
	edge := &e.edges[c.edge]
	e.tell(t, edge, e.tasks.at(c.task))
	e.address(ti, edge, c.inst, int(a.number))
	e.travel(ti, edge, c.inst, delay)
}

// tell notes what the caller, who makes the call for a request of his own, says about it.
func (e *Engine) tell(t *task, edge *edge, of *task) {
	switch {
	case edge.naive:
		t.deadline = int64(abate.NoDeadline)
	case edge.ranked:
		t.priority, t.ranked = edge.priority, true
	default:
		t.priority, t.ranked = of.priority, of.ranked
	}
}

// travel takes a request over the network to its replica.
func (e *Engine) travel(ti uint32, edge *edge, caller int32, delay int64) {
	if delay += edge.call.Latency.Sample(&e.insts[caller].stream); delay > 0 {
		e.queue.Push(e.now+delay, ti, kernel.Meta(evReach, e.tasks.generation(ti)))
		return
	}
	e.reach(ti)
}

// armHedge schedules a further copy, if the guard allows one.
func (e *Engine) armHedge(ci uint32) {
	c := e.calls.at(ci)
	if delay, ok := c.HedgeDelay(time.Duration(e.now)); ok {
		e.queue.Push(e.now+int64(delay), ci, kernel.Meta(evHedge, e.calls.generation(ci)))
	}
}

// hedge asks for a further copy, now that it is time.
func (e *Engine) hedge(ci uint32) {
	c := e.calls.at(ci)
	if n, until, ok := c.Hedge(time.Duration(e.now)); ok {
		e.send(ci, n, int64(until))
		e.armHedge(ci)
	}
}

// deadline is timeout for an attempt that is not on its edge's lane. Where answers come first, it lets those of the same
// instant pass, as the lanes do.
func (e *Engine) deadline(ai, generation uint32) {
	if e.queue.LanesFirst {
		e.timeout(ai)
		return
	}
	e.queue.PushLane(e.queue.Lane(0), e.now, ai, kernel.Meta(evTimeout, generation))
}

// timeout gives an attempt up whose time is over. What it asked for goes on costing capacity, unless cancellation propagates.
func (e *Engine) timeout(ai uint32) {
	a := e.attempts.at(ai)
	e.leave(a)
	e.dropDial(a)
	e.deliver(ai, TimedOut)
}

// deliver tells the call what an attempt came to.
func (e *Engine) deliver(ai uint32, end EndKind) {
	a := e.attempts.at(ai)
	if a.dial != 0 {
		e.dialed(a, end)
		return
	}
	ci, copy := a.call, int(a.copy)
	c := e.calls.at(ci)
	c.copies[copy] = 0
	if end == Answered && e.spoilt(c) {
		end = ServerError
	}
	if end != Answered {
		c.last = end
	}
	e.traceClose(c.trace, a.span, end)
	edge := &e.edges[c.edge]
	outcome := edge.outcomes[end]
	if a.unopened {
		outcome = unopened(end, edge.naive)
	}
	if !edge.naive {
		a.heed(&outcome, end)
	}
	e.release(ai, end)
	e.attempts.put(ai)
	e.take(ci, c.AttemptDone(time.Duration(e.now), copy, outcome))
}

// dropAttempts gives up the copies that are in the air when a call ends: another one has decided it.
func (e *Engine) dropAttempts(ci uint32) {
	c := e.calls.at(ci)
	if c.copies == [abate.MaxCopies]uint32{} {
		return
	}
	for n, ai := range slices.Clone(c.copies[:]) {
		if ai == 0 {
			continue
		}
		c.copies[n] = 0
		e.leave(e.attempts.at(ai - 1))
		e.traceClose(c.trace, e.attempts.at(ai-1).span, Unanswered)
		e.release(ai-1, TimedOut)
		e.attempts.put(ai - 1)
	}
}
