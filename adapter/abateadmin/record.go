package abateadmin

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/registry"
)

// refusals is how many causes of a guard say how attempts ended. Those after them say why the policy said no.
const refusals = 4

// guardCauses are the causes of a guard. The last is for what this list does not know.
var guardCauses = func() (all [refusals + len(registry.Reasons) + 1]string) {
	for i := range refusals {
		all[i] = abate.Class(i).String()
	}
	for i, r := range registry.Reasons {
		all[refusals+i] = r.Words
	}
	all[len(all)-1] = "other"
	return all
}()

func causeOf(reason error) int {
	for i := range registry.Reasons {
		if registry.Reasons[i].Err == reason {
			return refusals + i
		}
	}
	return len(guardCauses) - 1
}

// record counts the events of the guards with one name. An event costs a few atomic additions.
type record struct {
	history
	calls   atomic.Int64 // begun and not ended
	waiting atomic.Int64 // of them, those in or after a retry
	delay   atomic.Int64 // the last back-off

	mu     sync.Mutex
	byHand hand
}

// hand is who has put something above the policy, and when, if that is Known. Who is empty if the program itself did
// it.
type hand struct {
	At    time.Duration
	Who   string
	Known bool
}

// Observe counts one event.
func (r *record) Observe(e abate.Event) {
	switch e.Kind {
	case core.CallBegan:
		r.calls.Add(1)
	case core.AttemptBegan:
		lap, s := r.at(e.At)
		if e.Attempt == 1 {
			s.sent.add(lap, first)
		} else {
			s.sent.add(lap, second)
		}
	case core.HedgeSent, core.HiddenRetry:
		lap, s := r.at(e.At)
		s.sent.add(lap, second)
	case core.AttemptEnded:
		r.attemptEnded(&e)
	case core.RetryScheduled:
		if e.Retries == 1 {
			r.waiting.Add(1)
		}
		r.delay.Store(int64(e.Delay))
	case core.CallEnded:
		r.callEnded(&e)
	case core.BreakerChanged:
		r.notes.change(e.At, e.From, e.To, e.Detail)
	case core.PolicyChanged:
		r.policyChanged(&e)
	}
}

func (r *record) attemptEnded(e *abate.Event) {
	lap, s := r.at(e.At)
	if e.Class != abate.Success { // those are found by what is left: this is on the way of every call
		r.cause(e.At, int(e.Class&3))
	}
	switch e.Class {
	case abate.Success:
		s.answered.add(lap, first)
	case abate.Failure, abate.Overload:
		s.answered.add(lap, first+second)
		if e.Err != nil {
			r.faults.add(e.At, e.Class.String(), e.Err)
		}
	default: // it says nothing about the dependency
		return
	}
	s.spent.sum(lap, uint64(max(e.Latency, 0)/time.Microsecond))
}

func (r *record) callEnded(e *abate.Event) {
	r.calls.Add(-1)
	if e.Retries > 0 {
		r.waiting.Add(-1)
	}
	lap, s := r.at(e.At)
	switch {
	case e.Reason != nil && errors.Is(e.Reason, context.Canceled): // the caller's own doing
		return
	case e.Reason == nil:
	case e.Attempt == 0:
		s.refused.add(lap, first)
		r.refusedFor(e)
		return
	default:
		if e.Reason != abate.ErrAttemptsExhausted {
			s.refused.add(lap, second)
		}
		r.refusedFor(e)
	}
	if e.Class == abate.Failure || e.Class == abate.Overload {
		s.ended.add(lap, second)
	} else {
		s.ended.add(lap, first)
	}
}

// refusedFor counts why the policy said no. The first of many is worth a note.
func (r *record) refusedFor(e *abate.Event) {
	which := causeOf(e.Reason)
	r.cause(e.At, which)
	if e.Reason == abate.ErrAttemptsExhausted { // all attempts were made: that is no refusal
		return
	}
	if r.heard(e.At, which) {
		return
	}
	what := "first call refused: "
	if e.Attempt > 0 {
		what = "first retry refused: "
	}
	r.notes.add(e.At, what+guardCauses[which])
}

func (r *record) policyChanged(e *abate.Event) {
	text := "policy changed"
	if e.Detail != "" {
		text = e.Detail
	}
	r.notes.add(e.At, text)
	if strings.HasSuffix(e.Detail, "by hand") {
		r.mu.Lock()
		r.byHand = hand{At: e.At, Known: true}
		r.mu.Unlock()
	}
}

// doneBy notes who it was that has just put something above the policy. A guard that was not adjusted has not reported
// it.
func (r *record) doneBy(at time.Duration, who string) {
	r.mu.Lock()
	r.byHand = hand{At: at, Who: who, Known: true}
	r.mu.Unlock()
}

func (r *record) hand() hand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byHand
}
