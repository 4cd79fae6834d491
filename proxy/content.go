package proxy

import (
	"errors"
	"io"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
)

// content is the body of a request as attempts send it: none, in memory, or a stream that can be sent once.
type content struct {
	req     *request
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

// open decides how the body is sent. Nothing is waited for yet: a call that is refused should not have waited for its
// body. A short one of known length is held whatever the method: that saves a goroutine.
func (b *content) open() {
	r := b.req
	*b = content{req: r, chunked: r.Chunked, held: b.held}
	if r.Length == 0 && !r.Chunked {
		return
	}
	// nobody may switch before all content has been read: without it there is no doubt when (RFC 9110 §7.8)
	r.Upgrade = nil
	if bytes, ok := r.client.takeContent(); ok {
		b.kind, b.bytes, b.once = inMemory, bytes, r.client.multiplexed() && len(bytes) > r.plane.config.MaxBufferedBody
		if r.client.multiplexed() {
			b.trailer = r.trailer()
		}
		return
	}
	p, limit := r.fleet.policy, r.plane.config.MaxBufferedBody
	b.limit = limit
	switch {
	case r.in != nil && r.in.comparesBodies(): // with those of earlier tries
		b.kind, b.limit = toHold, r.in.keys.MaxBody
	case r.rpc && p.Hedge.Enabled() && r.again && limit > 0 && r.in == nil && !r.Expect &&
		r.ownsRetries(): // copies need all of it
		b.kind, b.brief = toHold, true
	case r.rpc: // its client may wait for an answer before it sends the rest
		b.kind = streamed
	case !r.Chunked && r.Length <= int64(limit),
		r.Length < 0 && r.again && (p.MaxRetries > 0 || p.Hedge.Enabled()) && limit > 0 && !r.Trailers:
		b.kind = toHold
	default:
		b.kind = streamed
	}
}

// replayable reports whether the body can be sent (again).
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

// messageWait is how long a gRPC call that may be hedged waits for its message, without which it cannot be: clients
// send it with the head or right behind it, unless the call is a stream.
var messageWait = 50 * time.Millisecond

// fill reads a body that is to be held. If more than the limit comes, or not all of it in a brief time, it is a
// stream with a head start.
func (b *content) fill(until time.Duration) error {
	if b.kind != toHold {
		return nil
	}
	r := b.req
	if r.Expect {
		r.client.interim(100, nil)
		r.Expect = false
	}
	b.held = b.held[:0]
	for {
		if len(b.held) == cap(b.held) {
			b.held = append(b.held, 0)[:len(b.held)]
		}
		n, err := r.client.Read(b.held[len(b.held):cap(b.held)], until)
		b.held = b.held[:len(b.held)+n]
		switch {
		case err == io.EOF:
			b.kind, b.bytes, b.trailer = inMemory, b.held, r.trailer()
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
	return b.req.client.Read(p, core.NoDeadline)
}

// hold reads a body that is held before anything is decided: a slow client must not hold permits, nor use up their
// time. now is when it was there.
func (b *content) hold() (now time.Duration, err error) {
	if b.kind != toHold || b.req.Expect {
		return b.req.began, nil
	}
	until := core.NoDeadline
	if b.brief {
		until = min(b.req.limit, later(b.req.began, messageWait))
	}
	if err := b.fill(until); err != nil {
		return 0, err
	}
	return core.Now(), nil
}

// empty reports whether a request without a body has to say so: RFC 9110 §8.6.
func (b *content) empty(method string) bool {
	return b.kind == noContent && (method == "POST" || method == "PUT" || method == "PATCH")
}

// appendTo adds a body that is in memory.
func (b *content) appendTo(dst []byte) []byte {
	if !b.chunked {
		return append(dst, b.bytes...)
	}
	if len(b.bytes) > 0 {
		dst = h1.AppendChunk(dst, b.bytes)
	}
	return h1.AppendLastChunk(dst, b.trailer)
}
