package proxy

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
)

// content is the body of a request as attempts send it: none, in memory, or a stream that can be sent once.
type content struct {
	x       *exchange
	kind    contentKind
	limit   int  // of what is held, in bytes
	brief   bool // what does not follow at once is not waited for: it is a stream then
	bytes   []byte
	chunked bool
	held    []byte // memory of bytes, if it is ours
	trailer []h1.Field
	err     error // the client did not send it
	taken   bool  // a stream has been begun
	once    bool  // it is in memory, but longer than what is held to be sent again
	upload  *upload
	feed    *feed // the same over HTTP/2
}

type contentKind uint8

const (
	noContent contentKind = iota
	inMemory
	toHold // to be read into memory by the first attempt
	streamed
)

// open decides how the body is sent. Nothing is waited for yet: a call that is refused should not have waited for its body.
// A short one of known length is held whatever the method: that saves a goroutine.
func (b *content) open(x *exchange) {
	req := &x.req
	*b = content{x: x, chunked: req.Chunked, held: b.held}
	if req.Length == 0 && !req.Chunked {
		return
	}
	req.Upgrade = nil // nobody may switch before all content has been read: without it there is no doubt when (RFC 9110 §7.8)
	if bytes, ok := x.client.takeContent(); ok {
		b.kind, b.bytes, b.once = inMemory, bytes, x.client.multiplexed() && len(bytes) > x.plane.config.MaxBufferedBody
		if x.client.multiplexed() {
			b.trailer = x.trailer()
		}
		return
	}
	p, limit := x.fleet.policy, x.plane.config.MaxBufferedBody
	b.limit = limit
	switch {
	case x.in != nil && x.in.comparesBodies(): // with those of earlier tries
		b.kind, b.limit = toHold, x.in.keys.MaxBody
	case x.rpc && p.Hedge.Enabled() && x.again && limit > 0 && x.in == nil && !req.Expect && x.ownsRetries(): // copies need all of it
		b.kind, b.brief = toHold, true
	case x.rpc: // its client may wait for an answer before it sends the rest
		b.kind = streamed
	case !req.Chunked && req.Length <= int64(limit),
		req.Length < 0 && x.again && (p.MaxRetries > 0 || p.Hedge.Enabled()) && limit > 0 && !req.Trailers:
		b.kind = toHold
	default:
		b.kind = streamed
	}
}

// replayable tells whether the body can be sent (again).
func (b *content) replayable() bool {
	return b.kind != streamed || !b.taken || b.feed != nil && b.feed.replayable()
}

// late tells, at the end of an attempt's time, whether it was the client who was waited for, and notes that.
func (b *content) late() bool {
	if b.feed != nil {
		return b.feed.late()
	}
	return b.upload.late()
}

// failed is why the client's body could not be read, nil if it could.
func (b *content) failed() error {
	switch {
	case b.upload != nil:
		return b.upload.failed()
	case b.feed != nil:
		return b.feed.failed()
	}
	return b.err
}

// messageWait is how long a gRPC call that may be hedged waits for its message, without which it cannot be: clients send it with the head or
// right behind it, unless the call is a stream.
var messageWait = 50 * time.Millisecond

// fill reads a body that is to be held. If more than the limit comes, or not all of it in a brief time, it is a stream with a head start.
func (b *content) fill(until time.Duration) error {
	if b.kind != toHold {
		return nil
	}
	x := b.x
	if x.req.Expect {
		x.client.interim(100, nil)
		x.req.Expect = false
	}
	b.held = b.held[:0]
	for {
		if len(b.held) == cap(b.held) {
			b.held = append(b.held, 0)[:len(b.held)]
		}
		n, err := x.client.Read(b.held[len(b.held):cap(b.held)], until)
		b.held = b.held[:len(b.held)+n]
		switch {
		case err == io.EOF:
			b.kind, b.bytes, b.trailer = inMemory, b.held, x.trailer()
			return nil
		case err != nil && !(b.brief && errors.Is(err, errSlowBody)):
			b.err = err
			return err
		case err != nil || len(b.held) > b.limit:
			b.kind, b.bytes = streamed, b.held
			return nil
		}
	}
}

// keptBody is how much memory for bodies a connection keeps while it waits for its next request.
const keptBody = 2 << 10

// close ends what is left of sending the body.
func (b *content) close() {
	if b.upload != nil {
		b.upload.stop()
	}
	if b.feed != nil {
		b.feed.stop()
		b.feed = nil
	}
	b.bytes = nil
	if cap(b.held) > keptBody {
		b.held = nil
	}
}

// Read gives the rest of a stream after its head start.
func (b *content) Read(p []byte) (int, error) {
	if len(b.bytes) > 0 {
		n := copy(p, b.bytes)
		b.bytes = b.bytes[n:]
		return n, nil
	}
	return b.x.client.Read(p, abate.NoDeadline)
}

// upload sends a stream beside the attempt, which waits for the answer meanwhile: the service may answer before it has all
// of the request, and both directions may flow at once.
type upload struct {
	body    *content
	to      *upstreamConn
	permit  chan struct{} // closed when the service wants the body (100 Continue), or says nothing for a while
	began   time.Duration
	ended   chan struct{}
	done    atomic.Bool // sent to its end
	asking  atomic.Bool // it waits for the client
	halt    atomic.Bool // nobody wants the rest
	err     atomic.Pointer[error]
	granted bool
}

// continueWait is how long a service may think about Expect: 100-continue before the body is sent anyway: it may not know
// the word (RFC 9110 §10.1.1).
const continueWait = time.Second

// send begins the upload.
func (b *content) send(to *upstreamConn) *upload {
	u := &upload{body: b, to: to, began: abate.Now(), permit: make(chan struct{}), ended: make(chan struct{})}
	b.taken, b.upload, to.hurried = true, u, true
	if !b.x.req.Expect {
		u.grant()
	}
	go u.run()
	return u
}

// remind grants what the service has not answered for continueWait, and tells the client.
func (u *upload) remind(now time.Duration) {
	if u != nil && !u.granted && now-u.began >= continueWait {
		u.body.x.client.interim(100, nil)
		u.grant()
	}
}

// grant lets the body go.
func (u *upload) grant() {
	if !u.granted {
		u.granted = true
		close(u.permit)
	}
}

func (u *upload) run() {
	defer close(u.ended)
	<-u.permit
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	frame := make([]byte, 0, 32)
	for {
		u.asking.Store(true)
		n, err := u.body.Read(*buf)
		u.asking.Store(false)
		if n > 0 && !u.write(frame, (*buf)[:n]) {
			return
		}
		if err == io.EOF {
			if u.body.chunked && !u.put(h1.AppendLastChunk(frame, u.body.x.trailer())) {
				return
			}
			u.done.Store(true)
			return
		}
		if err != nil {
			if !errors.Is(err, errStopped) {
				u.err.Store(&err)
			}
			u.to.nc.Close() // the service must not take a part for the whole
			return
		}
	}
}

// write sends one piece.
func (u *upload) write(frame, p []byte) bool {
	if !u.body.chunked {
		return u.put(p)
	}
	return u.put(h1.AppendChunkSize(frame, len(p))) && u.put(p) && u.put(crlf)
}

// put writes to the service. One that takes nothing for StallTimeout has failed; what became of it, the attempt finds out.
func (u *upload) put(p []byte) bool {
	x := u.body.x
	u.to.nc.SetWriteDeadline(x.plane.clock.time(later(abate.Now(), x.plane.config.StallTimeout)))
	if u.halt.Load() { // looked at after the deadline is set: stop sets one after it
		return false
	}
	_, err := u.to.nc.Write(p)
	return err == nil
}

// late tells, at the end of an attempt's time, whether it was the client who was waited for, and notes that. A client that
// has not announced a length may itself be waiting for the answer.
func (u *upload) late() bool {
	if u == nil || u.body.x.req.Length < 0 || !u.granted || !u.asking.Load() {
		return false
	}
	var err error = errSlowBody
	u.err.CompareAndSwap(nil, &err)
	return true
}

// failed is why the client's part failed, nil if it did not.
func (u *upload) failed() error {
	if err := u.err.Load(); err != nil {
		return *err
	}
	return nil
}

// stop ends the upload and waits for it. A connection whose request was cut off is of no more use.
func (u *upload) stop() {
	if !u.done.Load() {
		u.grant()
		u.body.x.client.stop()
		u.halt.Store(true)
		u.to.nc.SetWriteDeadline(time.Unix(1, 0))
	}
	<-u.ended
}
