package abate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// attemptContext is the context of one attempt: the caller's, with the attempt's deadline. It becomes a real context,
// with its timer and its place among the parent's children, only when somebody asks for Done; a function that never
// looks pays one allocation for its time limit and no timer.
type attemptContext struct {
	parent   context.Context
	deadline time.Duration // on the guards' clock; NoDeadline for none
	began    time.Duration

	real atomic.Pointer[realContext]
	mu   sync.Mutex // guards the making of real, and err
	err  error      // what Err has said once, or the end has decided: it says so for ever
}

type realContext struct {
	context.Context
	cancel context.CancelFunc
}

// TimeLimit returns how long the attempt that ctx was made for may take, counted from its beginning; false if ctx is not
// an attempt's own context or the attempt has no limit. For an adapter that tells the server: it needs no clock.
func TimeLimit(ctx context.Context) (time.Duration, bool) {
	a, ok := ctx.(*attemptContext)
	if !ok || a.deadline == NoDeadline {
		return 0, false
	}
	return a.deadline - a.began, true
}

var _ context.Context = (*attemptContext)(nil)

func (a *attemptContext) Deadline() (time.Time, bool) {
	if a.deadline == NoDeadline {
		return a.parent.Deadline()
	}
	return origin.Add(a.deadline), true
}

func (a *attemptContext) Done() <-chan struct{} {
	if r := a.real.Load(); r != nil {
		return r.Done()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.real.Load()
	if r == nil {
		r = new(realContext)
		if deadline, ok := a.Deadline(); ok {
			r.Context, r.cancel = context.WithDeadline(a.parent, deadline)
		} else {
			r.Context, r.cancel = context.WithCancel(a.parent)
		}
		if a.err != nil {
			r.cancel()
		}
		a.real.Store(r)
	}
	return r.Done()
}

func (a *attemptContext) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.err = a.currentErr()
	}
	return a.err
}

func (a *attemptContext) currentErr() error {
	if r := a.real.Load(); r != nil {
		return r.Err()
	}
	if err := a.parent.Err(); err != nil {
		return err
	}
	if a.deadline != NoDeadline && clock() >= a.deadline {
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the real context once there is one, so that package context finds it there and a child of this context
// costs no goroutine.
func (a *attemptContext) Value(key any) any {
	if r := a.real.Load(); r != nil {
		return r.Value(key)
	}
	return a.parent.Value(key)
}

// end cancels the context and lets its timer go. It may be called more than once, and on nil.
func (a *attemptContext) end() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.real.Load(); r != nil {
		r.cancel()
		if a.err == nil {
			a.err = r.Err() // its deadline may have come first
		}
	} else if a.err == nil {
		a.err = context.Canceled
	}
}
