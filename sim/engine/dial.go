package engine

import (
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/sim/kernel"
)

// dial is the opening of one connection under a guard of its own, as adapters for databases do it. Every decision about
// it is core.Call's.
type dial struct {
	attempt uint32 // that waits for it
	last    EndKind
	core.Call
}

// dial opens a connection for an attempt: under the guard for connections, or at once.
func (cs *connections) dial(ai uint32) {
	a := cs.traffic.attempts.at(ai)
	c := cs.traffic.calls.at(a.call)
	a.pooled = connecting
	guard := cs.dialers[c.inst][cs.world.edges[c.edge].slot]
	if guard == nil {
		cs.shakeHands(ai)
		return
	}
	di, d := cs.dials.get()
	*d = dial{attempt: ai, last: TimedOut}
	d.Caller = core.Terse
	a.dial = di + 1
	cs.takeDial(di, guard.Begin(&d.Call, time.Duration(cs.world.now), time.Duration(a.until)))
}

// takeDial carries out what the guard for connections says to do next.
func (cs *connections) takeDial(di uint32, step core.Step) {
	if step.Action == core.Await {
		return
	}
	d := cs.dials.at(di)
	cs.dials.renew(di)
	generation := cs.dials.generation(di)
	switch step.Action {
	case core.Attempt:
		cs.shakeHands(d.attempt)
		if step.Until < time.Duration(cs.traffic.attempts.at(d.attempt).until) {
			cs.world.queue.Push(int64(step.Until), di, kernel.Meta(evDialTimeout, generation))
		}
	case core.Sleep:
		cs.world.queue.Push(int64(step.Until), di, kernel.Meta(evDialResume, generation))
	case core.Queue: // a connection is not waited for here
		cs.takeDial(di, d.Cancel(time.Duration(cs.world.now), core.ErrCircuitOpen))
	case core.Finish:
		cs.dialEnds(di, step.Err)
	}
}

// dialEnds goes on with the attempt that waited for a connection.
func (cs *connections) dialEnds(di uint32, err error) {
	d := cs.dials.at(di)
	ai, end := d.attempt, endOf(err, d.Attempts(), d.last)
	cs.dials.put(di)
	a := cs.traffic.attempts.at(ai)
	a.dial = 0
	if end == Answered {
		cs.connectionOpen(ai)
		return
	}
	// By an event: whoever wants a connection next may be refused in the same moment, and so on down the line.
	a.unopened = true
	cs.traffic.replyIn(ai, end, 0)
}

// unopened is the outcome of an attempt that got no connection: the guard for connections has tried as often as it
// wanted, or refused to. To a naive caller it is an error like any other, after which it comes again.
func unopened(end EndKind, naive bool) abate.Outcome {
	o := abate.Outcome{Class: abate.Failure, NoRetry: !naive, Unsent: true, Err: failures[end].err}
	if o.Err == nil {
		o.Err = errNoConnection
		if !naive {
			o.Class = abate.Ignored
		}
	}
	return o
}

// dialed reports to the guard for connections what an attempt to connect came to.
func (cs *connections) dialed(a *attempt, end EndKind) {
	di := a.dial - 1
	d := cs.dials.at(di)
	outcome := abate.Outcome{}
	if end != Answered {
		d.last = end
		outcome = abate.Outcome{Class: abate.Failure, Unsent: true, Err: failures[end].err}
		if end == NoConnection {
			outcome.Class = abate.Overload
		}
	}
	cs.takeDial(di, d.AttemptDone(time.Duration(cs.world.now), 0, outcome))
}

// dialResumes is the end of a wait before the next attempt to connect.
func (cs *connections) dialResumes(di uint32) {
	cs.takeDial(di, cs.dials.at(di).Resume(time.Duration(cs.world.now)))
}

// dialTimeout is the end of the time that one attempt to connect may take. The other side may not notice.
func (cs *connections) dialTimeout(di uint32) {
	a := cs.traffic.attempts.at(cs.dials.at(di).attempt)
	cs.letGo(a)
	cs.dialed(a, TimedOut)
}

// letGo makes the other side's answer to an attempt to connect mean nothing.
func (cs *connections) letGo(a *attempt) {
	if a.task != 0 {
		cs.traffic.tasks.at(a.task - 1).generation = 0 // no attempt in use has it
		a.task = 0
	}
}

// dropDial ends the opening of a connection because nobody waits for it any more.
func (cs *connections) dropDial(a *attempt) {
	if a.dial == 0 {
		return
	}
	di := a.dial - 1
	a.dial = 0
	d := cs.dials.at(di)
	if cs.world.now >= a.until { // its time is over, which the other side may be the reason for
		tooLate := abate.Outcome{Class: abate.Failure, NoRetry: true, Err: failures[TimedOut].err}
		d.AttemptDone(time.Duration(cs.world.now), 0, tooLate)
	}
	d.Abort(time.Duration(cs.world.now))
	cs.dials.put(di)
}

// shakeHands sends for a new connection.
func (cs *connections) shakeHands(ai uint32) {
	a := cs.traffic.attempts.at(ai)
	c := cs.traffic.calls.at(a.call)
	edge := &cs.world.edges[c.edge]
	a.replica = cs.replicaOf(ai, edge)
	cs.rec.connects(edge.callee)
	if cs.servers.lost(a.replica, ai, ofWay) {
		return
	}
	ti, t := cs.traffic.tasks.get()
	*t = task{inst: a.replica, attempt: ai, generation: cs.traffic.attempts.generation(ai), since: cs.world.now,
		trace: c.trace, connect: true}
	a.task = ti + 1
	cs.travel(ti, t, edge, c.inst, 0)
}

// travel takes a request over the network to its replica.
func (cs *connections) travel(ti uint32, t *task, edge *edge, caller int32, delay int64) {
	w := cs.world
	if delay += w.way(edge, caller, t.inst); delay > 0 {
		w.queue.Push(w.now+delay, ti, kernel.Meta(evReach, cs.traffic.tasks.generation(ti)))
		return
	}
	cs.servers.reach(ti, t)
}
