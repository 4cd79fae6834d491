package abatehttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
)

// requestBody gives each attempt its own copy of the request's body, if that is possible.
type requestBody struct {
	hold     int64       // above 0: the first attempt reads up to so many bytes into memory
	pending  atomic.Bool // it has not finished that yet
	buffered []byte      // the whole body, if not nil
	stream   *stream     // the body, when it can be sent only once

	err atomic.Pointer[error] // what reading the caller's body came to
	mu  sync.Mutex            // held over GetBody, which does not promise to bear two hedges at once
}

// open decides how the body of req is sent. One of unknown kind and at most hold bytes is held in memory; a negative
// hold means never. Nothing is read yet: a call that is refused should not have waited for its body.
func (b *requestBody) open(req *http.Request, hold int64) {
	switch {
	case req.Body == nil || req.Body == http.NoBody || req.GetBody != nil:
	case hold < 0 || req.ContentLength > hold:
		b.stream = b.watch(req.Body)
	default:
		b.hold = hold
		b.pending.Store(true)
	}
}

// untouched reports whether nothing of the body has been read, or it can be had again.
func (b *requestBody) untouched() bool {
	return b.stream == nil || !b.stream.read.Load() && b.stream.prefix == nil
}

// finish is told that there will be no further attempt.
func (b *requestBody) finish() {
	if b.stream != nil {
		b.stream.last()
	}
}

// replayable reports whether the body can be sent more than once, as far as is known by now.
func (b *requestBody) replayable() bool { return b.stream == nil }

// errNoCopy is what becomes of a hedge that comes before its time.
var errNoCopy = errors.New(
	"abatehttp: no hedge: the request's body is still being read, or too long to be held in memory")

// copy returns the body of attempt n of req, which u follows. The first attempt takes the caller's own, and is the one
// that reads it into memory; that ends with ctx.
func (b *requestBody) copy(ctx context.Context, req *http.Request, n int, u *upload) (io.ReadCloser, error) {
	if b.hold > 0 {
		if n == 1 {
			u.wait()
			if err := b.fill(ctx, req); err != nil {
				b.err.Store(&err)
				return nil, err
			}
		} else if b.pending.Load() || b.stream != nil {
			return nil, errNoCopy
		}
	}
	switch {
	case b.buffered != nil:
		return io.NopCloser(bytes.NewReader(b.buffered)), nil
	case b.stream != nil:
		b.stream.again(u)
		return b.stream, nil
	case req.GetBody == nil || req.Body == nil || req.Body == http.NoBody:
		return req.Body, nil
	case n == 1:
		return b.watched(req.Body, u), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	return b.watched(body, u), nil
}

// fill reads the body. If more than hold bytes come, it is a stream again, with a head start.
func (b *requestBody) fill(ctx context.Context, req *http.Request) error {
	prefix, err := readAll(ctx, req.Body, req.ContentLength, b.hold)
	switch {
	case err != nil:
		req.Body.Close()
		return err
	case int64(len(prefix)) > b.hold:
		b.stream = b.watch(req.Body)
		b.stream.prefix = prefix
	case req.ContentLength > 0 && req.ContentLength != int64(len(prefix)):
		req.Body.Close()
		return fmt.Errorf("abatehttp: the request says ContentLength %d, but its body has %d bytes", req.ContentLength,
			len(prefix))
	default:
		b.buffered = prefix
		if err := req.Body.Close(); err != nil {
			return err
		}
	}
	b.pending.Store(false)
	return nil
}

// growAtOnce is how much memory is taken at the mere word of a request's ContentLength.
const growAtOnce = 1 << 20

// readAll reads r to its end, or one byte further than limit. A size that is known saves the growing. What it returns
// without an error is not nil.
//
// It returns when ctx is done, also if r hangs and does not wake up by being closed. The goroutine that reads r then
// goes when r does, as the one does by which net/http sends a body.
func readAll(ctx context.Context, r io.Reader, size, limit int64) ([]byte, error) {
	if limit < math.MaxInt64 {
		limit++
	}
	var (
		buf  bytes.Buffer
		done = make(chan error, 1)
	)
	go func() {
		buf.Grow(int(min(max(size, 0), limit, growAtOnce)) + bytes.MinRead)
		_, err := buf.ReadFrom(io.LimitReader(r, limit))
		done <- err
	}()
	select {
	case err := <-done:
		return buf.Bytes(), err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// late notes that the attempt ended with err while the caller was waited for, and returns err.
func (b *requestBody) late(err error) error {
	b.err.Store(&err)
	return err
}

// failed reports whether err is what reading the caller's own body came to.
func (b *requestBody) failed(err error) bool {
	cause := b.err.Load()
	return cause != nil && errors.Is(err, *cause)
}

// stream is a body that remembers how reading it failed, so that a broken upload is not held against the server. One
// that is closed before anybody has read of it stays open below, until the call is over: net/http closes the body of a
// request for which it has found no connection, and the next attempt needs it.
type stream struct {
	prefix []byte // read already
	rest   io.ReadCloser
	read   atomic.Bool // something of it
	closed atomic.Bool
	err    *atomic.Pointer[error]
	upload atomic.Pointer[upload] // of the attempt; it may hold nil

	mu   sync.Mutex
	owed bool // a Close that rest has not been told of
	over bool // no further attempt will come
	shut bool // rest has been closed
}

// again begins another attempt, which u follows.
func (s *stream) again(u *upload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.upload.Store(u)
	s.owed = false
	s.closed.Store(false)
}

// last ends the call.
func (s *stream) last() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.owed {
		s.owed, s.shut = false, true
		s.rest.Close()
	}
}

func (b *requestBody) watch(body io.ReadCloser) *stream { return &stream{rest: body, err: &b.err} }

// watched is watch, except for bodies that cannot fail: net/http sends those in one write with the header, if it sees
// what they are.
func (b *requestBody) watched(body io.ReadCloser, u *upload) io.ReadCloser {
	if body == nil || body == http.NoBody || inMemory(body) {
		return body
	}
	s := b.watch(body)
	s.over = true // each attempt has one of its own
	s.upload.Store(u)
	return s
}

// rewinds is the GetBody of an attempt that u follows: the base may send it again by itself.
func (b *requestBody) rewinds(req *http.Request, u *upload) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		body = b.watched(body, u)
		u.rewound(body)
		return body, nil
	}
}

// nopClosers are the types of what io.NopCloser returns.
var nopClosers = [...]reflect.Type{
	reflect.TypeOf(io.NopCloser(strings.NewReader(""))),
	reflect.TypeOf(io.NopCloser(struct{ io.Reader }{})),
}

// inMemory reports whether body is one that http.NewRequest made of bytes or a string.
func inMemory(body io.ReadCloser) bool {
	if t := reflect.TypeOf(body); t != nopClosers[0] && t != nopClosers[1] {
		return false
	}
	switch reflect.ValueOf(body).Field(0).Interface().(type) {
	case *bytes.Buffer, *bytes.Reader, *strings.Reader:
		return true
	}
	return false
}

var errClosed = errors.New("abatehttp: the base has closed the request's body")

func (s *stream) Read(p []byte) (int, error) {
	if !s.read.Load() {
		s.read.Store(true)
	}
	if s.closed.Load() {
		return 0, errClosed
	}
	if len(s.prefix) > 0 {
		n := copy(p, s.prefix)
		s.prefix = s.prefix[n:]
		return n, nil
	}
	u := s.upload.Load()
	u.read()
	n, err := s.rest.Read(p)
	u.got()
	if err != nil && err != io.EOF && !s.closed.Load() {
		s.err.Store(&err)
	}
	return n, err
}

func (s *stream) Close() error {
	s.closed.Store(true)
	s.upload.Load().close()
	s.mu.Lock()
	s.owed = !s.over && !s.read.Load()
	closes := !s.owed && !s.shut
	s.shut = s.shut || closes
	s.mu.Unlock()
	if closes {
		return s.rest.Close()
	}
	return nil
}
