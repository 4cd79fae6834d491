package proxy

import (
	"errors"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/policy/shed"
)

// arrive drives the inbound.Arrival of a request to a protected service: it has the gate decide, and what is admitted
// goes the way of a call that goes out, under a guard that lets everything pass.
//
// A body of known length up to MaxBufferedBody is read before the gate is asked, so that a slow client holds no
// place; a longer one, one in chunks, and one whose client waits for 100 (Continue) come after.
func (x *exchange) arrive() error {
	in := x.req.in
	token, known := in.authenticate(&x.req)
	if !known {
		x.reply.refuseAtGate(&abatehttp.Unauthenticated, "", "WWW-Authenticate: Bearer\r\n", 0)
		return nil
	}
	in.identify(&x.req, token)
	now, err := x.body.hold()
	if err != nil {
		x.answer(err)
		return err
	}
	in.asked = true
	for step := in.post.gate.Arrive(&in.machine, now, in.request); ; now = core.Now() {
		switch step.Action {
		case core.Ask:
			limit := in.machine.AskFleet(x.req.client.context())
			step = in.machine.Limited(core.Now(), limit)
		case core.Measure:
			share := in.machine.ReadCPU()
			step = in.machine.Measured(core.Now(), share)
		case core.Queue:
			step = x.waitForPlace()
		case core.Handle:
			return x.handle(now, step.Until)
		default:
			x.reply.turnAway()
			return nil
		}
	}
}

// handle has the service do the request, or what is remembered of an earlier try answer it.
func (x *exchange) handle(now, until time.Duration) error {
	in := x.req.in
	if in.open = true; in.machine.Holds() {
		in.loan.Open(&in.machine)
		x.req.client.lend(&in.loan)
	}
	if x.req.in.keys != nil {
		if run, err := x.claim(until); !run {
			return err
		}
	}
	x.req.in.joinTree(&x.req)
	err := x.run(&x.req.fleet.policy.Policy, now, until)
	if x.call.got == nil {
		x.req.in.served(x.failure(err))
		x.req.in.key.unanswered(x.call.reached)
	}
	x.answer(err)
	x.req.in.served(abate.Ignored) // its client did not take the answer to its end
	x.req.in.key.end()
	return err
}

// failure is the class of a request that got no answer.
func (x *exchange) failure(err error) abate.Class {
	if errors.Is(err, errGone) || x.req.client.gone() || x.body.failed() != nil || exhausted.Own(err) {
		return abate.Ignored
	}
	return abate.Failure
}

// gateWait is a wait in the queue of a gate. It is used again after a wait that was ended by Wake: nobody else has it
// then.
type gateWait struct {
	waiter shed.Waiter
	woken  chan struct{}
	wake   func()
	timer  *time.Timer
}

var gateWaits = sync.Pool{New: func() any {
	p := &gateWait{woken: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	p.wake = func() {
		select {
		case p.woken <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}
	return p
}}

// waitForPlace waits in the gate's queue. A client that has left does not wait.
func (x *exchange) waitForPlace() core.Step {
	m, p := &x.req.in.machine, gateWaits.Get().(*gateWait)
	p.waiter = shed.Waiter{Wake: p.wake}
	step := m.Enqueue(core.Now(), &p.waiter)
	if step.Action != core.Queued {
		return step
	}
	for now := core.Now(); now < step.Until; now = core.Now() {
		p.timer.Reset(min(step.Until-now, glance))
		select {
		case <-p.woken:
			if x.req.client.gone() { // nothing is done for a client that has left meanwhile
				return m.LeaveQueue(core.Now(), &p.waiter, errGone)
			}
			step = m.Woken(core.Now(), &p.waiter)
			p.timer.Stop() // before others have it
			gateWaits.Put(p)
			return step
		case <-p.timer.C:
		case <-x.req.client.context().Done():
		}
		if x.req.client.gone() {
			return m.LeaveQueue(core.Now(), &p.waiter, errGone)
		}
	}
	return m.LeaveQueue(core.Now(), &p.waiter, nil)
}
