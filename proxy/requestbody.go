package proxy

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
)

// requestBody is the content of a client's request on an HTTP/1.1 connection.
type requestBody struct {
	sock    *clientSocket
	left    int64 // of Content-Length
	chunked bool
	decoder *h1.Chunked // of chunks; nil before the first
	data    []byte      // decoded and not read yet
	raw     []byte      // read from the socket and not decoded yet; in the input at first, in scratch later
	scratch *[]byte     // nil until raw has been used up
	done    atomic.Bool // all of it has been read
	halt    atomic.Bool // nobody wants the rest
}

// begin points b at the content of the request whose head has just been taken from the input.
func (b *requestBody) begin(req *h1.Request) {
	b.left, b.chunked = req.Length, req.Chunked
	b.data, b.raw = nil, b.sock.in.unread()
	b.done.Store(!req.Chunked && req.Length == 0)
	b.halt.Store(false)
	if b.chunked {
		if b.left = 0; b.decoder == nil {
			b.decoder = new(h1.Chunked)
		}
		b.decoder.Reset()
	}
}

// complete reports whether nothing of the content is left on the connection.
func (b *requestBody) complete() bool { return b.done.Load() }

// inInput returns the content if all of it has come with the head.
func (b *requestBody) inInput() ([]byte, bool) {
	if b.chunked || int64(len(b.raw)) < b.left {
		return nil, false
	}
	content := b.raw[:b.left]
	b.raw = b.raw[b.left:]
	b.left = 0
	b.done.Store(true)
	return content, true
}

// Read reads the content. It waits for the client for at most StallTimeout, and not past until.
func (b *requestBody) Read(p []byte, until time.Duration) (int, error) {
	for {
		if len(b.data) > 0 {
			n := copy(p, b.data)
			b.data = b.data[n:]
			return n, nil
		}
		if b.done.Load() {
			return 0, io.EOF
		}
		if len(b.raw) == 0 {
			if !b.chunked {
				return b.direct(p, until)
			}
			if err := b.refill(until); err != nil {
				return 0, err
			}
		}
		if err := b.decode(); err != nil {
			return 0, err
		}
	}
}

func (b *requestBody) decode() error {
	if !b.chunked {
		n := min(b.left, int64(len(b.raw)))
		b.data, b.raw = b.raw[:n], b.raw[n:]
		b.used(n)
		return nil
	}
	data, n, done, bad := b.decoder.Next(b.raw)
	if bad != nil {
		return bad
	}
	b.data, b.raw = data, b.raw[n:]
	if done {
		b.done.Store(true)
	}
	return nil
}

// direct reads content of known length from the socket to p, past all buffers.
func (b *requestBody) direct(p []byte, until time.Duration) (int, error) {
	n, err := b.socket(p[:min(int64(len(p)), b.left)], until)
	b.used(int64(n))
	return n, err
}

func (b *requestBody) used(n int64) {
	if b.left -= n; b.left == 0 {
		b.done.Store(true)
	}
}

func (b *requestBody) refill(until time.Duration) error {
	if b.scratch == nil {
		b.scratch = buffers.Get().(*[]byte)
	}
	n, err := b.socket(*b.scratch, until)
	b.raw = (*b.scratch)[:n]
	return err
}

// socket reads from the client. The end of the connection in the middle of a request is an error.
func (b *requestBody) socket(p []byte, until time.Duration) (int, error) {
	s := b.sock
	stalled := min(until, later(core.Now(), s.stall))
	for {
		now := core.Now()
		if now >= stalled {
			return 0, errSlowBody
		}
		s.setReadDeadline(now, stalled)
		if b.halt.Load() { // looked at after the deadline is set: stop sets one after it
			return 0, errStopped
		}
		n, err := s.conn().Read(p)
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.readBy = 0
		case err == io.EOF:
			return 0, io.ErrUnexpectedEOF
		default:
			return 0, err
		}
	}
}

// stop interrupts a Read on another goroutine, for good: the connection ends with this request.
func (b *requestBody) stop() {
	b.halt.Store(true)
	b.sock.nc.SetReadDeadline(time.Unix(1, 0))
}

// end leaves what was read beyond the content in the input, where the next request is looked for.
func (b *requestBody) end() {
	in := &b.sock.in
	if b.scratch == nil {
		in.r = in.w - len(b.raw)
		return
	}
	in.r, in.w = 0, 0
	if len(b.raw) > 0 {
		in.w = copy(in.space(), b.raw)
	}
	b.put()
}

func (b *requestBody) put() {
	if b.scratch != nil {
		buffers.Put(b.scratch)
		b.scratch = nil
	}
	b.raw, b.data = nil, nil
}

// trailer is the fields after chunked content.
func (b *requestBody) trailer() []h1.Field {
	if !b.chunked {
		return nil
	}
	return b.decoder.Trailer()
}
