package core

import (
	"context"
	"time"
)

// AttemptInfo is what a guarded function may want to know of the attempt that it makes.
type AttemptInfo struct {
	Guard   string        // the guard's name
	Number  int           // of the attempt, from 1; hedges count
	Hedge   bool          // it runs beside another attempt of the call
	Elapsed time.Duration // from the call's begin to the attempt's
	Err     error         // the error of the call's last failed attempt, nil if there was none
}

type attemptInfoKey struct{}

// attemptAsked stands at the place of an observer in a context: so a call that nobody asks anything of looks once.
type attemptAsked struct{ Observer }

// WithAttemptInfo returns a context under which guarded functions can ask AttemptOf about their attempts. A call under
// it allocates two contexts' worth of memory per attempt; a call that nobody has asked for it pays nothing.
func WithAttemptInfo(ctx context.Context) context.Context {
	o, asked := watchersOf(ctx)
	if asked {
		return ctx
	}
	return context.WithValue(ctx, observerKey{}, attemptAsked{o})
}

// AttemptOf returns what is known of the attempt that ctx was made for, of the innermost guard if they are nested;
// false outside of a guarded call, and if nobody has asked for it with WithAttemptInfo.
func AttemptOf(ctx context.Context) (AttemptInfo, bool) {
	if info, ok := ctx.Value(attemptInfoKey{}).(*AttemptInfo); ok {
		return *info, true
	}
	return AttemptInfo{}, false
}

// infoOf is what AttemptOf tells of copy n, which is sent now.
func (c *Call) infoOf(n int) *AttemptInfo {
	a := copyOf(c, n)
	return &AttemptInfo{Guard: c.s.name, Number: int(a.number), Hedge: n > 0, Elapsed: a.start - c.start, Err: c.last}
}
