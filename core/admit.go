package core

import (
	"context"
	"sync/atomic"

	"github.com/abate-go/abate/internal/clock"
)

// Admission is one attempt that a guard has let through, for code that has a hook before and a hook after instead of
// one function: the connection hooks of a pool, a request and its callback. It is Do in two steps, without the retries.
type Admission struct {
	d      Driver
	caller context.Context
	ctx    context.Context
	room   attemptContext
	done   atomic.Bool
}

// AdmitOne asks the guard for one attempt, and waits as long as its policy says: for a permit of the bulkhead, for its
// turn. It returns the attempt, to be ended with Done whatever becomes of it, or the *Error with which the guard
// refuses, also because ctx ended first. No retry follows: whoever calls AdmitOne again makes another call. An
// Admission without Done keeps its permit of the bulkhead for ever, and one of a half-open circuit for its lease. It
// allocates once.
func AdmitOne(ctx context.Context, g *Guard) (*Admission, error) {
	a := &Admission{caller: ctx}
	a.d.room = &a.room
	given := false
	defer func() {
		if !given { // something of the caller's has panicked on the way
			a.d.Unwind()
		}
	}()
	step := a.d.Start(ctx, g)
	for step.Action != Finish && step.Action != Attempt {
		step = a.d.Wait(ctx, step)
	}
	given = true
	if step.Action == Finish {
		return nil, step.Err
	}
	a.ctx = a.d.AttemptContext(ctx, step.Until, false)
	return a, nil
}

// Context is the context for the attempt: the caller's, with the attempt's deadline where the policy sets one. It ends
// with Done. The deadline is only there: code that does not look at its context has to keep it itself.
func (a *Admission) Context() context.Context { return a.ctx }

// Done reports how the attempt ended, judged as Do judges the error of its function: by its mark, by the policy's
// Classify, and as nobody's failure if the caller's context was cancelled. Only the first Done counts, also of several
// at once. It returns what the caller should see: err without its mark. If Classify panics, the permits are given back
// and the panic goes on.
func (a *Admission) Done(err error) error {
	first := a.done.CompareAndSwap(false, true)
	if first {
		defer a.d.Unwind()
	}
	var o Outcome
	if err != nil {
		o = a.d.s.classify(a.caller, err)
		o.NoRetry, err = true, o.Err
	}
	if first {
		a.d.limit.end()
		a.d.AttemptDone(clock.Now(), 0, o)
	}
	return err
}
