package engine

import (
	"context"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/sim/kernel"
	"github.com/abate-go/abate/sim/scenario"
)

// task is one request where it is being handled: at the fleet that it began with, or, one per attempt, at a replica.
type task struct {
	since    int64 // when it began; at a replica: when it joined the queue, then when its worker took it
	deadline int64 // when the caller gives up, as far as is known by now; at a replica, once it is worked on: when it arrived
	drawn    int64 // service time drawn on arrival

	inst       int32
	attempt    uint32 // at a replica: the attempt it answers,
	generation uint32 // which may be over
	call       uint32 // + 1: first of the calls under way for it
	user       uint32 // + 1: of a closed loop; of a delivery: its message; at a replica with a gate: what the gate knows of it
	mark       uint32 // of a fleet's request: the bin it began in; at a replica with an optimistic lock: the row's version
	step       uint16
	pending    uint16 // calls under way
	trace      uint16

	priority shed.Priority // if its caller said one

	window  Window
	failed  EndKind // how the call ended that spoilt it; 0 while all is well
	ranked  bool    // priority is set
	root    bool
	working bool // holds a worker
	queued  bool
	connect bool // is the making of a connection
	dead    bool // cancelled while it waited in a queue
	tree    bool // it came with an allowance: see trees
}

// advance takes a request to its next step, or to its end.
func (e *Engine) advance(ti uint32) {
	t := e.tasks.at(ti)
	node := &e.nodes[e.insts[t.inst].node]
	for int(t.step) < len(node.plan) {
		s := node.plan[t.step]
		t.step++
		switch s.kind {
		case workStep:
			e.work(ti)
			return
		case fanStep:
			if e.fan(ti, node); t.pending > 0 {
				return
			}
			e.joined(ti) // all of them have ended already
			return
		case callStep:
			if e.makes(s.edge, t.inst) {
				t.pending = 1
				e.startCall(ti, s.edge)
				return // endCall goes on
			}
		}
	}
	e.taskEnds(ti, Answered)
}

// makes draws whether a request makes a call that only a share of them make.
func (e *Engine) makes(k, inst int32) bool {
	share := e.edges[k].share
	return share >= 1 || e.insts[inst].stream.Float64() < share
}

// fan makes all calls at once.
func (e *Engine) fan(ti uint32, node *node) {
	t := e.tasks.at(ti)
	t.pending = 1 // holds the task until all have begun
	for _, k := range node.edges {
		for range max(e.edges[k].call.Times, 1) {
			if e.makes(k, t.inst) {
				t.pending++
				e.startCall(ti, k)
			}
		}
	}
	t.pending--
}

// callEnded goes on with the request that a call was made for.
func (e *Engine) callEnded(ti uint32, end EndKind, optional bool) {
	t := e.tasks.at(ti)
	if end != Answered && !optional && t.failed == Answered {
		t.failed = end
	}
	if t.pending--; t.pending == 0 {
		e.joined(ti)
	}
}

// joined goes on when no call is under way any more.
func (e *Engine) joined(ti uint32) {
	if failed := e.tasks.at(ti).failed; failed != Answered {
		e.taskEnds(ti, failed)
		return
	}
	e.advance(ti)
}

// taskEnds answers a request. What failed at a service was a call it made, or its own work.
func (e *Engine) taskEnds(ti uint32, end EndKind) {
	t := e.tasks.at(ti)
	if t.root {
		e.requestEnds(ti, end)
		return
	}
	if t.failed != Answered {
		end = BadGateway
	}
	e.served(ti, end)
	attempt, generation, inst := t.attempt, t.generation, t.inst
	e.report(ti, end)
	e.leaveGate(t, classes[end])
	e.tasks.put(ti)
	e.startNext(inst)
	if e.attempts.is(attempt, generation) {
		e.reply(attempt, end)
	}
}

// reply sends an answer on its way to the caller.
func (e *Engine) reply(ai uint32, end EndKind) {
	a := e.attempts.at(ai)
	a.task = 0
	c := e.calls.at(a.call)
	edge := &e.edges[c.edge]
	if e.lost(a.replica) {
		return
	}
	if delay := edge.call.Latency.Sample(&e.insts[c.inst].stream); delay > 0 || e.taking > 0 {
		a.answer = end
		e.queue.Push(e.now+delay, ai, kernel.Meta(evReply, e.attempts.generation(ai)))
		return
	}
	e.deliver(ai, end)
}

// replyLater is reply for an answer that is given while the call is still being sent.
func (e *Engine) replyLater(ai uint32, end EndKind) {
	a := e.attempts.at(ai)
	a.task, a.answer = 0, end
	c := e.calls.at(a.call)
	delay := e.edges[c.edge].call.Latency.Sample(&e.insts[c.inst].stream)
	e.queue.Push(e.now+delay, ai, kernel.Meta(evReply, e.attempts.generation(ai)))
}

// cancel ends a request whose caller has left, where cancellation propagates: it frees what it holds.
func (e *Engine) cancel(ti uint32) {
	t := e.tasks.at(ti)
	if t.queued { // the queue lets go of it when its turn comes
		t.dead, t.queued = true, false
		e.insts[t.inst].waiting--
		e.tasks.renew(ti)
		e.leaveGate(t, abate.Ignored)
		return
	}
	e.abandonCalls(t)
	inst := t.inst
	e.served(ti, TimedOut)
	e.leaveGate(t, abate.Ignored)
	e.tasks.put(ti)
	e.startNext(inst)
}

// abandonCalls ends the calls that a request has under way, without a verdict on anybody.
func (e *Engine) abandonCalls(t *task) {
	for t.call != 0 {
		ci := t.call - 1
		c := e.calls.at(ci)
		e.dropAttempts(ci)
		if c.waiter != nil { // it may be waiting in the guard's bulkhead
			c.LeaveQueue(time.Duration(e.now), c.waiter, context.Canceled)
			c.waiter = nil
		}
		c.Abort(time.Duration(e.now))
		e.edges[c.edge].record.Ends[Unanswered]++
		t.call = c.next
		e.calls.put(ci)
	}
}

// leave tells the service that a caller has given an attempt up.
func (e *Engine) leave(a *attempt) {
	if e.scenario.Model.Cancellation != scenario.CancellationPropagates || a.task == 0 {
		return
	}
	if ti := a.task - 1; !e.tasks.at(ti).connect {
		e.cancel(ti)
	}
}

// deadlineOf is when the caller of a call that a request makes gives up.
func (t *task) deadlineOf() time.Duration {
	if t.root {
		return time.Duration(t.deadline)
	}
	return abate.NoDeadline
}
