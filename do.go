package abate

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/abate-go/abate/policy/bulkhead"
)

// Do calls fn under the guard: as often as the policy allows, and not at all when it must not be called. It returns
// what the last attempt returned, or a zero T and an *Error when there was none.
//
// An error of fn is a retryable failure, unless it is marked (Permanent, Ignore, RetryAfter), the policy's Classify or
// retryOn says otherwise, or the caller's context was cancelled. fn gets a context with the attempt's deadline and must
// return when that is done; Do itself waits for it. The time limit is for fn, not for what fn returns: an attempt that
// returned no error gives its context to its value, such as a *sql.Rows, to be used until the caller's context ends. With an
// error the context ends at once. fn runs on the caller's goroutine and never beside itself: it may
// keep its results in the variables around it. To be hedged, a function has to agree to that: use DoHedged.
//
// A call that succeeds at once allocates nothing, or one context when the policy sets a timeout; it starts no goroutine
// and reads the clock at most twice.
//
// If fn panics or ends its goroutine, the permits of the call are given back, and the panic goes on to Do's caller: so it is with
// whatever else of the caller's Do calls on its way, Classify and Rand among them. It says nothing about the dependency. A panic of an
// Observer goes nowhere: see there.
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
		v, err = fn(d.attemptContext(ctx, step.Until, true))
		step = d.attemptDone(ctx, err)
	}
	return v, step.Err
}

// DoErr is Do for a function that returns nothing but an error.
func DoErr(ctx context.Context, g *Guard, fn func(context.Context) error) error {
	_, err := Do(ctx, g, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return err
}

// DoWithFallback is Do, with an answer for when the call fails: fallback gets the error, and what it returns is what
// the caller gets. A caller that has left gets no fallback, and an ignored error (see Ignore) is an answer that needs none.
func DoWithFallback[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error), fallback func(context.Context, error) (T, error)) (T, error) {
	answered := false
	v, err := Do(ctx, g, func(ctx context.Context) (T, error) {
		v, err := fn(ctx)
		answered = err != nil && g.inForce().answers(err)
		return v, err
	})
	if err == nil || answered || ctx.Err() == context.Canceled {
		return v, err
	}
	g.UsedFallback(err)
	return fallback(ctx, err)
}

// DoHedgedWithFallback is DoHedged with the fallback of DoWithFallback, which runs once, on the caller's goroutine, when no copy
// has brought a good answer.
func DoHedgedWithFallback[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error), fallback func(context.Context, error) (T, error)) (T, error) {
	var answers sync.Map // the errors that are answers, of all copies
	v, err := DoHedged(ctx, g, func(ctx context.Context) (T, error) {
		v, err := fn(ctx)
		if err != nil && g.inForce().answers(err) {
			answers.Store(&err, err)
		}
		return v, err
	})
	if err == nil || ctx.Err() == context.Canceled {
		return v, err
	}
	answered := false
	if _, ended := err.(*Error); !ended {
		answers.Range(func(_, answer any) bool {
			answered = errors.Is(answer.(error), err) // which has lost its mark
			return !answered
		})
	}
	if answered {
		return v, err
	}
	g.UsedFallback(err)
	return fallback(ctx, err)
}

// UsedFallback tells the guard's observer that a caller got a fallback instead of err. Adapters that have fallbacks of
// their own call it.
func (g *Guard) UsedFallback(err error) {
	g.inForce().emit(Event{Kind: FallbackUsed, At: clock(), Err: err})
}

// CountHiddenRetries notes that something below the guard sent an attempt n further times by itself, as http.Transport
// and database/sql do when a kept-alive connection turns out to be dead. They cannot be refused any more, so they are
// drawn from the budget as far as it goes, and leave less for the retries that can.
func (g *Guard) CountHiddenRetries(n int) {
	s, now := g.inForce(), clock()
	for range n {
		s.drain(now)
		s.emit(Event{Kind: HiddenRetry, At: now})
	}
}

// driven is a Call with what the blocking drivers keep beside it.
type driven struct {
	Call
	limit *attemptContext // of the attempt in the air; nil when the caller's context serves
	room  *attemptContext // memory for the first one, if somebody has some
	asked bool            // for AttemptInfo
}

// begin starts the call on the real clock.
func (d *driven) begin(ctx context.Context, g *Guard) Step {
	d.Under(CallTreeOf(ctx))
	if v := ctx.Value(observerKey{}); v != nil {
		var o Observer
		o, d.asked = watchersIn(v)
		d.Watch(o)
	}
	deadline := NoDeadline
	if t, ok := ctx.Deadline(); ok {
		deadline = onClock(t)
	}
	if ctx.Err() != nil {
		return g.refuse(&d.Call, clock(), d.left(ctx))
	}
	return g.Begin(&d.Call, clock(), deadline)
}

// attemptContext returns the context for an attempt: the caller's own when the policy adds no limit to it, and nobody has asked
// for more. lasting tells that its value may need it longer.
func (d *driven) attemptContext(ctx context.Context, deadline time.Duration, lasting bool) context.Context {
	if !d.s.limited && !d.asked {
		return ctx
	}
	return d.ownContext(ctx, deadline, lasting)
}

// ownContext makes the context of an attempt.
func (d *driven) ownContext(ctx context.Context, deadline time.Duration, lasting bool) context.Context {
	limit := d.room
	if d.room = nil; limit == nil {
		limit = new(attemptContext)
	}
	limit.parent, limit.deadline, limit.began, limit.lasting = ctx, deadline, d.copies[0].start, lasting
	if d.asked {
		limit.info = d.infoOf(0)
	}
	d.limit = limit
	return limit
}

// attemptDone reports the end of Do's function. It ends the attempt's context, or leaves it to the attempt's value.
func (d *driven) attemptDone(ctx context.Context, err error) Step {
	o := Outcome{}
	if err != nil {
		d.limit.end()
		o = d.s.classify(ctx, err)
	}
	now := d.start
	switch {
	case d.limit != nil:
		if now = clock(); err == nil {
			d.limit.loosen(now)
		}
	case d.needsTime(&o):
		now = clock()
	}
	return d.AttemptDone(now, 0, o)
}

// needsTime tells whether the time at which an attempt ended with o matters: to a part of the policy, to a delay, to a
// deadline, to the rate limit of the next attempt, or to the caller, in the Elapsed of an error. Reading the clock is the dearest thing a plain call does.
func (d *driven) needsTime(o *Outcome) bool {
	switch {
	case d.s.times(d.deadline):
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
	w := &bulkhead.Waiter{Wake: func() {
		select {
		case admitted <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}}
	step := d.Enqueue(clock(), w)
	if step.Action != Queued {
		return step
	}
	timer := time.NewTimer(step.Until - clock())
	defer timer.Stop()
	waits := true
	defer func() {
		if waits { // a context that panics
			d.LeaveQueue(clock(), w, context.Canceled)
		}
	}()
	var cause error
	select {
	case <-admitted:
		if ctx.Err() == nil {
			waits = false
			return d.Admitted(clock())
		}
		cause = d.left(ctx)
	case <-timer.C:
	case <-ctx.Done():
		cause = d.left(ctx)
	}
	waits = false
	return d.LeaveQueue(clock(), w, cause)
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
