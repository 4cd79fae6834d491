package proxy

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
)

// mayHedge reports whether two copies of the request may be on their way at once. A body that has not come with the
// head is sent once at a time: two copies cannot read it.
func (g *guardedCall) mayHedge() bool {
	return g.req.again && g.req.Upgrade == nil && (g.body.kind == noContent || g.body.kind == inMemory &&
		!g.body.once) && g.req.ownsRetries()
}

// hedged drives a call whose attempts may have copies: the core.Operation. It has a call of its own: a copy that has
// lost may still be on its way when the client sends its next request.
type hedged struct{ g *guardedCall }

// runHedged makes the call with core.Run, which sends copies on goroutines of their own.
func (g *guardedCall) runHedged() error {
	ctx, leave := context.WithCancel(g.req.client.context())
	defer leave()
	own := g.private(ctx)
	if g.req.rpc && g.req.limit != core.NoDeadline {
		var end context.CancelFunc
		ctx, end = context.WithDeadline(ctx, g.req.plane.clock.time(g.req.limit))
		defer end()
	}
	w := watch(ctx, g.req.client.gone, leave)
	defer w.stop()
	if g.req.tree != nil {
		ctx = core.WithCallTree(ctx, g.req.tree)
	}
	a, release, err := core.Run[*answer](ctx, g.req.route.Guard, hedged{own})
	g.release = release // the answer has its time limit with it
	if a != nil && a.failed {
		a = nil
	}
	if a != nil { // what it lasts longer than its copies is the client's own again
		wake(a, core.Now())
		a.req, a.body, a.tries = g.req, g.body, &g.tries
		a.head.req, a.head.body = g.req, g.body // the copy of the request is let go
	}
	own.tries.mu.Lock()
	g.got, g.tries.sent, g.tries.last = a, own.tries.sent, own.tries.last
	g.reached = own.tries.sent > 0 // some copies may still be on their way
	own.tries.mu.Unlock()
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

// watch has ctx end by leave when the client has left: core.Run cannot ask, and may wait for long.
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

// departed is the client as the copies of a hedged attempt know it. One that has lost may be on its way when the
// client has its answer, sends the next request, or has made room for another: it asks nothing of the client itself.
type departed struct {
	client                 // nil: there is nothing else to ask for
	left   context.Context // ends when the client leaves, and when it has its answer
	from   *origin
}

func (d departed) gone() bool { return d.left.Err() != nil }

func (d departed) context() context.Context { return d.left }

func (d departed) origin() *origin { return d.from }

func cloneFields(fields []h1.Field) []h1.Field {
	own := make([]h1.Field, len(fields))
	for i, f := range fields {
		own[i] = h1.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)}
	}
	return own
}

// RepeatedBefore tells core.Run whether somebody above has made this call before.
func (h hedged) RepeatedBefore() bool { return h.g.req.before > 0 }

// Attempt sends one copy.
func (h hedged) Attempt(ctx context.Context, s core.Sending) (*answer, error) {
	g, n := h.g, s.Number
	g.tries.mu.Lock()
	g.tries.sent++
	if n > 1 {
		g.req.route.stats.Retried(n)
	}
	g.tries.mu.Unlock()
	until := core.NoDeadline
	if t, ok := ctx.Deadline(); ok {
		until = g.req.plane.clock.at + t.Sub(g.req.plane.clock.wall)
	}
	a := new(answer)
	a.renew(g.req, g.body, &g.tries, until, false, telling{s.Allowance, s.Announce})
	if err := a.send(ctx, n, core.Now()); err != nil {
		a.span.err = err
		g.judge(a, err)
		a.release(core.Now(), true)
		a.failed = true
		return a, err
	}
	return a, nil
}

// Classify judges a copy.
func (h hedged) Classify(a *answer, err error) abate.Outcome {
	if a == nil {
		a = &answer{req: h.g.req, body: h.g.body}
	}
	return h.g.judge(a, err)
}

// Discard releases a copy that nobody wants.
func (h hedged) Discard(a *answer) {
	if a != nil {
		wake(a, core.Now())
		a.release(core.Now(), true)
	}
}

// Keep has the time of an answer stand still while the call waits for another attempt.
func (h hedged) Keep(a *answer) {
	if a != nil {
		rest(a, core.Now())
	}
}

// MayHedge was asked before.
func (h hedged) MayHedge() bool { return true }

// private is a copy of the call that shares no memory with the client's connection. What copies write of it, tries
// guards. ctx ends when the client has left.
func (g *guardedCall) private(ctx context.Context) *guardedCall {
	x, b := g.req, g.body
	r := &request{
		Request: x.Request, plane: x.plane, client: departed{left: ctx, from: x.client.origin()}, route: x.route,
		fleet: x.fleet,
		began: x.began, again: x.again, rpc: x.rpc, limit: x.limit, before: x.before, called: x.called,
		traced: x.traced, lacks: x.lacks,
	}
	for _, b := range []*[]byte{&r.Method, &r.Target, &r.Scheme, &r.Host, &r.Path, &r.Upgrade} {
		*b = bytes.Clone(*b)
	}
	r.Fields = cloneFields(r.Fields)
	body := &content{req: r, kind: b.kind, bytes: bytes.Clone(b.bytes), chunked: b.chunked,
		trailer: cloneFields(b.trailer)}
	return &guardedCall{req: r, body: body}
}
