package abatehttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// requestBody gives each attempt its own copy of the request's body, if that is possible.
type requestBody struct {
	buffered []byte     // the whole body, if not nil
	stream   *stream    // the body, when it can be sent only once
	mu       sync.Mutex // held over GetBody, which does not promise to bear two hedges at once
}

// open decides how the body of req is sent. A body of unknown kind and at most limit bytes is read into memory; a
// negative limit means never. Reading ends when the caller leaves, or after timeout if that is above zero. On an error
// the body is closed.
func (b *requestBody) open(req *http.Request, limit int64, timeout time.Duration) error {
	if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
		return nil
	}
	if limit < 0 || req.ContentLength > limit {
		b.stream = &stream{rest: req.Body}
		return nil
	}
	return b.buffer(req, limit, timeout)
}

// buffer reads up to limit bytes. If more follow, the body is a stream again, with a head start.
func (b *requestBody) buffer(req *http.Request, limit int64, timeout time.Duration) error {
	ctx := req.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	source := req.Body
	// A reader that hangs must not outlive the call. Closing it is what net/http does to it too.
	stop := context.AfterFunc(ctx, func() { source.Close() })
	prefix, err := readAll(source, req.ContentLength, limit+1)
	if !stop() {
		<-ctx.Done()
		return errors.Join(ctx.Err(), err)
	}
	switch {
	case err != nil:
		source.Close()
		return err
	case int64(len(prefix)) > limit:
		b.stream = &stream{prefix: prefix, rest: source}
		return nil
	case req.ContentLength > 0 && req.ContentLength != int64(len(prefix)):
		source.Close()
		return fmt.Errorf("abatehttp: the request says ContentLength %d, but its body has %d bytes", req.ContentLength, len(prefix))
	}
	b.buffered = prefix
	return source.Close()
}

// readAll reads r to its end, or to limit. A size that is known saves the growing. What it returns is not nil.
func readAll(r io.Reader, size, limit int64) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(min(max(size, 0), limit)) + bytes.MinRead)
	_, err := buf.ReadFrom(io.LimitReader(r, limit))
	return buf.Bytes(), err
}

// replayable tells whether copy can be called more than once.
func (b *requestBody) replayable() bool { return b.stream == nil }

// copy returns the body of attempt n of req. The first attempt takes the caller's own.
func (b *requestBody) copy(req *http.Request, n int) (io.ReadCloser, error) {
	switch {
	case b.buffered != nil:
		return io.NopCloser(bytes.NewReader(b.buffered)), nil
	case b.stream != nil:
		return b.stream, nil
	case n == 1 || req.GetBody == nil:
		return req.Body, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return req.GetBody()
}

// close closes the body of req when no attempt was made that would do it.
func (b *requestBody) close(req *http.Request) {
	if req.Body != nil && b.buffered == nil {
		req.Body.Close()
	}
}

// failed tells whether err is what reading the caller's own body came to.
func (b *requestBody) failed(err error) bool {
	if b.stream == nil {
		return false
	}
	cause := b.stream.err.Load()
	return cause != nil && errors.Is(err, *cause)
}

// stream is a body that is sent once. It remembers how reading it failed, so that a broken upload is not held against
// the server.
type stream struct {
	prefix []byte // read already
	rest   io.ReadCloser
	closed atomic.Bool
	err    atomic.Pointer[error]
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.prefix) > 0 {
		n := copy(p, s.prefix)
		s.prefix = s.prefix[n:]
		return n, nil
	}
	n, err := s.rest.Read(p)
	if err != nil && err != io.EOF && !s.closed.Load() {
		s.err.Store(&err)
	}
	return n, err
}

func (s *stream) Close() error {
	s.closed.Store(true)
	return s.rest.Close()
}
