package core

import (
	"context"
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/bulkhead"
)

// UsedFallback tells the guard's observer that a caller got a fallback instead of err. Adapters that have fallbacks of
// their own call it.
func (g *Guard) UsedFallback(err error) {
	g.inForce().emit(Event{Kind: FallbackUsed, At: clock.Now(), Err: err})
}

// CountHiddenRetries notes that something below the guard sent an attempt n further times by itself, as http.Transport
// and database/sql do when a kept-alive connection turns out to be dead. They cannot be refused any more, so they are
// drawn from the budget as far as it goes, and leave less for the retries that can.
func (g *Guard) CountHiddenRetries(n int) {
	s, now := g.inForce(), clock.Now()
	for range n {
		s.drain(now)
		s.emit(Event{Kind: HiddenRetry, At: now})
	}
}

// Driver is a Call with what a driver that blocks keeps beside it: package abate's Do is one. The zero Driver is ready
// to Start; it is used once, by one goroutine.
type Driver struct {
	Call
	limit *attemptContext // of the attempt in the air; nil when the caller's context serves
	room  *attemptContext // memory for the first one, if somebody has some
	asked bool            // for AttemptInfo
}

// Start begins the call on the real clock.
func (d *Driver) Start(ctx context.Context, g *Guard) Step {
	d.Under(CallTreeOf(ctx))
	if v := ctx.Value(observerKey{}); v != nil {
		var o Observer
		o, d.asked = watchersIn(v)
		d.Watch(o)
	}
	deadline := NoDeadline
	if t, ok := ctx.Deadline(); ok {
		deadline = clock.At(t)
	}
	if ctx.Err() != nil {
		return g.refuse(&d.Call, clock.Now(), d.left(ctx))
	}
	return g.Begin(&d.Call, clock.Now(), deadline)
}

// AttemptContext returns the context for an attempt: the caller's own when the policy adds no limit to it, and nobody
// has asked for more. lasting tells that its value may need it longer.
func (d *Driver) AttemptContext(ctx context.Context, deadline time.Duration, lasting bool) context.Context {
	if !d.s.limited && !d.asked {
		return ctx
	}
	return d.ownContext(ctx, deadline, lasting)
}

func (d *Driver) ownContext(ctx context.Context, deadline time.Duration, lasting bool) context.Context {
	limit := d.room
	if d.room = nil; limit == nil {
		limit = new(attemptContext)
	}
	limit.parent, limit.deadline, limit.began, limit.lasting = ctx, deadline, d.main.start, lasting
	if d.asked {
		limit.info = d.infoOf(0)
	}
	d.limit = limit
	return limit
}

// Returned reports the end of Do's function. It ends the attempt's context, or leaves it to the attempt's value.
func (d *Driver) Returned(ctx context.Context, err error) Step {
	o := Outcome{}
	if err != nil {
		d.limit.end()
		o = d.s.classify(ctx, err)
	}
	now := d.start
	switch {
	case d.limit != nil:
		if now = clock.Now(); err == nil {
			d.limit.loosen(now)
		}
	case d.needsTime(&o):
		now = clock.Now()
	}
	return d.AttemptDone(now, 0, o)
}

// needsTime reports whether the time at which an attempt ended with o matters: to a part of the policy, to a delay, to
// a deadline, to the rate limit of the next attempt, or to the caller, in the Elapsed of an error. Reading the clock is
// the dearest thing a plain call does.
func (d *Driver) needsTime(o *Outcome) bool {
	switch {
	case d.s.times(d.deadline):
		return true
	case o.Class == Success:
		return false
	}
	return d.s.delays(o) || d.s.limiter != nil || d.s.pacer != nil || d.s.opener != nil || d.deadline != NoDeadline ||
		int(d.retries) >= d.s.policy.MaxRetries
}

// Wait does what a step asks for between attempts.
func (d *Driver) Wait(ctx context.Context, step Step) Step {
	if step.Action == Queue {
		return d.queue(ctx)
	}
	timer := time.NewTimer(step.Until - clock.Now())
	defer timer.Stop()
	select {
	case <-timer.C:
		if ctx.Err() != nil { // both at once: nothing is sent for a caller that has left
			return d.Cancel(clock.Now(), d.left(ctx))
		}
		return d.Resume(clock.Now())
	case <-ctx.Done():
		return d.Cancel(clock.Now(), d.left(ctx))
	}
}

func (d *Driver) queue(ctx context.Context) Step {
	admitted := make(chan struct{}, 1)
	w := &bulkhead.Waiter{Wake: func() {
		select {
		case admitted <- struct{}{}:
		default: // there is room for one, and one is all
		}
	}}
	step := d.Enqueue(clock.Now(), w)
	if step.Action != Queued {
		return step
	}
	timer := time.NewTimer(step.Until - clock.Now())
	defer timer.Stop()
	waits := true
	defer func() {
		if waits { // a context that panics
			d.LeaveQueue(clock.Now(), w, context.Canceled)
		}
	}()
	for ; step.Action == Queued; timer.Reset(step.Until - clock.Now()) {
		step = d.await(ctx, w, admitted, timer.C)
	}
	waits = false
	return step
}

// await waits until a queued call is woken, its time has come or its caller leaves.
func (d *Driver) await(ctx context.Context, w *bulkhead.Waiter, woken <-chan struct{}, timeout <-chan time.Time) Step {
	var cause error
	select {
	case <-woken:
		if ctx.Err() == nil {
			return d.Admitted(clock.Now())
		}
		cause = d.left(ctx)
	case <-timeout:
	case <-ctx.Done():
		cause = d.left(ctx)
	}
	return d.LeaveQueue(clock.Now(), w, cause)
}

// Unwind runs when the driver returns: in order, or because the guarded function panicked or ended its goroutine.
func (d *Driver) Unwind() {
	if !d.over && d.s != nil {
		d.limit.end()
		d.Abort(clock.Now())
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
