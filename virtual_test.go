package abate_test

import (
	"container/heap"
	"context"
	"errors"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/bulkhead"
)

// virtual drives Calls with an event queue instead of goroutines and timers, as a simulator does.
type virtual struct {
	now   time.Duration
	queue eventQueue
	seq   int
}

type virtualEvent struct {
	at  time.Duration
	seq int
	do  func()
}

type eventQueue []virtualEvent

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(virtualEvent)) }
func (q *eventQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

func (v *virtual) after(d time.Duration, do func()) {
	v.seq++
	heap.Push(&v.queue, virtualEvent{v.now + d, v.seq, do})
}

func (v *virtual) run() {
	for v.queue.Len() > 0 {
		e := heap.Pop(&v.queue).(virtualEvent)
		v.now = e.at
		e.do()
	}
}

// virtualCall is one call of a scenario under the virtual driver.
type virtualCall struct {
	*virtual
	core.Call
	sc     *scenario
	caller call
	gone   error // why the caller left
	wait   int   // number of the wait in progress; a timer of an earlier one does nothing
	ended  bool
	err    error

	queued  *bulkhead.Waiter // in the bulkhead's queue
	asleep  bool
	flights [core.MaxCopies]int // generation of the copy in the air, 0 for none
	sent    int
}

func (v *virtual) start(g *abate.Guard, sc *scenario, caller call) *virtualCall {
	c := &virtualCall{virtual: v, sc: sc, caller: caller}
	v.after(caller.at, func() {
		deadline := core.NoDeadline
		if caller.deadline > 0 {
			deadline = v.now + caller.deadline
		}
		if caller.leaves > 0 {
			v.after(caller.leaves, func() { c.leave(context.Canceled) })
		}
		c.take(g.Begin(&c.Call, v.now, deadline))
	})
	return c
}

// leave is the caller's cancellation.
func (c *virtualCall) leave(cause error) {
	c.gone = cause
	switch {
	case c.ended:
	case c.queued != nil:
		c.take(c.LeaveQueue(c.now, c.queued, cause))
	case c.asleep:
		c.take(c.Cancel(c.now, cause))
	default: // the copies in the air see their context end
		for n, flight := range c.flights {
			if flight != 0 {
				c.land(n, flight, cause)
			}
		}
	}
}

func (c *virtualCall) take(step core.Step) {
	c.wait++
	wait := c.wait
	c.queued, c.asleep = nil, false
	switch step.Action {
	case core.Attempt:
		c.fly(0, step.Until)
		c.armHedge()
	case core.Sleep:
		c.asleep = true
		c.after(step.Until-c.now, func() {
			if c.wait == wait && !c.ended {
				c.take(c.Resume(c.now))
			}
		})
	case core.Queue:
		w := &bulkhead.Waiter{}
		w.Wake = func() {
			c.wait++
			wait := c.wait
			c.after(0, func() {
				if c.wait == wait { // the caller may have left at the same moment
					c.waits(w, c.Admitted(c.now))
				}
			})
		}
		c.waits(w, c.Enqueue(c.now, w))
	case core.Finish:
		c.ended, c.err = true, step.Err
		c.flights = [core.MaxCopies]int{}
	}
}

// waits takes a step of a call that was in the queue.
func (c *virtualCall) waits(w *bulkhead.Waiter, step core.Step) {
	c.take(step)
	if step.Action != core.Queued {
		return
	}
	c.queued = w
	wait := c.wait
	c.after(step.Until-c.now, func() {
		if c.wait == wait && !c.ended {
			c.waits(w, c.LeaveQueue(c.now, w, nil))
		}
	})
}

// fly puts a copy in the air: it lands after the script's time, or at its deadline.
func (c *virtualCall) fly(n int, deadline time.Duration) {
	r := c.sc.reply(c.caller, c.sent)
	c.sent++
	flight := c.sent
	c.flights[n] = flight
	takes, err := r.after, r.err
	if deadline != core.NoDeadline && deadline-c.now < takes {
		takes, err = deadline-c.now, context.DeadlineExceeded
	}
	c.after(takes, func() { c.land(n, flight, err) })
}

func (c *virtualCall) land(n, flight int, err error) {
	if c.flights[n] != flight || c.ended {
		return
	}
	c.flights[n] = 0
	if step := c.AttemptDone(c.now, n, outcomeOf(err, c.gone)); step.Action != core.Await {
		c.take(step)
	}
}

func (c *virtualCall) armHedge() {
	delay, ok := c.HedgeDelay(c.now)
	if !ok || !c.sc.hedged {
		return
	}
	round := c.wait
	c.after(delay, func() {
		if c.wait != round || c.ended {
			return
		}
		if n, deadline, ok := c.Hedge(c.now); ok {
			c.fly(n, deadline)
			c.armHedge()
		}
	})
}

// outcomeOf is the classification a simulator writes down directly; here it mirrors what the script's errors mean to
// Do.
func outcomeOf(err, gone error) abate.Outcome {
	switch {
	case err == nil:
		return abate.Outcome{}
	case gone != nil:
		return abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err}
	case errors.Is(err, errFinal):
		return abate.Outcome{Class: abate.Failure, NoRetry: true, Err: errFinal}
	case errors.Is(err, errBusy):
		return abate.Outcome{Class: abate.Overload, RetryAfter: busyFor, Err: errBusy}
	}
	return abate.Outcome{Class: abate.Failure, Err: err}
}
