package metrics

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/registry"
	"github.com/abate-go/abate/internal/series"
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
	calls       [callOutcomes]*series.Counter
	attempts    [len(classes)]*series.Counter
	refusals    [len(reasons)]*series.Counter
	retries     *series.Counter
	succeeded   *series.Counter // after a retry
	exhausted   *series.Counter
	delay       *series.Histogram
	hedges      *series.Counter
	denied      [len(reasons)]*series.Counter
	hidden      *series.Counter
	transitions [len(states)]*series.Counter
	fallbacks   *series.Counter
	changes     *series.Counter
	first       *series.Counter // attempts
	extra       *series.Counter // attempts
	endedAll    *series.Counter // calls
	failed      *series.Counter // calls
	unsent      *series.Counter // calls that no attempt was sent for; the rules are shown it
	unbidden    *series.Counter // extra attempts that are no retries of ours; the same
	over        overdone
	noticed     []*watch
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

// reason is why the policy said no, with its label.
type reason struct {
	err  error
	name string
}

// reasons are those of the registry but one: attempts that are exhausted are no refusal. The last is for what this list
// does not know.
var reasons = func() (all [len(registry.Reasons) + 2]reason) {
	found := all[:0]
	for _, r := range registry.Reasons {
		if r.Err != abate.ErrAttemptsExhausted {
			found = append(found, reason{r.Err, r.Label})
		}
	}
	_ = append(found, reason{startup.ErrGaveUp, "gave_up"}, reason{startup.ErrPermanent, "permanent"}, reason{nil, other})
	return all
}()

func reasonOf(err error) int {
	for i := range reasons[:len(reasons)-1] {
		if reasons[i].err == err {
			return i
		}
	}
	return len(reasons) - 1
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
			o.extra.Inc()
		} else {
			o.first.Inc()
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
		o.extra.Inc()
		o.unbidden.Inc()
	case core.HedgeDenied:
		o.denied[reasonOf(e.Reason)].Inc()
	case core.HiddenRetry:
		o.sent.add(e.At, false)
		o.hidden.Inc()
		o.extra.Inc()
		o.unbidden.Inc()
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

// ended counts the end of a call.
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
		o.refusals[reasonOf(e.Reason)].Inc()
		if e.Attempt == 0 {
			outcome = refused
		}
	}
	o.calls[outcome].Inc()
	o.endedAll.Inc()
	if e.Attempt == 0 {
		o.unsent.Inc()
	}
	if outcome == int(abate.Failure) || outcome == int(abate.Overload) || outcome == refused {
		o.failed.Inc()
	}
}
