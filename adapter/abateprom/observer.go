package abateprom

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/startup"
)

// observer counts the events of one service. Every handle is resolved when it is made: an event costs a few atomic
// additions.
type observer struct {
	sent        window
	active      atomic.Int64 // calls in a retry
	calling     atomic.Int64 // calls that have not ended
	inAir       atomic.Int64 // attempts that have not ended
	calls       [callOutcomes]prometheus.Counter
	attempts    [len(classes)]prometheus.Counter
	refusals    [len(reasons)]prometheus.Counter
	retries     prometheus.Counter
	succeeded   prometheus.Counter // after a retry
	exhausted   prometheus.Counter
	delay       prometheus.Observer
	hedges      prometheus.Counter
	denied      [len(reasons)]prometheus.Counter
	hidden      prometheus.Counter
	transitions [len(states)]prometheus.Counter
	fallbacks   prometheus.Counter
	changes     prometheus.Counter
}

// classes are how an attempt can end, and a call that sent one.
var classes = [...]abate.Class{abate.Success, abate.Failure, abate.Overload, abate.Ignored}

// refused is the outcome of a call that no attempt was sent for, after the classes.
const (
	refused      = len(classes)
	callOutcomes = len(classes) + 1
)

// states are those that a breaker can change to.
var states = [...]breaker.State{breaker.Closed, breaker.HalfOpen, breaker.Open, breaker.RampUp}

// reason is why something was refused, and its label.
type reason struct {
	err  error
	name string
}

// reasons are why the policy said no. The last is for what this list does not know.
var reasons = [...]reason{
	{abate.ErrCircuitOpen, "circuit_open"},
	{abate.ErrBudgetExhausted, "budget_exhausted"},
	{abate.ErrBulkheadFull, "bulkhead_full"},
	{abate.ErrRateLimited, "rate_limited"},
	{abate.ErrThrottled, "throttled"},
	{abate.ErrDeadline, "deadline"},
	{abate.ErrOverloaded, "overloaded"},
	{abate.ErrTreeExhausted, "tree_exhausted"},
	{startup.ErrGaveUp, "gave_up"},
	{startup.ErrPermanent, "permanent"},
	{nil, other},
}

// reasonIn finds an error in a list whose last is for all that are not there.
func reasonIn(list []reason, err error) int {
	for i := range list {
		if list[i].err == err {
			return i
		}
	}
	return len(list) - 1
}

// Observe counts one event.
func (o *observer) Observe(e abate.Event) {
	switch e.Kind {
	case core.CallBegan:
		o.calling.Add(1)
	case core.AttemptBegan:
		o.inAir.Add(1)
		o.sent.add(e.At, e.Attempt == 1)
		if e.Attempt > 1 {
			o.retries.Inc()
		}
	case core.AttemptEnded:
		o.inAir.Add(-1)
		o.attempts[e.Class&3].Inc()
	case core.RetryScheduled:
		if e.Retries == 1 {
			o.active.Add(1)
		}
		o.delay.Observe(e.Delay.Seconds())
	case core.HedgeSent:
		o.inAir.Add(1)
		o.sent.add(e.At, false)
		o.hedges.Inc()
	case core.HedgeDenied:
		o.denied[reasonIn(reasons[:], e.Reason)].Inc()
	case core.HiddenRetry:
		o.sent.add(e.At, false)
		o.hidden.Inc()
	case core.CallEnded:
		o.ended(&e)
	case core.BreakerChanged:
		o.transitions[e.To&3].Inc()
	case core.FallbackUsed:
		o.fallbacks.Inc()
	case core.PolicyChanged:
		o.changes.Inc()
	}
}

func (o *observer) ended(e *abate.Event) {
	o.calling.Add(-1)
	if e.Retries > 0 {
		o.active.Add(-1)
		if e.Class == abate.Success {
			o.succeeded.Inc()
		}
	}
	outcome := int(e.Class & 3)
	switch {
	case e.Reason == nil:
	case e.Reason == abate.ErrAttemptsExhausted:
		o.exhausted.Inc()
	case !errors.Is(e.Reason, context.Canceled): // the caller's own doing is nobody's refusal
		o.refusals[reasonIn(reasons[:], e.Reason)].Inc()
		if e.Attempt == 0 {
			outcome = refused
		}
	}
	o.calls[outcome].Inc()
}
