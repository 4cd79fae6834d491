package engine

import (
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/sim/kernel"
)

// dial is the opening of one connection under a guard of its own, as adapters for databases do it. Every decision about it is
// abate.Call's.
type dial struct {
	attempt uint32 // that waits for it
	last    EndKind
	abate.Call
}

// dial opens a connection for an attempt: under the guard for connections, or at once.
func (e *Engine) dial(ai uint32) {
	a := e.attempts.at(ai)
	c := e.calls.at(a.call)
	a.pooled = connecting
	guard := e.insts[c.inst].dialers[e.edges[c.edge].slot]
	if guard == nil {
		e.shakeHands(ai)
		return
	}
	di, d := e.dials.get()
	*d = dial{attempt: ai, last: TimedOut}
	a.dial = di + 1
	e.takeDial(di, guard.Begin(&d.Call, time.Duration(e.now), time.Duration(a.until)))
}

// takeDial carries out what the guard for connections says to do next.
func (e *Engine) takeDial(di uint32, step abate.Step) {
	if step.Action == abate.Await {
		return
	}
	d := e.dials.at(di)
	e.dials.renew(di)
	generation := e.dials.generation(di)
	switch step.Action {
	case abate.Attempt:
		e.shakeHands(d.attempt)
		if step.Until < time.Duration(e.attempts.at(d.attempt).until) {
			e.queue.Push(int64(step.Until), di, kernel.Meta(evDialTimeout, generation))
		}
	case abate.Sleep:
		e.queue.Push(int64(step.Until), di, kernel.Meta(evDialResume, generation))
	case abate.Finish:
		e.dialEnds(di, step.Err)
	}
}

// dialEnds goes on with the attempt that waited for a connection.
func (e *Engine) dialEnds(di uint32, err error) {
	d := e.dials.at(di)
	ai, end := d.attempt, endOf(err, d.Attempts(), d.last)
	e.dials.put(di)
	a := e.attempts.at(ai)
	a.dial = 0
	if end == Answered {
		e.connectionOpen(ai)
		return
	}
	// By an event: whoever wants a connection next may be refused in the same moment, and so on down the line.
	a.answer, a.unopened = end, true
	e.queue.Push(e.now, ai, kernel.Meta(evReply, e.attempts.generation(ai)))
}

// unopened is what a call is told of an attempt that got no connection: the guard for connections has tried as often as it
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

// dialed tells the guard for connections what an attempt to connect came to.
func (e *Engine) dialed(a *attempt, end EndKind) {
	di := a.dial - 1
	d := e.dials.at(di)
	outcome := abate.Outcome{}
	if end != Answered {
		d.last = end
		outcome = abate.Outcome{Class: abate.Failure, Unsent: true, Err: failures[end].err}
		if end == NoConnection {
			outcome.Class = abate.Overload
		}
	}
	e.takeDial(di, d.AttemptDone(time.Duration(e.now), 0, outcome))
}

// dialMoves is the end of a handshake, of a wait before the next attempt to connect, or of the time that one may take. Of that the
// other side may not notice.
func (e *Engine) dialMoves(kind uint8, i, generation uint32) {
	switch {
	case kind == evConnected:
		if e.tasks.is(i, generation) {
			e.connected(i)
		}
	case !e.dials.is(i, generation):
	case kind == evDialResume:
		e.takeDial(i, e.dials.at(i).Resume(time.Duration(e.now)))
	default:
		a := e.attempts.at(e.dials.at(i).attempt)
		e.letGo(a)
		e.dialed(a, TimedOut)
	}
}

// letGo makes the other side's answer to an attempt to connect mean nothing.
func (e *Engine) letGo(a *attempt) {
	if a.task != 0 {
		e.tasks.at(a.task - 1).generation = 0 // no attempt in use has it
		a.task = 0
	}
}

// dropDial ends the opening of a connection because nobody waits for it any more.
func (e *Engine) dropDial(a *attempt) {
	if a.dial == 0 {
		return
	}
	di := a.dial - 1
	a.dial = 0
	d := e.dials.at(di)
	if e.now >= a.until { // its time is over, which the other side may be the reason for
		d.AttemptDone(time.Duration(e.now), 0, abate.Outcome{Class: abate.Failure, NoRetry: true, Err: failures[TimedOut].err})
	}
	d.Abort(time.Duration(e.now))
	e.dials.put(di)
}
