package abatehttp

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate"
)

// connCounter counts the connections that one attempt was given. One behind another that brought no answer means that
// the base sent it again, and none that it was never sent, if it has looked for one. One behind an answer is another
// request: the base follows a redirect, or answers a challenge.
type connCounter struct {
	trace  httptrace.ClientTrace
	holder context.Context // holds the trace, and nothing else
	seen   atomic.Int32    // connections that were looked for, in lookedFor, and that were got
	again  atomic.Int32    // of those, behind one without an answer
	silent atomic.Bool     // the last one has brought no answer yet
}

const lookedFor = 1 << 16

func newConnCounter() *connCounter {
	c := new(connCounter)
	c.trace.GetConn = func(string) { c.seen.Add(lookedFor) }
	c.trace.GotConn = func(httptrace.GotConnInfo) {
		c.seen.Add(1)
		if c.silent.Swap(true) {
			c.again.Add(1)
		}
	}
	c.trace.GotFirstResponseByte = func() { c.silent.Store(false) }
	return c
}

// connCounters saves making a counter per attempt. A hook that fires after its attempt has ended, which net/http does
// not do with these, could count for another one; nothing else can go wrong, since a pooled trace never changes.
var connCounters = sync.Pool{New: func() any {
	c := newConnCounter()
	c.holder = httptrace.WithClientTrace(context.Background(), &c.trace)
	return c
}}

// watchedContext is an attempt's context with a connCounter in it. It finds the trace in a holder that was made before,
// which saves making one per attempt.
type watchedContext struct {
	context.Context
	counter *connCounter
}

func (w *watchedContext) Value(key any) any {
	if v := w.counter.holder.Value(key); v != nil {
		return v
	}
	return w.Context.Value(key)
}

// begin returns ctx with a counter. Hooks that the caller has set in it stay in force.
func (w *watchedContext) begin(ctx context.Context) context.Context {
	if httptrace.ContextClientTrace(ctx) != nil {
		w.counter = newConnCounter() // not of the pool: the caller's hooks are written into its trace
		return httptrace.WithClientTrace(ctx, &w.counter.trace)
	}
	w.Context, w.counter = ctx, connCounters.Get().(*connCounter)
	return w
}

// end returns how often the base sent the attempt again, and whether an attempt that ended with err was certainly never
// sent. The context stays good for those who still hold it.
func (w *watchedContext) end(err error) (again int, unsent bool) {
	c := w.counter
	seen, n := c.seen.Load(), c.again.Load()
	if c.holder != nil {
		if seen != 0 {
			c.seen.Store(0)
			c.again.Store(0)
			c.silent.Store(false)
		}
		connCounters.Put(c)
	}
	got := int(seen % lookedFor)
	return int(n), err != nil && got == 0 && (seen != 0 || dialFailed(err))
}

// dialFailed reports whether an error says that no connection was made.
func dialFailed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// noteHidden counts n hidden retries, and has them paid for.
func (t *Transport) noteHidden(g *abate.Guard, n int) {
	if n > 0 {
		t.hidden.Add(uint64(n))
		g.CountHiddenRetries(n)
	}
}
