package proxy

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/proxy/h1"
)

// client is where a request came from and its answer goes: a clientConn (HTTP/1.1) or a stream (HTTP/2).
type client interface {
	// gone tells whether the client has left.
	gone() bool
	// context ends when the client leaves, if gone has no way to tell.
	context() context.Context
	// takeContent returns the content of the request if all of it is there already.
	takeContent() ([]byte, bool)
	// skipContent does away with what is there of the content that nobody wants.
	skipContent()
	// Read reads the content otherwise: it waits for StallTimeout at most, and not past until. stop interrupts it, and
	// complete tells whether the content has been read to its end.
	Read(p []byte, until time.Duration) (int, error)
	stop()
	complete() bool
	trailer() []h1.Field

	// interim sends an informational answer; begin the head of the final one, write and end its content, and abort breaks it off.
	interim(status int, fields []h1.Field)
	begin(*head)
	write([]byte)
	flush()
	end(trailer []h1.Field)
	abort()
	// broken tells whether the client no longer takes what is sent.
	broken() bool

	// origin is where it comes from; multiplexed tells whether it speaks HTTP/2.
	origin() *origin
	multiplexed() bool
}

// exchange is one request under its guard: a driver of abate.Call. A connection has one and uses it for all its requests, so
// that a request allocates nothing.
type exchange struct {
	plane   *plane
	client  client
	req     h1.Request
	route   route
	in      *arrival // at the gate of a protected service; nil for a call that goes out
	fleet   *fleet
	call    abate.Call
	release abate.Release // of a call that was hedged
	first   answer        // of the attempt in the air, when it has no copies
	got     *answer
	body    content
	again   bool       // the request may be repeated
	tried   int        // the endpoint of the last attempt, -1 for none
	sent    int        // attempts
	reached bool       // one of them may have come to the service
	copies  sync.Mutex // of an attempt, where they write tried and sent
	called

	head      head // of the answer given
	began     time.Duration
	ended     time.Duration
	status    int   // of the answer given, 0 for none
	bytes     int64 // of its content
	reason    string
	tunnelled bool
	counted   bool // among the requests under way

	rpc    bool          // it is a gRPC call
	code   hops.Code     // of the answer given to one
	limit  time.Duration // the end of a gRPC call's time: its client's, and from run on what bound makes of it
	before int           // attempts that its client has made of this call, as it says; of a call that goes out
	// delivered tells that the client of a gRPC call has its answer: what became of the attempt was known only at its end.
	delivered bool
	step      abate.Step // what came of it then
	tail      []byte     // what the proxy adds to the trailer of a gRPC answer, as lines
	last      []h1.Field // room for that trailer
}

// serve has the request in x.req answered.
func (x *exchange) serve() {
	x.began = abate.Now()
	x.ended = x.began
	x.got, x.tried, x.sent, x.reached, x.status, x.bytes, x.reason, x.fleet, x.in = nil, -1, 0, false, 0, 0, "", nil, nil
	x.beginRPC()
	doubt := x.settlePath()
	if doubt != "" || !x.find() {
		x.route = route{}
		x.findTree()
		if doubt != "" {
			x.refusePath(doubt)
		} else {
			x.refuseUnrouted()
		}
		x.log(nil)
		return
	}
	if x.route.post != nil {
		x.in = newArrival(x)
	} else {
		x.unmask()
	}
	x.findTree()
	if x.looped() {
		x.problem(problem{Status: http.StatusLoopDetected, Reason: "loop", Detail: "the request has been through this proxy before: an upstream of " + x.service() + " is the proxy itself"})
		x.log(nil)
		x.leaveGate()
		return
	}
	x.fleet = x.route.service.fleetOf(&x.route.Destination)
	policy := x.fleet.policy
	x.again = x.repeatable(policy)
	x.body.open(x)
	x.route.stats.Began()
	x.counted = true
	err := x.decide(policy)
	x.body.close()
	x.ended = abate.Now()
	x.endAnswer()
	if x.got != nil {
		x.got.release(x.ended, false)
	}
	x.count()
	x.log(err)
	x.leaveGate()
}

// endAnswer tells the guard how the answer ended that counted as a success with its head. What breaks off is a failure of the
// service, unless the client has left.
func (x *exchange) endAnswer() {
	var broke error
	if a := x.got; a != nil && a.died {
		broke, a.result = a.broke, balance.Failure
	}
	x.call.AnswerEnded(x.ended, broke)
	if broke != nil {
		x.release.Failed(broke)
	} else {
		x.release.Done()
	}
	x.release = abate.Release{}
}

// decide has the guard, or the gate, decide about the request, and gives the client its answer.
func (x *exchange) decide(policy *abate.Policy) error {
	if x.in != nil {
		return x.arrive()
	}
	now, err := x.hold()
	if err == nil {
		err = x.run(policy, now, x.limit)
	}
	x.answer(err)
	return err
}

// repeatable tells whether sending the request twice does no harm.
func (x *exchange) repeatable(p *abate.Policy) bool {
	if x.rpc {
		return hops.RepeatableCall(p, x.method(), x.req.Keyed)
	}
	return abatehttp.Repeatable(text(x.req.Method), x.req.Keyed, p.RetryMethods)
}

// count counts the request as ended.
func (x *exchange) count() {
	x.counted = false
	x.route.stats.Ended(x.status, x.ended-x.began)
}

// contain ends a request that ended in a panic, and gives back what it holds.
func (x *exchange) contain(what any) {
	x.plane.config.Log.Error("panic while answering a request: please report it", "panic", what, "stack", string(debug.Stack()))
	x.ended = abate.Now()
	x.served(abate.Ignored)
	x.keyInUse().panicked()
	x.call.Abort(x.ended)
	x.call.AnswerEnded(x.ended, nil) // which nobody reads
	x.release.Done()
	x.release = abate.Release{}
	x.leaveTree()
	x.body.close()
	for _, a := range []*answer{&x.first, x.got} {
		if a != nil {
			a.ended, a.result = false, balance.Neutral // its connection may be in any state
			a.release(x.ended, false)
		}
	}
	if x.counted {
		x.count()
	}
}

// run makes the guarded call, which ends at until. What the last attempt brought is in x.got.
func (x *exchange) run(policy *abate.Policy, now, until time.Duration) error {
	if len(x.fleet.endpoints) == 0 {
		return errNoUpstreams
	}
	if x.rpc {
		x.bound(policy, now, until)
	}
	if policy.Hedge.Enabled() && x.mayHedge() {
		return x.runHedged()
	}
	x.call = abate.Call{}
	x.call.Under(x.tree)
	if x.before > 0 {
		x.call.RepeatedBefore()
	}
	step := x.route.Guard.Begin(&x.call, now, until)
	for {
		switch step.Action {
		case abate.Attempt:
			step = x.attempt(step.Until)
		case abate.Sleep:
			step = x.sleep(step.Until)
		case abate.Queue:
			step = x.queue()
		default:
			return step.Err
		}
	}
}

// hold reads a body that is held before anything is decided: a slow client must not hold permits, nor use up their time. now
// is when it was there.
func (x *exchange) hold() (now time.Duration, err error) {
	if x.body.kind != toHold || x.req.Expect {
		return x.began, nil
	}
	until := abate.NoDeadline
	if x.body.brief {
		until = min(x.limit, later(x.began, messageWait))
	}
	if err := x.body.fill(until); err != nil {
		return 0, err
	}
	return abate.Now(), nil
}

var errNoUpstreams = errors.New("the policy file names no upstreams for this service")

// attempt sends the request once and tells the call how that went.
func (x *exchange) attempt(until time.Duration) abate.Step {
	a := &x.first
	a.reset()
	a.told = x.delegate()
	if x.sent++; x.sent > 1 {
		x.route.stats.Retried(x.sent)
	}
	err := x.sendUnder(context.Background(), a, x.sent, until, true)
	x.reached = x.reached || a.sent
	if err == nil && x.rpc && !a.verdict.known {
		return x.deliver(a)
	}
	o := x.judge(a, err)
	now := abate.Now()
	step := x.call.AttemptDone(now, 0, o)
	if step.Action == abate.Finish && err == nil {
		x.got = a
		return step
	}
	a.release(now, true)
	return step
}

// errGone is the end of a call whose client has left.
var errGone = context.Canceled

// judge classifies an attempt. What the client did is not the service's fault.
func (x *exchange) judge(a *answer, err error) (o abate.Outcome) {
	again := x.mayRepeat(a)
	switch {
	case err == nil && x.rpc:
		if a.verdict.known { // else it has a message
			o = x.judgeRPC(a, again)
		}
	case err == nil && a.resp.Status < 400:
	case err == nil:
		o = abatehttp.ClassifyStatus(x.route.Guard, a.resp.Status, header(a.resp.Fields), again)
	case errors.Is(err, errGone) || x.body.failed() != nil || timedOut(err) && x.body.late():
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Err: err}
	case exhausted.Own(err): // another attempt would need the same
		o = abate.Outcome{Class: abate.Ignored, NoRetry: true, Unsent: !a.sent, Err: err}
	default:
		o = abatehttp.ClassifyError(x.route.Guard, err, again)
	}
	o.Unfinished = o.Class == abate.Success && err == nil && !x.rpc && !a.ended && a.resp.Status != http.StatusSwitchingProtocols
	x.hear(&o, a, err)
	a.result = results[o.Class]
	return o
}

var results = [...]balance.Result{
	abate.Success: balance.Success, abate.Failure: balance.Failure, abate.Overload: balance.Failure, abate.Ignored: balance.Neutral,
}

// mayRepeat tells whether the request may be sent again after a: it does no harm, or a has not reached the service; its body
// is still there; and in a gateway the file allows it.
func (x *exchange) mayRepeat(a *answer) bool {
	return (x.again || !a.sent) && x.body.replayable() && !(x.body.once && a.sent) && x.ownsRetries()
}

// mayTryAgain tells whether there may be another attempt at all.
func (x *exchange) mayTryAgain() bool { return x.fleet.policy.MaxRetries > 0 && x.ownsRetries() }

// ownsRetries tells whether this proxy may repeat and hedge at all: a gateway only if the file says so.
func (x *exchange) ownsRetries() bool {
	return !x.plane.config.Gateway || x.plane.policies.GatewayRetries()
}

// header makes a map of fields, for those who read one. Only failures are looked at so closely.
func header(fields []h1.Field) http.Header {
	h := make(http.Header, len(fields))
	for _, f := range fields {
		h.Add(string(f.Name), string(f.Value))
	}
	return h
}

// glance is how often a wait looks whether the client has left.
const glance = 250 * time.Millisecond

// sleep waits between attempts.
func (x *exchange) sleep(until time.Duration) abate.Step {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := abate.Now(); now < until; now = abate.Now() {
		timer.Reset(min(until-now, glance))
		select {
		case <-timer.C:
		case <-x.client.context().Done():
		}
		if x.client.gone() {
			return x.call.Cancel(abate.Now(), errGone)
		}
	}
	return x.call.Resume(abate.Now())
}

// queue waits for the bulkhead.
func (x *exchange) queue() abate.Step {
	admitted := make(chan struct{}, 1)
	w := &bulkhead.Waiter{Wake: func() {
		select {
		case admitted <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}}
	step := x.call.Enqueue(abate.Now(), w)
	if step.Action != abate.Queued {
		return step
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := abate.Now(); now < step.Until; now = abate.Now() {
		timer.Reset(min(step.Until-now, glance))
		select {
		case <-admitted:
			return x.call.Admitted(abate.Now())
		case <-timer.C:
		case <-x.client.context().Done():
		}
		if x.client.gone() {
			return x.call.LeaveQueue(abate.Now(), w, errGone)
		}
	}
	return x.call.LeaveQueue(abate.Now(), w, nil)
}

// service is the name of the service as its clients know it.
func (x *exchange) service() string {
	if x.route.post != nil {
		return x.route.post.gate.Name()
	}
	return x.route.Guard.Name()
}
