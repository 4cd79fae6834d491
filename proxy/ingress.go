package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/policy/shed"
	"github.com/abate-go/abate/proxy/h1"
)

// arrive drives the abate.Arrival of a request to a protected service: it has the gate decide, and what is admitted goes the
// way of a call that goes out, under a guard that lets everything pass.
//
// A body of known length up to MaxBufferedBody is read before the gate is asked, so that a slow client holds no place; a
// longer one, one in chunks, and one whose client waits for 100 (Continue) come after.
func (x *exchange) arrive() error {
	in := x.in
	token, known := in.authenticate(x)
	if !known {
		x.refuseAtGate(&abatehttp.Unauthenticated, "", "WWW-Authenticate: Bearer\r\n", 0)
		return nil
	}
	in.identify(x, token)
	now, err := x.hold()
	if err != nil {
		x.answer(err)
		return err
	}
	in.asked = true
	for step := in.post.gate.Arrive(&in.machine, now, in.request); ; now = abate.Now() {
		switch step.Action {
		case abate.Ask:
			limit := in.machine.AskFleet(x.client.context())
			step = in.machine.Limited(abate.Now(), limit)
		case abate.Measure:
			share := in.machine.ReadCPU()
			step = in.machine.Measured(abate.Now(), share)
		case abate.Queue:
			step = x.waitForPlace()
		case abate.Handle:
			return x.handle(now, step.Until)
		default:
			x.turnAway()
			return nil
		}
	}
}

// handle has the service do the request, or what is remembered of an earlier try answer it.
func (x *exchange) handle(now, until time.Duration) error {
	x.in.open = true
	if x.in.keys != nil {
		if run, err := x.claim(until); !run {
			return err
		}
	}
	x.joinTree()
	err := x.run(x.fleet.policy, now, until)
	if x.got == nil {
		x.served(x.failure(err))
		x.in.key.unanswered(x.reached)
	}
	x.answer(err)
	x.served(abate.Ignored) // its client did not take the answer to its end
	x.in.key.end()
	return err
}

// failure is the class of a request that got no answer.
func (x *exchange) failure(err error) abate.Class {
	if errors.Is(err, errGone) || x.client.gone() || x.body.failed() != nil || exhausted.Own(err) {
		return abate.Ignored
	}
	return abate.Failure
}

// served gives the place at the gate back: the service is through with the request.
func (x *exchange) served(class abate.Class) {
	if in := x.in; in != nil && in.open {
		in.open = false
		in.machine.Done(abate.Now(), class)
	}
}

// settle looks at the head of the answer. A protocol that is switched to, and a stream of events, last as long as they like:
// they hold no place from here on.
func (x *exchange) settle(a *answer) {
	if a.resp.Status == http.StatusSwitchingProtocols || stays(a.resp.Fields) {
		x.served(abate.Ignored)
	}
	if x.in.key != nil {
		x.in.key.head(a)
	}
	a.resp.Fields = x.in.outgoing(a.resp.Fields)
}

// whole tells those who wait for it that all of the answer has come from the service: the limits, and whoever keeps it for
// the repeats of the request. How long a long answer took is its client's affair.
func (x *exchange) whole(a *answer, key *keyed) {
	class := hops.ServedClass(a.resp.Status)
	if x.rpc {
		class = hops.ServedCode(a.verdict.code)
	}
	if class == abate.Success && x.bytes > widenFrom {
		class = abate.Ignored
	}
	x.served(class) // before the store is asked, which may take its time
	switch {
	case x.rpc:
		key.completeRPC(a)
	case key != nil:
		key.complete(a.trailer())
	}
}

// place is a wait in the queue of a gate. It is used again after a wait that was ended by Wake: nobody else has it then.
type place struct {
	waiter shed.Waiter
	woken  chan struct{}
	wake   func()
	timer  *time.Timer
}

var places = sync.Pool{New: func() any {
	p := &place{woken: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	p.wake = func() {
		select {
		case p.woken <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}
	return p
}}

// waitForPlace waits in the gate's queue. A client that has left does not wait.
func (x *exchange) waitForPlace() abate.Step {
	m, p := &x.in.machine, places.Get().(*place)
	p.waiter = shed.Waiter{Wake: p.wake}
	step := m.Enqueue(abate.Now(), &p.waiter)
	if step.Action != abate.Queued {
		return step
	}
	for now := abate.Now(); now < step.Until; now = abate.Now() {
		p.timer.Reset(min(step.Until-now, glance))
		select {
		case <-p.woken:
			if x.client.gone() { // nothing is done for a client that has left meanwhile
				return m.LeaveQueue(abate.Now(), &p.waiter, errGone)
			}
			step = m.Woken(abate.Now(), &p.waiter)
			p.timer.Stop() // before others have it
			places.Put(p)
			return step
		case <-p.timer.C:
		case <-x.client.context().Done():
		}
		if x.client.gone() {
			return m.LeaveQueue(abate.Now(), &p.waiter, errGone)
		}
	}
	return m.LeaveQueue(abate.Now(), &p.waiter, nil)
}

// turnAway answers what the gate refused. Under overload most requests end here: it makes no garbage.
func (x *exchange) turnAway() {
	r := x.in.machine.Refusal()
	status, code := abatehttp.RefusalStatus(r)
	if errors.Is(r.Reason, errGone) {
		x.reason = leftReason
		x.client.abort()
		return
	}
	if x.rpc {
		x.turnAwayRPC(r, status, code)
		return
	}
	x.reason = code
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	b := abatehttp.AppendRefusal((*room)[:0], x.service(), r)
	x.ownProblem(status, code, "", abatehttp.RefusalWait(r), b)
}

// refuseAtGate answers with a problem that is not the gate's own. detail says more than the problem does, if there is more
// to say; more is further fields, as lines.
func (x *exchange) refuseAtGate(p *abatehttp.Problem, detail, more string, wait time.Duration) {
	if x.rpc {
		x.refuseAtGateRPC(p, detail, wait)
		return
	}
	x.reason = p.Code
	room := buffers.Get().(*[]byte)
	defer buffers.Put(room)
	x.ownProblem(p.Status, p.Code, more, wait, p.Append((*room)[:0], x.service(), detail, wait))
}

// ownProblem answers with a problem. Its fields are written behind it, where there is room.
func (x *exchange) ownProblem(status int, code, more string, wait time.Duration, body []byte) {
	n := len(body)
	b := append(body, "Content-Type: application/problem+json\r\nCache-Control: no-store\r\n"...)
	b = append(h1.AppendField(b, reasonField, code), more...)
	if s := abatehttp.WholeSeconds(wait); s > 0 {
		b = append(b, "Retry-After: "...)
		b = append(strconv.AppendInt(b, s, 10), "\r\n"...)
	}
	x.own(status, b[n:], b[:n:n])
}
