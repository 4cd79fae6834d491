package proxy

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// feed sends the content of a request over HTTP/2 while it is still coming. It belongs to the exchange and not to an
// attempt: what the client sends is kept, up to MaxBufferedBody, until the call can no longer be repeated, so that
// another attempt gets it all and then what follows. Its goroutine reads from the client only while there is an
// attempt to read for.
type feed struct {
	body *content

	mu     sync.Mutex  // held while writing
	turn   sync.Cond   // of mu: there is an attempt, or nobody wants the rest
	to     *h2.Stream  // of the attempt; nil for none
	kept   []byte      // all that has come
	replay atomic.Bool // kept is still all of it
	done   bool        // the client has sent all
	halted bool

	target    *h2.Stream // to, as the exchange knows it
	committed atomic.Bool
	asking    atomic.Bool  // it waits for the client
	moved     atomic.Int64 // when something came from the client last; 0 before
	over      atomic.Bool  // all has been sent
	behind    atomic.Bool  // the attempt has not got what is kept
	failure   atomic.Pointer[error]
	ended     chan struct{}
	scratch   *[]byte // for a client of HTTP/1.1
}

// feedTo sends the head of an attempt with its content so far, and has the rest follow.
func (b *content) feedTo(conn *h2.Conn, head *h2.Head, until time.Duration) (*h2.Stream, error) {
	f := b.feed
	if f == nil {
		f = &feed{body: b, ended: make(chan struct{})}
		f.replay.Store(b.req.rpc) // whatever the policy says: a connection may be ending
		f.turn.L = &f.mu
	}
	f.mu.Lock()
	if b.taken && !f.replay.Load() { // more came meanwhile than is kept
		f.mu.Unlock()
		return nil, errSentOnce
	}
	whole := f.done && len(b.req.trailer()) == 0
	silent := b.req.rpc && len(f.kept) == 0 // see openWhole
	s, n, err := conn.Open(head, f.kept, whole && !silent, until)
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	if b.feed == nil {
		b.feed, b.taken = f, true
		go f.run()
	}
	f.to, f.target = s, s
	if n < len(f.kept) {
		f.behind.Store(true)
		go f.catchUp(n, whole)
		return s, nil
	}
	f.caughtUp(whole && !silent, until)
	return s, nil
}

// catchUp sends what is kept beyond the first n bytes. There may be no room for it for long, and the answer is waited
// for meanwhile: it may not depend on that. mu is held, and free afterwards.
func (f *feed) catchUp(n int, whole bool) {
	f.sent(f.to.Write(f.kept[n:], whole, core.NoDeadline))
	f.behind.Store(false)
	f.caughtUp(whole, core.NoDeadline) // leave ends it
}

// caughtUp goes on where an attempt has got what is kept; ended if its stream has ended with that. A trailer waits for
// room until the time is up. mu is held, and free afterwards.
func (f *feed) caughtUp(ended bool, until time.Duration) {
	defer f.mu.Unlock()
	if s := f.to; s != nil {
		if f.done && !ended {
			f.sent(s.WriteTrailer(f.body.req.trailer(), until))
		}
		s.Flush()
	}
	f.turn.Signal()
}

// sent notes how a write went. What became of the attempt, its answer tells.
func (f *feed) sent(err error) {
	if err != nil {
		f.to = nil
	}
}

// leave ends the part of an attempt that has failed, whose stream is of no more use.
func (f *feed) leave(s *h2.Stream) {
	s.Reset(h2.Cancel) // ends a write under way
	f.mu.Lock()
	f.to = nil
	f.mu.Unlock()
	f.target = nil
}

func (f *feed) run() {
	defer close(f.ended)
	for f.awaitAttempt() {
		f.asking.Store(true)
		data, err := f.read()
		f.moved.Store(int64(core.Now())) // its end too is something to hand over
		f.asking.Store(false)
		if !f.take(data, err) {
			break
		}
	}
	if f.scratch != nil {
		buffers.Put(f.scratch)
	}
}

// awaitAttempt waits until there is one to read for. False when there will be none.
func (f *feed) awaitAttempt() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.to == nil && !f.halted {
		f.turn.Wait()
	}
	return !f.halted
}

// read returns what comes next from the client. It is valid until the next call.
func (f *feed) read() ([]byte, error) {
	b := f.body
	if b.req.client.multiplexed() && len(b.bytes) == 0 {
		return b.req.client.next(core.NoDeadline)
	}
	if f.scratch == nil {
		f.scratch = buffers.Get().(*[]byte)
	}
	n, err := b.Read(*f.scratch)
	return (*f.scratch)[:n], err
}

// take has what was read sent. False when nothing follows.
func (f *feed) take(data []byte, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(data) > 0 {
		f.keep(data)
		if f.to != nil {
			f.sent(f.to.Write(data, false, core.NoDeadline))
		}
	}
	switch {
	case err == io.EOF:
		f.finish()
	case err != nil && !errors.Is(err, errStopped):
		f.failure.Store(&err)
		if f.to != nil { // the service must not take a part for the whole
			f.to.Reset(h2.Cancel)
		}
	}
	if err == nil && f.to != nil {
		f.to.Flush()
	}
	return err == nil
}

// keep adds to what another attempt would need. Between attempts it may be more than the limit: it is read once, and
// then not before there is an attempt.
func (f *feed) keep(data []byte) {
	if f.committed.Load() || f.to != nil && len(f.kept)+len(data) > f.body.req.plane.config.MaxBufferedBody {
		f.replay.Store(false)
	}
	if f.replay.Load() {
		f.kept = append(f.kept, data...)
	} else {
		f.kept = nil
	}
}

// finish ends the request: the client has sent all of it.
func (f *feed) finish() {
	f.done = true
	defer f.over.Store(true)
	if f.to == nil {
		return
	}
	if trailer := f.body.req.trailer(); len(trailer) > 0 {
		f.sent(f.to.WriteTrailer(trailer, core.NoDeadline))
	} else {
		f.sent(f.to.Write(nil, true, core.NoDeadline))
	}
}

// commit forgets what was kept: the call can no longer be repeated.
func (b *content) commit() {
	if b.feed != nil {
		b.feed.committed.Store(true)
	}
}

// replayable reports whether another attempt can have all of the content.
func (f *feed) replayable() bool { return f.replay.Load() && !f.committed.Load() }

var errSentOnce = errors.New("the request is too long to be sent again")

// late is upload.late. The client of a gRPC call may be slow as long as it likes: its body has not failed.
func (f *feed) late() bool {
	if !f.asking.Load() || f.behind.Load() {
		return false
	}
	if !f.body.req.rpc {
		var err error = errSlowBody
		f.failure.CompareAndSwap(nil, &err)
	}
	return true
}

func (f *feed) failed() error {
	if err := f.failure.Load(); err != nil {
		return *err
	}
	return nil
}

// stop ends the feed and waits for it.
func (f *feed) stop() {
	over := f.over.Load()
	if !over {
		f.body.req.client.stop()
	}
	if f.target != nil && (!over || f.behind.Load()) {
		f.target.Reset(h2.Cancel)
	}
	f.mu.Lock()
	f.halted = true
	f.mu.Unlock()
	f.turn.Broadcast()
	<-f.ended
}
