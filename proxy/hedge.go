package proxy

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
)

// mayHedge tells whether two copies of the request may be on their way at once. A body that has not come with the head is
// sent once at a time: two copies cannot read it.
func (x *exchange) mayHedge() bool {
	return x.again && x.req.Upgrade == nil && (x.body.kind == noContent || x.body.kind == inMemory && !x.body.once) && x.ownsRetries()
}

// hedged drives a call whose attempts may have copies: the abate.Operation. It has an exchange of its own: a copy that has
// lost may still be on its way when the client sends its next request.
type hedged struct{ x *exchange }

// runHedged makes the call with abate.Run, which sends copies on goroutines of their own.
func (x *exchange) runHedged() error {
	ctx, leave := context.WithCancel(x.client.context())
	defer leave()
	own := x.private(ctx)
	if x.rpc && x.limit != abate.NoDeadline {
		var end context.CancelFunc
		ctx, end = context.WithDeadline(ctx, x.plane.clock.time(x.limit))
		defer end()
	}
	w := watch(ctx, x.client.gone, leave)
	defer w.stop()
	if x.tree != nil {
		ctx = abate.WithCallTree(ctx, x.tree)
	}
	a, release, err := abate.Run[*answer](ctx, x.route.Guard, hedged{own})
	x.release = release // the answer has its time limit with it
	if a != nil && a.failed {
		a = nil
	}
	if a != nil { // what it lasts longer than its copies is the client's own again
		a.x = x
	}
	own.copies.Lock()
	x.got, x.sent, x.tried = a, own.sent, own.tried
	x.reached = own.sent > 0 // some copies may still be on their way
	own.copies.Unlock()
	return err
}

// watcher asks a client now and then whether it is still there.
type watcher struct {
	ctx   context.Context
	gone  func() bool
	leave func()

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	over  bool
}

// watch has ctx end by leave when the client has left: abate.Run cannot ask, and may wait for long.
func watch(ctx context.Context, gone func() bool, leave func()) *watcher {
	w := &watcher{ctx: ctx, gone: gone, leave: leave}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(glance, w.look)
	return w
}

func (w *watcher) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over || w.ctx.Err() != nil:
	case w.gone():
		w.leave()
	default:
		w.timer.Reset(glance)
	}
}

// stop ends that. Nobody asks the client from here on: it may be another's by then.
func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.timer.Stop()
}

// departed is the client as the copies of a hedged attempt know it. One that has lost may be on its way when the client has its
// answer, sends the next request, or has made room for another: it asks nothing of the client itself.
type departed struct {
	client                 // nil: there is nothing else to ask for
	left   context.Context // ends when the client leaves, and when it has its answer
	from   *origin
}

func (d departed) gone() bool               { return d.left.Err() != nil }
func (d departed) context() context.Context { return d.left }
func (d departed) origin() *origin          { return d.from }

// private is a copy of the exchange that shares no memory with the client's connection. What copies write of it, copies
// guards. ctx ends when the client has left.
func (x *exchange) private(ctx context.Context) *exchange {
	p := &exchange{plane: x.plane, client: departed{left: ctx, from: x.client.origin()}, req: x.req, route: x.route, fleet: x.fleet, again: x.again, called: x.called, tried: -1, began: x.began, rpc: x.rpc, limit: x.limit, before: x.before}
	p.body = content{x: p, kind: x.body.kind, bytes: bytes.Clone(x.body.bytes), chunked: x.body.chunked, trailer: cloneFields(x.body.trailer)}
	r := &p.req
	for _, b := range []*[]byte{&r.Method, &r.Target, &r.Scheme, &r.Host, &r.Path, &r.Upgrade} {
		*b = bytes.Clone(*b)
	}
	r.Fields = cloneFields(r.Fields)
	return p
}

func cloneFields(fields []h1.Field) []h1.Field {
	own := make([]h1.Field, len(fields))
	for i, f := range fields {
		own[i] = h1.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	return own
}

// RepeatedBefore tells abate.Run whether somebody above has made this call before.
func (h hedged) RepeatedBefore() bool { return h.x.before > 0 }

// Attempt sends one copy.
func (h hedged) Attempt(ctx context.Context, s abate.Sending) (*answer, error) {
	x, n := h.x, s.Number
	x.copies.Lock()
	x.sent++
	if n > 1 {
		x.route.stats.Retried(n)
	}
	x.copies.Unlock()
	until := abate.NoDeadline
	if t, ok := ctx.Deadline(); ok {
		until = x.plane.clock.at + t.Sub(x.plane.clock.wall)
	}
	a := &answer{told: telling{s.Allowance, s.Tell}}
	if err := x.sendUnder(ctx, a, n, until, false); err != nil {
		x.judge(a, err)
		a.release(abate.Now(), true)
		a.failed = true
		return a, err
	}
	return a, nil
}

// Classify judges a copy.
func (h hedged) Classify(a *answer, err error) abate.Outcome {
	if a == nil {
		a = new(answer)
	}
	return h.x.judge(a, err)
}

// Discard releases a copy that nobody wants.
func (h hedged) Discard(a *answer) {
	if a != nil {
		a.release(abate.Now(), true)
	}
}

// MayHedge was asked before.
func (h hedged) MayHedge() bool { return true }
