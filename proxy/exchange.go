package proxy

import (
	"net/http"
	"runtime/debug"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// exchange is one request and its answer. It is used again, also for other clients, so that a request allocates
// nothing: renew makes it new, and keeps only memory.
type exchange struct {
	req      request
	body     content
	call     guardedCall
	reply    reply
	transfer transfer
	ended    time.Duration
	counted  bool // among the requests under way
}

// renew makes the exchange that of the request which x.req has read: each of its parts is a new one. Of the one before
// it keeps memory, and the route: most requests of a client go there again.
func (x *exchange) renew() {
	now, r := core.Now(), &x.req
	*r = request{
		Request: r.Request, plane: r.plane, client: r.client, route: r.route, began: now, limit: core.NoDeadline,
	}
	x.body = content{req: r, held: x.body.held}
	x.call.renew(r, &x.body)
	x.reply = reply{req: r, body: &x.body, tail: x.reply.tail[:0], last: x.reply.last[:0]}
	x.transfer = transfer{req: r, call: &x.call, reply: &x.reply, good: lastGood{req: r}}
	x.ended, x.counted = now, false
}

// serve has the request in x.req answered.
func (x *exchange) serve() {
	x.renew()
	r := &x.req
	r.lacks = ^marksOf(r.Fields)
	if r.connects() {
		x.connect()
		return
	}
	r.readRPC()
	doubt := r.settlePath()
	if doubt != "" || !r.find() {
		x.refuseUnrouted(doubt)
		return
	}
	if r.route.post != nil {
		r.in = newArrival(r)
	} else {
		r.unmask()
	}
	r.findTree()
	if r.looped() {
		x.reply.problem(problem{Status: http.StatusLoopDetected, Reason: "loop",
			Detail: "the request has been through this proxy before: an upstream of " + r.service() + " is the proxy itself"})
		x.log(nil)
		r.leaveGate(false)
		return
	}
	r.joinTrace()
	r.fleet = r.route.service.fleetOf(&r.route.Destination)
	policy := &r.fleet.policy.Policy
	r.again = r.repeatable(policy)
	x.body.open()
	r.route.stats.Began()
	x.counted = true
	err := x.decide(policy)
	x.body.close()
	x.ended = core.Now()
	x.call.end(x.ended)
	x.count()
	if r.traced.recorded {
		x.endTrace(err)
	}
	x.log(err)
	r.leaveGate(x.call.got != nil)
	x.transfer.forget()
}

// decide has the guard, or the gate, decide about the request, and gives the client its answer.
func (x *exchange) decide(policy *abate.Policy) error {
	if x.req.in != nil {
		return x.arrive()
	}
	now, err := x.body.hold()
	if err == nil {
		err = x.run(policy, now, x.req.limit)
	}
	x.answer(err)
	return err
}

// run makes the guarded call, which ends at until. An answer of gRPC may go on to the client before the call has ended.
func (x *exchange) run(policy *abate.Policy, now, until time.Duration) error {
	err := x.call.begin(policy, now, until)
	if !x.call.delivered {
		return err
	}
	x.body.commit()
	x.transfer.pass(x.call.got, nil)
	x.call.endDelivered() // if it did not come to its end
	return x.call.drive()
}

// refuseUnrouted answers a request that belongs to no service, or whose path is in doubt.
func (x *exchange) refuseUnrouted(doubt string) {
	x.req.route = route{}
	x.req.findTree()
	if doubt != "" {
		x.reply.refusePath(doubt)
	} else {
		x.reply.refuseUnrouted()
	}
	x.log(nil)
}

func (x *exchange) count() {
	x.counted = false
	stats, took := x.req.route.stats, x.ended-x.req.began
	if t := &x.req.traced; t.recorded {
		stats.EndedIn(x.reply.status, took, t.own.Trace.String(), t.own.Span.String())
		return
	}
	stats.Ended(x.reply.status, took)
}

// contain ends a request that ended in a panic, and gives back what it holds.
func (x *exchange) contain(what any) {
	log := x.req.plane.config.Log
	log.Error("panic while answering a request: please report it", "panic", what, "stack", string(debug.Stack()))
	x.ended = core.Now()
	x.req.in.served(abate.Ignored)
	x.req.keyInUse().panicked()
	x.req.in.leaveTree(x.call.got != nil)
	x.call.abort(x.ended)
	if x.counted {
		x.count()
	}
	if x.req.traced.recorded {
		x.endTrace(errPanicked)
	}
}
