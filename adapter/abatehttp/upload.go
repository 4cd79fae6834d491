package abatehttp

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
)

// upload follows how far the server has the body of one attempt, whose reader may be slow: a pipe, a camera, the body
// of another request. While that is waited for, the time is the caller's: it is no part of the attempt's, and whoever
// learns from attempts counts it neither as latency nor as silence. While the server is waited for, because it does not
// take what was read, the time is the server's. A nil upload follows nothing.
type upload struct {
	patience time.Duration // for the server, from when it has all; 0: without limit
	ctx      context.Context
	cancel   context.CancelCauseFunc
	late     atomic.Bool  // the server's time was up
	until    atomic.Int64 // when it will be, if that can be known: the body was there before the request was sent

	mu      sync.Mutex    // guards what follows
	to      *core.Handing // nil for a hedge, and when Attempt has returned
	since   time.Duration // the server's time runs, unless the caller is waited for
	told    time.Duration // to
	asks    bool          // the caller is waited for
	cut     bool          // it was when the body was closed
	waits   bool          // to knows
	slow    bool          // it has been before: to hears of it at once
	reading *time.Timer   // of a Read that may last
	limit   *time.Timer
	body    io.Closer
	unwatch func() bool
}

// slowRead is how long a read of the body lasts before it counts as waiting for the caller. What is there is copied in
// microseconds, and to tell the guard of each piece of a file would cost more than that.
const slowRead = 10 * time.Millisecond

// follow returns the upload of an attempt that begins now, and its context.
func follow(ctx context.Context, s core.Sending) (*upload, context.Context) {
	u := &upload{patience: s.Patience, to: s.Handing, since: core.Now()}
	u.told = u.since
	if u.patience > 0 {
		ctx, u.cancel = context.WithCancelCause(ctx)
		u.ctx = ctx
		ctx = &uploadContext{ctx, u}
	}
	return u, ctx
}

// uploadContext is the context of an attempt whose time is the server's part of it.
type uploadContext struct {
	context.Context
	upload *upload
}

func (c *uploadContext) Err() error {
	err := c.Context.Err()
	if err == context.Canceled && c.upload.late.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// Deadline is when the call ends. The attempt's own is known only of a body that is there.
func (c *uploadContext) Deadline() (time.Time, bool) {
	end, ok := c.Context.Deadline()
	if until := c.upload.until.Load(); until != 0 {
		if t := time.Now().Add(time.Duration(until) - core.Now()); !ok || t.Before(end) {
			return t, true
		}
	}
	return end, ok
}

// begin has the server's time begin now, in an attempt of ctx. A body that is whole is waited for no more.
func (u *upload) begin(ctx context.Context, body io.Closer, whole bool) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arrived(core.Now())
	if !whole {
		u.body = body
		u.unwatch = context.AfterFunc(ctx, u.over)
	}
	if u.patience == 0 {
		return
	}
	if h := u.handover(); whole {
		u.until.Store(int64(h.Until(u.since, u.patience, core.NoDeadline)))
	}
	u.limit = time.AfterFunc(u.patience, u.look)
}

// look ends the attempt if the server's time is up.
func (u *upload) look() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ctx.Err() != nil { // the answer has been read
		return
	}
	now, h := core.Now(), u.handover()
	if left := h.Until(now, u.patience, core.NoDeadline) - now; left > 0 {
		u.limit.Reset(left)
		return
	}
	u.late.Store(true)
	u.cancel(context.DeadlineExceeded)
}

// handover is how far the server has the request. mu is held.
func (u *upload) handover() core.Handover {
	return core.Handover{Began: u.since, Moved: u.since, Asks: u.asks}
}

// rewound says that the base sends body from now on.
func (u *upload) rewound(body io.Closer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.body, u.asks, u.cut, u.since = body, false, false, core.Now()
}

// over is told that the attempt's context has ended. Over HTTP/1.1 net/http waits for a read under way, also then.
func (u *upload) over() {
	u.mu.Lock()
	asks, body := u.asks, u.body
	u.mu.Unlock()
	if asks {
		body.Close()
	}
}

// wait says that the caller is waited for, and that this is no short read.
func (u *upload) wait() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = true
	u.tell()
}

// read says that a read of the body begins.
func (u *upload) read() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = true
	switch {
	case u.to == nil:
	case u.slow:
		u.tell()
	case u.reading == nil:
		u.reading = time.AfterFunc(slowRead, u.lasts)
	default:
		u.reading.Reset(slowRead)
	}
}

// lasts is told that a read has not ended soon.
func (u *upload) lasts() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.asks && !u.waits {
		u.slow = true
		u.tell()
	}
}

// tell tells the guard that the caller is waited for. mu is held.
func (u *upload) tell() {
	if u.to != nil {
		u.waits = true
		u.to.Over(core.Now(), core.NoDeadline)
	}
}

// got says that the read has ended: the server can have what it brought.
func (u *upload) got() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reading != nil {
		u.reading.Stop()
	}
	u.arrived(core.Now())
}

// arrived has the server's time begin anew. mu is held.
func (u *upload) arrived(now time.Duration) {
	u.asks, u.since = false, now
	if u.to != nil && (u.waits || now-u.told >= slowRead) {
		u.waits, u.told = false, now
		u.to.Over(now, now)
	}
}

// close says that the body is being closed.
func (u *upload) close() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cut = u.cut || u.asks
}

// end ends the attempt for the guard, before Attempt returns: what follows behind the head of an answer is nothing to
// learn from. It reports whether the caller was waited for.
func (u *upload) end(err error) (waited bool) {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.to = nil
	if u.unwatch != nil {
		u.unwatch()
	}
	if u.reading != nil {
		u.reading.Stop()
	}
	if err != nil && u.limit != nil {
		u.limit.Stop()
	}
	return u.asks || u.cut
}

// comes reports whether the body of req may take its time to come.
func (b *requestBody) comes(req *http.Request) bool {
	return b.hold > 0 || b.stream != nil || req.Body != nil && req.Body != http.NoBody && !inMemory(req.Body)
}
