package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// attemptContext is the context of one attempt: the caller's, with the attempt's deadline. It becomes a real context,
// with its timer and its place among the parent's children, only when somebody asks for Done; a function that never
// looks pays one allocation for its time limit and no timer. That is 64 bytes: keep it so, a call in four pays for the
// next size.
type attemptContext struct {
	parent   context.Context
	deadline time.Duration // on the guards' clock; NoDeadline for none
	began    time.Duration
	info     *AttemptInfo // nil if nobody has asked for it

	real atomic.Pointer[realContext] // nil or released while there is none
	mu   sync.Mutex                  // guards the making of real, and ended
	// lasting: the context is of a function of Do's, whose value may need it when the attempt is over.
	lasting bool
	ended   ending // what Err has said once, or the end has decided: it says so for ever
}

// ending is what has ended an attempt's context.
type ending uint8

const (
	goesOn ending = iota
	endedByAttempt
	endedByLimit
	endedByCaller
	endedAsReal // the real context knows
)

type realContext struct {
	context.Context
	cancel context.CancelFunc
	root   *leash      // of a lasting context; nil for others
	free   atomic.Bool // released: the attempt's time limit is over
}

// released stands for the real context of a released attempt that has none. So a release is one atomic operation.
var released = func() *realContext {
	r := new(realContext)
	r.free.Store(true)
	return r
}()

// exists reports whether r is a real context.
func (r *realContext) exists() bool { return r != nil && r != released }

// loosen ends the time limit.
func (r *realContext) loosen() {
	r.free.Store(true)
	r.root.loosen()
}

// TimeLimit returns how long the attempt that ctx was made for may take, counted from its beginning; false if ctx is
// not an attempt's own context or the attempt has no limit. For an adapter that tells the server: it needs no clock.
func TimeLimit(ctx context.Context) (time.Duration, bool) {
	a, ok := ctx.(*attemptContext)
	if !ok || a.deadline == NoDeadline {
		return 0, false
	}
	return a.deadline - a.began, true
}

// LimitAttempt returns the context of an attempt that began at began and has to end at until, NoDeadline for never, and
// the function that ends it: for drivers of other machines, such as a Startup.
func LimitAttempt(ctx context.Context, began, until time.Duration) (limited context.Context, end func()) {
	a := &attemptContext{parent: ctx, deadline: until, began: began}
	return a, a.end
}

var _ context.Context = (*attemptContext)(nil)

func (a *attemptContext) Deadline() (time.Time, bool) {
	if r := a.real.Load(); a.deadline == NoDeadline || r != nil && r.free.Load() {
		return a.parent.Deadline()
	}
	return clock.Time(a.deadline), true
}

func (a *attemptContext) Done() <-chan struct{} {
	if r := a.real.Load(); r.exists() {
		return r.Done()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.real.Load()
	if !r.exists() {
		r = a.become(r)
	}
	return r.Done()
}

// become makes the real context at the place of was, which is none. mu is held.
func (a *attemptContext) become(was *realContext) *realContext {
	r := new(realContext)
	deadline, limited := a.Deadline()
	switch {
	case a.lasting:
		r.root = newLeash(a.parent, deadline, limited)
		r.Context, r.cancel = r.root, r.root.cancel
		if was == released {
			r.loosen()
		}
	case limited:
		r.Context, r.cancel = context.WithDeadline(a.parent, deadline)
	default:
		r.Context, r.cancel = context.WithCancel(a.parent)
	}
	if a.ended != goesOn {
		r.cancel()
	}
	if !a.real.CompareAndSwap(was, r) { // released meanwhile
		r.loosen()
		a.real.Store(r)
	}
	return r
}

func (a *attemptContext) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended == goesOn {
		a.ended = a.whatEnds()
	}
	switch a.ended {
	case endedByAttempt:
		return context.Canceled
	case endedByLimit:
		return context.DeadlineExceeded
	case endedByCaller:
		return a.parent.Err()
	case endedAsReal:
		return a.real.Load().Err()
	}
	return nil
}

// whatEnds reports what has ended the context by now. mu is held.
func (a *attemptContext) whatEnds() ending {
	r := a.real.Load()
	if r.exists() {
		switch {
		case r.Err() != nil:
			return endedAsReal
		case r.root == nil:
			return goesOn
		}
	}
	switch {
	case a.parent.Err() != nil:
		return endedByCaller
	case r != nil && r.free.Load():
	case a.deadline != NoDeadline && clock.Now() >= a.deadline:
		return endedByLimit
	}
	return goesOn
}

// Value asks the real context once there is one, so that package context finds it there and a child of this context
// costs no goroutine. A leash is not package context's own: there it finds AfterFunc.
func (a *attemptContext) Value(key any) any {
	if key == (attemptInfoKey{}) && a.info != nil {
		return a.info
	}
	if r := a.real.Load(); r.exists() {
		return r.Value(key)
	}
	return a.parent.Value(key)
}

// AfterFunc is what package context asks for in a context that is not its own.
func (a *attemptContext) AfterFunc(f func()) (stop func() bool) {
	a.Done()
	r := a.real.Load()
	if r.root != nil {
		return r.root.AfterFunc(f)
	}
	return context.AfterFunc(r.Context, f)
}

// end cancels the context and lets its timer go. It may be called more than once, and on nil.
func (a *attemptContext) end() {
	if a != nil {
		a.cancel()
	}
}

func (a *attemptContext) cancel() {
	a.mu.Lock()
	r := a.real.Load()
	if !r.exists() && a.ended == goesOn {
		a.ended = endedByAttempt
	}
	a.mu.Unlock()
	if r.exists() {
		r.cancel()  // without the lock: its children ask for Err
		_ = a.Err() // keeps it; its deadline may have come first
	}
}

// release ends the attempt's time limit, and leaves the context to what the attempt has returned at now: from then on
// it ends when the caller's does. What the time limit has ended stays so. It may be called on nil.
func (a *attemptContext) release(now time.Duration) {
	if a != nil {
		a.loosen(now)
	}
}

func (a *attemptContext) loosen(now time.Duration) {
	switch {
	case a.parent.Err() != nil:
		a.stays(endedByCaller)
	case a.deadline != NoDeadline && now >= a.deadline:
		a.stays(endedByLimit)
	case a.real.CompareAndSwap(nil, released):
	default:
		if r := a.real.Load(); r.exists() {
			r.loosen()
		}
	}
}

// stays notes what has ended the context, if nothing has before.
func (a *attemptContext) stays(as ending) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended == goesOn {
		a.ended = as
	}
}
