package abate

import (
	"context"
	"time"

	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
)

// Do calls fn under the guard: as often as the policy allows, and not at all when it must not be called. It returns
// what the last attempt returned, or a zero T and an *Error when there was none.
//
// An error of fn is a retryable failure, unless it is marked (Permanent, Ignore, RetryAfter), the policy's Classify or
// retryOn says otherwise, or the caller's context was cancelled. fn gets a context with the attempt's deadline and must
// return when that is done; Do itself waits for it. fn runs on the caller's goroutine and never beside itself: it may
// keep its results in the variables around it. To be hedged, a function has to agree to that: use DoHedged.
//
// A call that succeeds at once allocates nothing, or one context when the policy sets a timeout; it starts no goroutine
// and reads the clock at most twice. If fn panics, the permits of the call are given back and the panic goes on.
func Do[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error)) (T, error) {
	var (
		v   T
		err error
		d   driven
	)
	defer d.unwind()
	step := d.begin(ctx, g)
	for step.Action != Finish {
		if step.Action != Attempt {
			step = d.wait(ctx, step)
			continue
		}
		v, err = fn(d.attemptContext(ctx, step.Until))
		d.limit.end()
		step = d.attemptDone(ctx, err)
	}
	return v, step.Err
}

// DoWithFallback is Do, with an answer for when the call fails: fallback gets the error, and what it returns is what
// the caller gets. A caller that has left gets no fallback, and an ignored error (see Ignore) is an answer that needs none.
func DoWithFallback[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error), fallback func(context.Context, error) (T, error)) (T, error) {
	answered := false
	v, err := Do(ctx, g, func(ctx context.Context) (T, error) {
		v, err := fn(ctx)
		answered = err != nil && g.current.Load().answers(err)
		return v, err
	})
	if err == nil || answered || ctx.Err() == context.Canceled {
		return v, err
	}
	g.UsedFallback(err)
	return fallback(ctx, err)
}

// UsedFallback tells the guard's observer that a caller got a fallback instead of err. Adapters that have fallbacks of
// their own call it.
func (g *Guard) UsedFallback(err error) {
	g.current.Load().emit(Event{Kind: FallbackUsed, At: clock(), Err: err})
}

// CountHiddenRetries notes that something below the guard sent an attempt n further times by itself, as http.Transport
// and database/sql do when a kept-alive connection turns out to be dead. They cannot be refused any more, so they are
// drawn from the budget as far as it goes, and leave less for the retries that can.
func (g *Guard) CountHiddenRetries(n int) {
	s, now := g.current.Load(), clock()
	for range n {
		if s.budget != nil {
			s.budget.Withdraw(now, budget.Transient)
		}
		s.emit(Event{Kind: HiddenRetry, At: now})
	}
}

// driven is a Call with what the blocking drivers keep beside it.
type driven struct {
	Call
	limit *attemptContext // of the attempt in the air; nil when the caller's context serves
	room  *attemptContext // memory for the first one, if somebody has some
}

// begin starts the call on the real clock.
func (d *driven) begin(ctx context.Context, g *Guard) Step {
	d.Under(CallTreeOf(ctx))
	d.Watch(ObserverOf(ctx))
	deadline := NoDeadline
	if t, ok := ctx.Deadline(); ok {
		deadline = onClock(t)
	}
	if ctx.Err() != nil {
		return g.refuse(&d.Call, clock(), d.left(ctx))
	}
	return g.Begin(&d.Call, clock(), deadline)
}

// attemptContext returns the context for an attempt: the caller's own when the policy adds no limit to it.
func (d *driven) attemptContext(ctx context.Context, deadline time.Duration) context.Context {
	if p := &d.s.policy; p.Timeout == 0 && p.AttemptTimeout == 0 {
		return ctx
	}
	if d.limit, d.room = d.room, nil; d.limit == nil {
		d.limit = new(attemptContext)
	}
	d.limit.parent, d.limit.deadline, d.limit.began = ctx, deadline, d.copies[0].start
	return d.limit
}

// attemptDone reports the end of Do's function.
func (d *driven) attemptDone(ctx context.Context, err error) Step {
	o := Outcome{}
	if err != nil {
		o = d.s.classify(ctx, err)
	}
	now := d.start
	if d.needsTime(&o) {
		now = clock()
	}
	return d.AttemptDone(now, 0, o)
}

// needsTime tells whether the time at which an attempt ended with o matters: to a part of the policy, to a delay, to a
// deadline, to the rate limit of the next attempt, or to the caller, in the Elapsed of an error. Reading the clock is the dearest thing a plain call does.
func (d *driven) needsTime(o *Outcome) bool {
	switch {
	case d.timed():
		return true
	case o.Class == Success:
		return false
	}
	return d.s.delays(o) || d.s.limiter != nil || d.s.pacer != nil || d.deadline != NoDeadline || int(d.retries) >= d.s.policy.MaxRetries
}

// wait does what a step asks for between attempts.
func (d *driven) wait(ctx context.Context, step Step) Step {
	if step.Action == Queue {
		return d.queue(ctx)
	}
	timer := time.NewTimer(step.Until - clock())
	defer timer.Stop()
	select {
	case <-timer.C:
		if ctx.Err() != nil { // both at once: nothing is sent for a caller that has left
			return d.Cancel(clock(), d.left(ctx))
		}
		return d.Resume(clock())
	case <-ctx.Done():
		return d.Cancel(clock(), d.left(ctx))
	}
}

// queue waits for the bulkhead.
func (d *driven) queue(ctx context.Context) Step {
	admitted := make(chan struct{}, 1)
	w := &bulkhead.Waiter{Wake: func() { admitted <- struct{}{} }}
	step := d.Enqueue(clock(), w)
	if step.Action != Queued {
		return step
	}
	timer := time.NewTimer(step.Until - clock())
	defer timer.Stop()
	select {
	case <-admitted:
		if ctx.Err() != nil {
			return d.LeaveQueue(clock(), w, d.left(ctx))
		}
		return d.Admitted(clock())
	case <-timer.C:
		return d.LeaveQueue(clock(), w, nil)
	case <-ctx.Done():
		return d.LeaveQueue(clock(), w, d.left(ctx))
	}
}

// unwind runs when the driver returns: in order, or because the guarded function panicked or ended its goroutine.
func (d *driven) unwind() {
	if !d.over && d.s != nil {
		d.limit.end()
		d.Abort(clock())
	}
}

// left names the end of the caller's context as the reason for the end of the call. If there was no attempt whose error
// would say more, the context's cause is the error.
func (c *Call) left(ctx context.Context) error {
	reason := ctx.Err()
	if cause := context.Cause(ctx); c.last == nil && cause != reason {
		c.last = cause
	}
	if reason == context.DeadlineExceeded {
		return ErrDeadline
	}
	return reason
}
