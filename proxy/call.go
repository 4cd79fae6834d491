package proxy

import (
	"context"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/policy/bulkhead"
)

// guardedCall is a request that is sent under its guard: a driver of core.Call.
type guardedCall struct {
	req  *request
	body *content

	machine core.Call
	release core.Release // of a call that was hedged
	step    core.Step    // what is to be done next
	tries   tries
	until   time.Duration // the end of the call's time
	reached bool          // an attempt may have come to the service
	first   answer        // of the attempt in the air, when it has no copies
	got     *answer

	// delivered reports that the client of a gRPC call has its answer: how the attempt went was known only at its
	// end, which judged reports.
	delivered, judged bool
}

// renew makes a new call of g, with the memory of the last.
func (g *guardedCall) renew(r *request, b *content) {
	fields, sent, lines := g.first.memory()
	*g = guardedCall{req: r, body: b}
	g.first.resp.Fields, g.first.h2.head.Fields, g.first.h2.lines = fields, sent, lines
}

// begin begins the guarded call, which ends at until.
func (g *guardedCall) begin(policy *abate.Policy, now, until time.Duration) error {
	r := g.req
	if len(r.fleet.endpoints) == 0 {
		patience := until
		if policy.Timeout > 0 {
			patience = min(patience, later(now, policy.Timeout))
		}
		if r.fleet = r.awaitEndpoints(patience); len(r.fleet.endpoints) == 0 {
			return r.route.service.noEndpoints()
		}
		now = core.Now()
	}
	if r.rpc {
		r.bound(policy, now, until)
	}
	if policy.Hedge.Enabled() && g.mayHedge() {
		return g.runHedged()
	}
	if g.until = until; policy.Timeout > 0 {
		g.until = min(until, later(now, policy.Timeout))
	}
	g.machine.Under(r.tree)
	if r.before > 0 {
		g.machine.RepeatedBefore()
	}
	g.step = r.route.Guard.Begin(&g.machine, now, until)
	return g.drive()
}

// awaitEndpoints waits for the first answer of discovery, until the request's time is up. It returns the newest fleet.
func (r *request) awaitEndpoints(until time.Duration) *fleet {
	s := r.route.service
	w := s.watcher.Load()
	if w == nil {
		return r.fleet
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := core.Now(); now < until && !r.gone(); now = core.Now() {
		timer.Reset(min(until-now, glance))
		select {
		case <-w.First():
			return s.newest(r.fleet)
		case <-timer.C:
		}
	}
	return s.newest(r.fleet)
}

// drive makes the call. What the last attempt brought is in got. It stops early when an answer of gRPC has a message:
// that goes on to the client, and then the call goes on.
func (g *guardedCall) drive() error {
	for {
		switch g.step.Action {
		case core.Attempt:
			if g.attempt(g.step.Until); g.delivered && !g.judged {
				return nil
			}
		case core.Sleep:
			g.step = g.sleep(g.step.Until)
		case core.Queue:
			g.step = g.queue()
		default:
			if g.got != nil && g.got.rests {
				wake(g.got, core.Now())
			}
			return g.step.Err
		}
	}
}

// attempt sends the request once and has the call record how that went.
func (g *guardedCall) attempt(until time.Duration) {
	a := &g.first
	g.forget()
	told := g.delegate()
	if g.tries.sent++; g.tries.sent > 1 {
		g.req.route.stats.Retried(g.tries.sent)
	}
	a.renew(g.req, g.body, &g.tries, until, true, told)
	now := core.Now()
	g.bind(a, until, now)
	err := a.send(context.Background(), g.tries.sent, now)
	tellHandedOver(a)
	a.span.err = err
	g.reached = g.reached || a.sent
	if err == nil && g.req.rpc && !a.verdict.known {
		g.got, g.delivered = a, true
		core.AnswerBegan(&g.machine, core.Now())
		return
	}
	if g.req.rpc { // its answer is complete; before it is judged whether the body can be sent again
		a.h2.leaveBody(g.body)
	}
	o := g.judge(a, err)
	now = core.Now()
	g.step = g.machine.AttemptDone(now, 0, o)
	switch {
	case err == nil && g.step.Action == core.Finish:
		g.got = a
	case err == nil && g.step.Action == core.Queue: // it may be waiting in vain: then this is the answer
		g.got = a
		rest(a, now)
	default:
		a.release(now, true)
	}
}

// bind makes a the only attempt of g, which ends at until.
func (g *guardedCall) bind(a *answer, until, now time.Duration) {
	if a.call, a.callEnd = &g.machine, g.until; until != core.NoDeadline {
		a.patience = until - now
	}
	if a.body.kind == streamed { // attemptTimeout begins when the body has come, which nobody can foresee
		a.head.until = a.callEnd
	}
}

// forget gives up the answer that the call has kept while it waited, because there is another attempt.
func (g *guardedCall) forget() {
	if a := g.got; a != nil {
		g.got = nil
		wake(a, core.Now())
		a.release(core.Now(), true)
	}
}

// endDelivered records how the attempt ended whose answer the client has got. There is no way back.
func (g *guardedCall) endDelivered() {
	if !g.judged {
		g.judged = true
		g.step = g.machine.AttemptDone(core.Now(), 0, g.judgeDelivered(g.got))
	}
}

// delegate asks the call what to tell with the attempt that it has just begun.
func (g *guardedCall) delegate() (t telling) {
	if g.req.owner {
		t.Allowance, t.tells = g.machine.Delegate(0)
	}
	return t
}

// sleep waits between attempts.
func (g *guardedCall) sleep(until time.Duration) core.Step {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for now := core.Now(); now < until; now = core.Now() {
		timer.Reset(min(until-now, glance))
		select {
		case <-timer.C:
		case <-g.req.client.context().Done():
		}
		if g.req.client.gone() {
			return g.machine.Cancel(core.Now(), errGone)
		}
	}
	return g.machine.Resume(core.Now())
}

func (g *guardedCall) queue() core.Step {
	admitted := make(chan struct{}, 1)
	w := &bulkhead.Waiter{Wake: func() {
		select {
		case admitted <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}}
	step := g.machine.Enqueue(core.Now(), w)
	if step.Action != core.Queued {
		return step
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for step.Action == core.Queued {
		step = g.await(w, step.Until, admitted, timer)
	}
	return step
}

// await waits until a queued call is woken, its time has come or its client has left.
func (g *guardedCall) await(w *bulkhead.Waiter, until time.Duration, woken <-chan struct{},
	timer *time.Timer) core.Step {
	for now := core.Now(); now < until; now = core.Now() {
		timer.Reset(min(until-now, glance))
		awake := false
		select {
		case <-woken:
			awake = true
		case <-timer.C:
		case <-g.req.client.context().Done():
		}
		switch {
		case g.req.client.gone(): // nothing is done for a client that has left meanwhile
			return g.machine.LeaveQueue(core.Now(), w, errGone)
		case awake:
			return g.machine.Admitted(core.Now())
		}
	}
	return g.machine.LeaveQueue(core.Now(), w, nil)
}

// end records how the call ended, and gives back what it holds.
func (g *guardedCall) end(now time.Duration) {
	g.answerEnded(now)
	if g.got != nil {
		g.got.release(now, false)
	}
}

// answerEnded records, for the guard and for the endpoint, how the answer ended that counted as a success with its
// head. What breaks off is a failure of the service, unless the client has left. What it does again finds nothing to
// do.
func (g *guardedCall) answerEnded(now time.Duration) {
	var broke error
	if a := g.got; a != nil {
		if a.died {
			broke, a.result = a.broke, balance.Failure
		}
		a.settle(now)
	}
	g.machine.AnswerEnded(now, broke)
	if broke != nil {
		g.release.Failed(broke)
	} else {
		g.release.Done()
	}
	g.release = core.Release{}
}

// abort gives back what a call holds that ended in a panic.
func (g *guardedCall) abort(now time.Duration) {
	g.machine.Abort(now)
	g.machine.AnswerEnded(now, nil) // which nobody reads
	g.release.Done()
	g.release = core.Release{}
	g.body.close()
	for _, a := range []*answer{&g.first, g.got} {
		if a != nil {
			a.ended, a.result = false, balance.Neutral // its connection may be in any state
			a.release(now, false)
		}
	}
}
