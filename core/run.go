package core

import (
	"context"
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// Operation is what an adapter has Run repeat: one request, with what the adapter knows about it. The methods of one
// Operation are called by several goroutines at once if MayHedge is true.
type Operation[T any] interface {
	// Attempt makes one attempt.
	Attempt(ctx context.Context, s Sending) (T, error)
	// Classify judges an attempt that the caller did not cancel and whose error carries no mark. A failure that is a
	// value, such as a 503 response, should get an Outcome.Err, so that the end of the call names it.
	Classify(v T, err error) Outcome
	// Discard releases the value of an attempt that nobody will see.
	Discard(v T)
	// MayHedge reports whether two attempts may be in the air at once.
	MayHedge() bool
}

// Sending is what an operation is told of an attempt that it makes.
type Sending struct {
	// Number counts the attempts of the call from 1, hedges included.
	Number int
	// Allowance is what the dependency is to be told, if Announce is true, by adapters that can: Abate-Retry-Allowance.
	// What it answers belongs into Outcome.Below.
	Allowance Allowance
	Announce  bool
	// Patience is how long the dependency may take, from when it has the request, and Handing what is told of that: for
	// an operation that hands over, see Handing. Zero is without a limit, and nil for others.
	Patience time.Duration
	Handing  *Handing
}

// keep prepares the value of a failed attempt for a wait, if the operation has a method Keep for that: the value may
// come to be the call's answer when the attempt's context has ended.
func keep[T any](op Operation[T], v T) {
	if o, ok := op.(interface{ Keep(v T) }); ok {
		o.Keep(v)
	}
}

// sending is copy n of the attempt that begins now.
func (c *Call) sending(n int) Sending {
	a, announce := c.Delegate(n)
	return Sending{Number: int(copyOf(c, n).number), Allowance: a, Announce: announce}
}

// Release ends the context of the attempt whose value Run returned. The zero Release is ready to use.
type Release struct {
	limit  *attemptContext
	answer answer
}

// Done ends the context. Call it when the value is used up: when an HTTP response's body is closed.
func (r Release) Done() {
	r.limit.end()
	if r.answer.s != nil {
		r.answer.end(clock.Now(), nil)
	}
}

// Failed is Done for a value whose Outcome was Unfinished and that broke off with err: the attempt is a failure now,
// for the circuit breaker. What the caller did, such as leaving, is no reason to call it. Only the first Done or Failed
// counts, so see to it that there is one.
func (r Release) Failed(err error) {
	r.limit.end()
	r.answer.end(clock.Now(), err)
}

// Needed reports whether Done and Failed do anything: whether the attempt has a context of its own, or an answer that
// goes on.
func (r Release) Needed() bool { return r.limit != nil || r.answer.s != nil }

// Workspace is memory for one call that Run makes. An Operation with a method Workspace() *Workspace, which returns a
// field of the operation, saves Run the allocation of a context under a policy that sets a time limit.
type Workspace struct{ first attemptContext }

// roomFor returns the memory that an operation offers, nil if none.
func roomFor(op any) *attemptContext {
	if o, ok := op.(interface{ Workspace() *Workspace }); ok {
		return &o.Workspace().first
	}
	return nil
}

// Run is Do for adapters: the same call, for operations whose failures may be values and whose values hold resources.
// It returns the last attempt's value also when the call failed (err is then an *Error or the attempt's own error),
// unless a later step of the call was refused; the attempt's context lives until the Release is Done. While a call
// waits in a line for another attempt it keeps the last one's value, with which it ends if it waits in vain: an
// operation whose values depend on the attempt's context has a method Keep(T), which makes them last without it. With a
// hedge policy and an operation that agrees, copies run on goroutines of their own, the first always on the caller's.
// Run returns when the first attempt has: a copy that loses is cancelled, and its value discarded.
func Run[T any](ctx context.Context, g *Guard, op Operation[T]) (T, Release, error) {
	if g.inForce().hedge != nil && op.MayHedge() {
		r := &race[T]{ctx: ctx, op: op}
		r.repeated(op)
		r.Caller = callerOf(op)
		return r.run(g)
	}
	if hands(op) {
		h := new(handingDriver)
		h.handing.call = &h.Call
		return drive(ctx, g, op, &h.Driver, &h.handing)
	}
	var d Driver
	return drive(ctx, g, op, &d, nil)
}

// drive is Run without copies. h is nil for an operation that does not hand over.
func drive[T any](ctx context.Context, g *Guard, op Operation[T], d *Driver, h *Handing) (T, Release, error) {
	var (
		v, none T
		err     error
	)
	d.room = roomFor(op)
	d.repeated(op)
	d.Caller = callerOf(op)
	held := false // v is nobody's yet, or waits to be
	defer func() {
		if held { // something of the caller's has panicked
			op.Discard(v)
		}
	}()
	defer d.Unwind()
	step := d.Start(ctx, g)
	for step.Action != Finish {
		if step.Action != Attempt {
			step = d.Wait(ctx, step)
			continue
		}
		if held { // it is not needed any more
			held = false
			op.Discard(v)
			d.limit.end()
			v, d.limit = none, nil
		}
		v, err = op.Attempt(d.AttemptContext(ctx, h.ends(step.Until), false), h.told(d.sending(0), step.Until))
		held = true
		step = d.AttemptDone(clock.Now(), 0, judge(d.s, ctx, op, v, err))
		switch held = false; step.Action {
		case Finish:
		case Queue:
			held = true
			keep(op, v)
		default:
			op.Discard(v)
			d.limit.end()
			v, d.limit = none, nil
		}
	}
	held = false
	release := Release{limit: d.limit}
	if d.main.asked&(askedAnswer|askedPermit) != 0 {
		release.answer = d.answer()
	}
	return v, release, step.Err
}

// judge classifies an attempt of an operation.
func judge[T any](s *settings, ctx context.Context, op Operation[T], v T, err error) Outcome {
	if err != nil {
		var o Outcome
		if s.settled(ctx, err, &o) {
			return o
		}
	}
	return op.Classify(v, err)
}

// DoHedged is the DoHedged of package abate under a policy that hedges.
func DoHedged[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error)) (T, error) {
	r := &race[T]{ctx: ctx}
	r.own = hedgedFunc[T]{&r.Call, fn}
	r.op = &r.own
	v, release, err := r.run(g)
	switch limit := release.limit; {
	case err != nil:
		release.Done()
	case limit == nil, limit.deadline == NoDeadline:
		limit.release(0)
	default:
		limit.release(clock.Now())
	}
	return v, err
}

// hedgedFunc makes an Operation of a function whose values need no release.
type hedgedFunc[T any] struct {
	call *Call
	fn   func(context.Context) (T, error)
}

func (f *hedgedFunc[T]) Attempt(ctx context.Context, _ Sending) (T, error) { return f.fn(ctx) }

// Discard has nothing to do: see closeLoser.
func (f *hedgedFunc[T]) Discard(T) {}

func (f *hedgedFunc[T]) MayHedge() bool { return true }

func (f *hedgedFunc[T]) Classify(_ T, err error) Outcome {
	if err == nil {
		return Outcome{}
	}
	return f.call.s.classify(context.Background(), err)
}
