package abate

import (
	"context"
	"errors"
	"sync"

	"github.com/abate-go/abate/core"
)

// Do calls fn under the guard: as often as the policy allows, and not at all when it must not be called. It returns
// what the last attempt returned, or a zero T and an *Error when there was none.
//
// An error of fn is a retryable failure, unless it is marked (Permanent, Ignore, RetryAfter), the policy's Classify or
// retryOn says otherwise, or the caller's context was cancelled. fn gets a context with the attempt's deadline and must
// return when that is done; Do itself waits for it. The time limit is for fn, not for what fn returns: an attempt that
// returned no error gives its context to its value, such as a *sql.Rows, to be used until the caller's context ends.
// With an error the context ends at once. fn runs on the caller's goroutine and never beside itself: it may keep its
// results in the variables around it. To be hedged, a function has to agree to that: use DoHedged.
//
// A call that succeeds at once allocates nothing, or one context when the policy sets a timeout; it starts no goroutine
// and reads the clock at most twice.
//
// If fn panics or ends its goroutine, the permits of the call are given back, and the panic goes on to Do's caller: so
// it is with whatever else of the caller's Do calls on its way, Classify and Rand among them. It says nothing about the
// dependency. A panic of an Observer goes nowhere: see there.
func Do[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error)) (T, error) {
	var (
		v   T
		err error
		d   core.Driver
	)
	defer d.Unwind()
	step := d.Start(ctx, g)
	for step.Action != core.Finish {
		if step.Action != core.Attempt {
			step = d.Wait(ctx, step)
			continue
		}
		v, err = fn(d.AttemptContext(ctx, step.Until, true))
		step = d.Returned(ctx, err)
	}
	return v, step.Err
}

// DoErr is Do for a function that returns nothing but an error.
func DoErr(ctx context.Context, g *Guard, fn func(context.Context) error) error {
	_, err := Do(ctx, g, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return err
}

// DoHedged is Do for a function that may run more than once at the same time: under a policy with a hedge section a
// slow attempt gets a second copy, the first good answer wins, and the others are cancelled through their contexts. A
// good answer that comes too late is closed, if it has a Close or a Body that has: nobody else knows of it. fn must not
// write to variables around it. Without a hedge section it is Do.
//
// If a copy panics while nothing is decided, the call ends and DoHedged panics with the same value on its caller's
// goroutine, when the first copy has returned. A copy that panics after another one has decided has nobody to tell: its
// panic is caught, counted in State and written to slog.Default. A first copy that panics takes the call with it,
// whatever a hedge has brought meanwhile.
func DoHedged[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error)) (T, error) {
	if !g.Hedges() {
		return Do(ctx, g, fn)
	}
	return core.DoHedged(ctx, g, fn)
}

// DoWithFallback is Do, with an answer for when the call fails: fallback gets the error, and what it returns is what
// the caller gets. A caller that has left gets no fallback, and an ignored error (see Ignore) is an answer that needs
// none.
func DoWithFallback[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error),
	fallback func(context.Context, error) (T, error)) (T, error) {
	answered := false
	v, err := Do(ctx, g, func(ctx context.Context) (T, error) {
		v, err := fn(ctx)
		answered = err != nil && g.Answers(err)
		return v, err
	})
	if err == nil || answered || ctx.Err() == context.Canceled {
		return v, err
	}
	g.UsedFallback(err)
	return fallback(ctx, err)
}

// DoHedgedWithFallback is DoHedged with the fallback of DoWithFallback, which runs once, on the caller's goroutine,
// when no copy has brought a good answer.
func DoHedgedWithFallback[T any](ctx context.Context, g *Guard, fn func(context.Context) (T, error),
	fallback func(context.Context, error) (T, error)) (T, error) {
	var answers sync.Map // the errors that are answers, of all copies
	v, err := DoHedged(ctx, g, func(ctx context.Context) (T, error) {
		v, err := fn(ctx)
		if err != nil && g.Answers(err) {
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
