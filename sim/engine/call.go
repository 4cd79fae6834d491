package engine

import (
	"context"
	"math"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// calls carry out what guards decide: each call under way is asked what to do next, until it ends and the request that
// made it goes on.
type calls struct {
	world       *world
	rec         *recorder
	traffic     *traffic
	servers     *servers
	guards      *guards
	connections *connections
	balancers   *balancers
	caches      *caches
	lanes       []int // of edges: of the attempt timeout in the queue; -1 without one
	tried       int   // attempts of the call that ended last

	// ended goes on with the request that a call was made for. It belongs to those who know what requests need.
	ended func(ti uint32, end EndKind, optional bool)
}

// reset prepares the queue for the attempt timeouts of the edges.
func (cs *calls) reset() {
	*cs = calls{world: cs.world, rec: cs.rec, traffic: cs.traffic, servers: cs.servers, guards: cs.guards,
		connections: cs.connections, balancers: cs.balancers, caches: cs.caches, ended: cs.ended, lanes: cs.lanes[:0]}
	for k := range cs.world.edges {
		lane := -1
		if timeout := cs.world.edges[k].timeout; timeout > 0 {
			lane = cs.world.queue.Lane(timeout)
		}
		cs.lanes = append(cs.lanes, lane)
	}
}

// begin begins a call of a request on an edge; which is its number among those that begin at once.
func (cs *calls) begin(ti uint32, t *task, k int32, which int) {
	w, tr := cs.world, cs.traffic
	ci, c := tr.calls.get()
	*c = call{} // in one step, without a copy
	c.task, c.next, c.edge, c.inst, c.last, c.which, c.trace = ti, t.call, k, t.inst, TimedOut, uint8(which), t.trace
	t.call = ci + 1
	edge := &w.edges[k]
	cs.rec.edges[k].Calls++
	c.span = cs.rec.traces.begin(c.trace, "call", edge.callee)
	if t.tree && !edge.naive {
		c.Under(tr.trees.at(ti))
	}
	if c.Caller = edge.by; c.Caller&core.ComesBack != 0 && !t.again {
		c.Caller |= core.Fresh
	}
	guard := cs.guards.of[t.inst][edge.slot]
	cs.take(ci, c, guard.Begin(&c.Call, time.Duration(w.now), t.deadlineOf()))
}

// take carries out what a call says to do next.
func (cs *calls) take(ci uint32, c *call, step core.Step) {
	w, tr := cs.world, cs.traffic
	if step.Action == core.Await {
		return
	}
	generation := tr.calls.renew(ci)
	if step.Action != core.Queue && step.Action != core.Queued && c.aside != 0 {
		// it waits for nothing any more: whoever abandons it now takes nothing out of a queue
		tr.aside(c).waiter = nil
	}
	switch step.Action {
	case core.Attempt:
		cs.send(ci, c, 0, int64(step.Until))
		if w.edges[c.edge].hedges {
			cs.armHedge(ci)
		}
	case core.Sleep:
		until := int64(step.Until)
		cs.rec.traces.span(c.trace, "backoff", w.edges[c.edge].callee, w.now, until)
		w.queue.Push(until, ci, kernel.Meta(evResume, generation))
	case core.Queue:
		waiter := &bulkhead.Waiter{Wake: func() {
			w.queue.Push(w.now, ci, kernel.Meta(evAdmitted, tr.calls.generation(ci)))
		}}
		tr.aside(c).waiter = waiter
		cs.take(ci, c, c.Enqueue(time.Duration(w.now), waiter))
	case core.Queued:
		if step.Until != core.NoDeadline {
			w.queue.Push(int64(step.Until), ci, kernel.Meta(evLeaveQueue, generation))
		}
	case core.Finish:
		cs.finish(ci, c, step.Err)
	}
}

// resume goes on with a call whose back-off is over.
func (cs *calls) resume(ci uint32) {
	c := cs.traffic.calls.at(ci)
	cs.take(ci, c, c.Resume(time.Duration(cs.world.now)))
}

// admitted goes on with a call that has a permit of the guard's bulkhead.
func (cs *calls) admitted(ci uint32) {
	c := cs.traffic.calls.at(ci)
	cs.take(ci, c, c.Admitted(time.Duration(cs.world.now)))
}

// leaveQueue goes on with a call that has waited long enough for a permit.
func (cs *calls) leaveQueue(ci uint32) {
	c := cs.traffic.calls.at(ci)
	cs.take(ci, c, c.LeaveQueue(time.Duration(cs.world.now), cs.traffic.aside(c).waiter, nil))
}

// finish records how a call ended and goes on with its request.
func (cs *calls) finish(ci uint32, c *call, err error) {
	w, tr := cs.world, cs.traffic
	cs.drop(c)
	edge := &w.edges[c.edge]
	cs.tried = c.Attempts()
	end := endOf(err, cs.tried, c.last)
	cs.rec.edges[c.edge].Ends[end]++
	cs.rec.traces.end(c.trace, c.span, end)
	ti, k, which, last := c.task, c.edge, c.which, c.last
	tr.unlink(ti, ci, c)
	tr.putCall(ci, c)
	if (edge.orElse > 0 || edge.fills) && cs.goesOn(k, ti, which, end, last) {
		return
	}
	cs.ended(ti, end, edge.call.Optional)
}

// send puts a copy of an attempt in the air.
func (cs *calls) send(ci uint32, c *call, copy int, until int64) {
	w, tr := cs.world, cs.traffic
	edge := &w.edges[c.edge]
	ai, a := tr.attempts.get()
	*a = attempt{call: ci, until: until, copy: uint8(copy), number: uint16(min(c.Attempts(), math.MaxUint16))}
	*tr.copyOf(c, copy) = ai + 1
	if edge.tells {
		a.delegate(&c.Call)
	}
	a.span = cs.rec.traces.begin(c.trace, "attempt", edge.callee)
	cs.rec.sent(c.edge, edge.callee, a.number > 1, copy > 0)
	if until != int64(core.NoDeadline) {
		generation, lane := tr.attempts.generation(ai), cs.lanes[c.edge]
		if lane >= 0 && until == w.now+edge.timeout {
			w.queue.PushLane(lane, w.now, ai, kernel.Meta(evTimeout, generation))
		} else {
			w.queue.Push(until, ai, kernel.Meta(evDeadline, generation))
		}
	}
	if edge.balances {
		cs.balancers.pick(ai)
	}
	if edge.pooled {
		cs.connections.acquire(ai)
		return
	}
	cs.connections.launch(ai, a, c, cs.connections.replicaOf(ai, edge), 0)
}

// armHedge schedules a further copy, if the guard wants one.
func (cs *calls) armHedge(ci uint32) {
	c := cs.traffic.calls.at(ci)
	if delay, ok := c.HedgeDelay(time.Duration(cs.world.now)); ok {
		cs.world.queue.Push(cs.world.now+int64(delay), ci, kernel.Meta(evHedge, cs.traffic.calls.generation(ci)))
	}
}

// hedge asks for a further copy, now that it is time.
func (cs *calls) hedge(ci uint32) {
	c := cs.traffic.calls.at(ci)
	if n, until, ok := c.Hedge(time.Duration(cs.world.now)); ok {
		cs.send(ci, c, n, int64(until))
		cs.armHedge(ci)
	}
}

// deadline is timeout for an attempt that is not on its edge's lane. Where answers come first, it lets those of the
// same instant pass, as the lanes do.
func (cs *calls) deadline(ai, generation uint32) {
	q := &cs.world.queue
	if q.LanesFirst {
		cs.timeout(ai)
		return
	}
	q.PushLane(q.Lane(0), cs.world.now, ai, kernel.Meta(evTimeout, generation))
}

// timeout gives an attempt up whose time is over. What it asked for goes on costing capacity, unless cancellation
// propagates.
func (cs *calls) timeout(ai uint32) {
	a := cs.traffic.attempts.at(ai)
	cs.leave(a)
	if a.task != 0 {
		cs.servers.giveUp(a.task-1, ai)
	}
	cs.connections.dropDial(a)
	cs.deliver(ai, a, TimedOut)
}

// answer sends the answer of a replica on its way to the caller. Without a way it arrives at once.
func (cs *calls) answer(ai uint32, end EndKind) {
	a := cs.traffic.attempts.at(ai)
	a.task = 0
	if cs.servers.lost(a.replica, ai, ofReturn) {
		return
	}
	delay := cs.traffic.latency(cs.traffic.calls.at(a.call), a.replica)
	if delay > 0 || cs.servers.taking > 0 {
		cs.traffic.replyIn(ai, end, delay)
		return
	}
	cs.deliver(ai, a, end)
}

// deliver gives a call what an attempt came to.
func (cs *calls) deliver(ai uint32, a *attempt, end EndKind) {
	w, tr := cs.world, cs.traffic
	if a.dial != 0 {
		cs.connections.dialed(a, end)
		return
	}
	ci, copy := a.call, int(a.copy)
	c := tr.calls.at(ci)
	*tr.copyOf(c, copy) = 0
	if end == Answered && tr.tasks.at(c.task).poison {
		end = ServerError
	}
	if end != Answered {
		c.last = end
	} else if w.edges[c.edge].cached && !cs.caches.has(c, a.replica) {
		c.last = missed
	}
	cs.rec.traces.end(c.trace, a.span, end)
	naive := w.edges[c.edge].naive
	outcome := cs.guards.outcomes[c.edge][end]
	if a.unopened {
		outcome = unopened(end, naive)
	}
	if !naive {
		a.heed(&outcome, end)
	}
	cs.release(a, end, outcome.Class)
	tr.attempts.put(ai)
	cs.take(ci, c, c.AttemptDone(time.Duration(w.now), copy, outcome))
}

// drop gives up the copies that are in the air when a call ends: another one has decided it.
func (cs *calls) drop(c *call) {
	if c.sent == 0 && c.aside == 0 {
		return
	}
	inAir := [core.MaxCopies]uint32{c.sent}
	if c.aside != 0 {
		copy(inAir[1:], cs.traffic.aside(c).hedges[:])
	}
	for n, ai := range inAir {
		if ai == 0 {
			continue
		}
		*cs.traffic.copyOf(c, n) = 0
		a := cs.traffic.attempts.at(ai - 1)
		cs.leave(a)
		cs.rec.traces.end(c.trace, a.span, Unanswered)
		cs.release(a, TimedOut, abate.Ignored)
		cs.traffic.attempts.put(ai - 1)
	}
}

// release gives back what an attempt has, at its end.
func (cs *calls) release(a *attempt, end EndKind, class abate.Class) {
	cs.connections.release(a, end)
	if a.picked {
		cs.balancers.done(a, class)
	}
}

// leave lets the service know that a caller has given an attempt up, where cancellation propagates.
func (cs *calls) leave(a *attempt) {
	if cs.world.scenario.Model.Cancellation != scenario.CancellationPropagates || a.task == 0 {
		return
	}
	if ti := a.task - 1; !cs.traffic.tasks.at(ti).connect {
		cs.cancel(ti)
	}
}

// cancel ends a request whose caller has left: it frees what it holds.
func (cs *calls) cancel(ti uint32) {
	if cs.servers.withdraw(ti) {
		return
	}
	cs.abandon(cs.traffic.tasks.at(ti))
	cs.servers.drop(ti)
}

// abandon ends the calls that a request has under way, without a verdict on anybody.
func (cs *calls) abandon(t *task) {
	for t.call != 0 {
		ci := t.call - 1
		c := cs.traffic.calls.at(ci)
		cs.drop(c)
		if c.aside != 0 { // it may be waiting in the guard's bulkhead, or for its circuit
			if beside := cs.traffic.aside(c); beside.waiter != nil {
				c.LeaveQueue(time.Duration(cs.world.now), beside.waiter, context.Canceled)
			}
		}
		c.Caller |= core.Gone
		c.Abort(time.Duration(cs.world.now))
		cs.rec.edges[c.edge].Ends[Unanswered]++
		if w := cs.world; w.edges[c.edge].fills {
			cs.fetched(place{c.task, c.which}, false)
		}
		t.call = c.next
		cs.traffic.putCall(ci, c)
	}
}
