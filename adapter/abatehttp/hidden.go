package abatehttp

import (
	"context"
	"net/http/httptrace"
	"sync"
	"sync/atomic"

	"github.com/abate-go/abate"
)

// connCounter counts the connections that one attempt was given. More than one means that the base sent it again.
type connCounter struct {
	trace  httptrace.ClientTrace
	holder context.Context // holds the trace, and nothing else
	got    atomic.Int32
}

func newConnCounter() *connCounter {
	c := new(connCounter)
	c.trace.GotConn = func(httptrace.GotConnInfo) { c.got.Add(1) }
	return c
}

// connCounters saves making a counter per attempt. A hook that fires after its attempt has ended, which net/http does
// not do with GotConn, could count for another one; nothing else can go wrong, since a pooled trace never changes.
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

// end returns how often the base sent the attempt again. The context stays good for those who still hold it.
func (w *watchedContext) end() int {
	n := w.counter.got.Load()
	if w.counter.holder != nil {
		if n != 0 {
			w.counter.got.Store(0)
		}
		connCounters.Put(w.counter)
	}
	return int(max(n-1, 0))
}

// noteHidden counts n hidden retries, and has them paid for.
func (t *Transport) noteHidden(g *abate.Guard, n int) {
	if n > 0 {
		t.hidden.Add(uint64(n))
		g.CountHiddenRetries(n)
	}
}
