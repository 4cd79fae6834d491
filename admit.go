package abate

import "context"

// Admission is one attempt that a guard has let through, for code that has a hook before and a hook after instead of one
// function: the connection hooks of a pool, a request and its callback. It is Do in two steps, without the retries.
type Admission struct {
	d   driven
	ctx context.Context
}

// AdmitOne asks the guard for one attempt, and waits as long as its policy says: for a permit of the bulkhead, for its turn. It
// returns the attempt, to be ended with Done whatever becomes of it, or the *Error with which the guard refuses. No retry follows:
// whoever calls AdmitOne again makes another call. The attempt timeout of the policy is the caller's to keep, see Context.
// One allocation, and one more for a context that a time limit needs.
func AdmitOne(ctx context.Context, g *Guard) (*Admission, error) {
	a := &Admission{ctx: ctx}
	step := a.d.begin(ctx, g)
	for step.Action != Finish && step.Action != Attempt {
		step = a.d.wait(ctx, step)
	}
	if step.Action == Finish {
		return nil, step.Err
	}
	a.ctx = a.d.attemptContext(ctx, step.Until)
	return a, nil
}

// Context is the context for the attempt: the caller's, with the attempt's deadline where the policy sets one. It ends with Done.
func (a *Admission) Context() context.Context { return a.ctx }

// Done reports how the attempt ended, judged as Do judges the error of its function. Only the first Done counts. It returns what
// the caller should see: err without its mark.
func (a *Admission) Done(err error) error {
	if a.d.over {
		return err
	}
	caller := a.ctx
	if a.d.limit != nil {
		caller = a.d.limit.parent
	}
	o := Outcome{}
	if err != nil {
		o = a.d.s.classify(caller, err)
		o.NoRetry, err = true, o.Err
	}
	a.d.limit.end()
	a.d.AttemptDone(clock(), 0, o)
	return err
}
