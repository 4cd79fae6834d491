package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// http2Answer is the part of an attempt that goes over HTTP/2.
type http2Answer struct {
	s     *h2.Stream // nil for none
	head  h2.Head    // of the request
	lines []byte     // which the proxy adds to it
	began time.Duration
	hook  *stream // the client, if it interrupts the waits by itself when it leaves

	rest chan struct{} // closed when the rest of the request has been sent; nil without one

	first    []byte        // content that has been taken, and that next is still to return
	complete bool          // nothing comes behind that
	trailer  []h1.Field    // once the answer has ended
	firstAt  time.Duration // when content came first; 0 before
}

// sendHTTP2 is the attempt over HTTP/2, as far as the head of the answer; for gRPC as far as its verdict or first message. A
// connection that turns out to be ending is nobody's failure: once the request goes to another, as over HTTP/1.1.
func (x *exchange) sendHTTP2(ctx context.Context, a *answer, n int) error {
	h, e := &a.h2, a.endpoint()
	h.began = abate.Now()
	a.writeHead(e, n)
	for stale := 0; ; {
		conn, err := e.http2.get(ctx, x, a.until)
		if err != nil {
			return err
		}
		if err = x.open(a, conn); err == nil {
			if err = x.converseHTTP2(ctx, a); err == nil {
				return nil
			}
		}
		a.closeHTTP2()
		if err == h2.ErrTooManyStreams || err == h2.ErrGoingAway { // somebody was quicker
			continue
		}
		var end *h2.StreamError
		if !errors.As(err, &end) || !end.Refused {
			return x.because(a, err)
		}
		a.sent = false
		if stale++; stale > 1 || end.Cause == nil || !x.body.replayable() {
			return x.because(a, err)
		}
	}
}

// open sends the head of the request on a connection, and as much of its content as is there.
func (x *exchange) open(a *answer, conn *h2.Conn) (err error) {
	h, b := &a.h2, &x.body
	switch {
	case b.kind == streamed:
		if x.req.Expect { // nobody waits for what the service thinks of it
			x.client.interim(http.StatusContinue, nil)
			x.req.Expect = false
		}
		h.s, err = b.feedTo(conn, &h.head, a.until)
	default:
		err = h.openWhole(conn, b, x.rpc, a.until)
	}
	if a.sent = h.s != nil; a.sent && b.kind == streamed {
		a.listen()
	}
	return err
}

// listen has the client's leaving end the waits of the attempt. Most calls are over before it would pay: they look now and then.
func (a *answer) listen() {
	if st, ok := a.x.client.(*stream); ok && a.alone && a.h2.hook == nil && a.x.keyInUse() == nil {
		a.h2.hook = st
		st.hook(a.h2.s)
	}
}

// openWhole sends a request that is in memory. What there is no window for goes out beside the wait for the answer: the
// service may give one before it has all of it. A gRPC call without a message ends with an empty frame of content, as gRPC over
// HTTP/2 has it: there are servers, Node's among them, that wait for one for ever.
func (h *http2Answer) openWhole(conn *h2.Conn, b *content, rpc bool, until time.Duration) error {
	whole, silent := len(b.trailer) == 0, rpc && len(b.bytes) == 0
	s, n, err := conn.Open(&h.head, b.bytes, whole && !silent, until)
	if err != nil {
		return err
	}
	h.s = s
	switch {
	case whole && silent:
		_ = s.End() // what became of the stream, its answer tells
	case n < len(b.bytes):
		h.rest = make(chan struct{})
		go h.sendRest(b, n, until)
	case !whole:
		_ = s.WriteTrailer(b.trailer) // what became of the stream, its answer tells
	}
	return nil
}

func (h *http2Answer) sendRest(b *content, n int, until time.Duration) {
	defer close(h.rest)
	whole := len(b.trailer) == 0
	if err := h.s.Write(b.bytes[n:], whole, until); err == nil && !whole {
		_ = h.s.WriteTrailer(b.trailer)
	}
}

// writeHead writes the head of attempt n.
func (a *answer) writeHead(e *endpoint, n int) {
	h, x := &a.h2, a.x
	q := &h.head
	*q = h2.Head{Method: x.req.Method, Scheme: schemeHTTP, Authority: e.authority, Path: x.target(e), Fields: q.Fields[:0], Length: x.req.Length}
	if e.tls != nil {
		q.Scheme = schemeHTTPS
	}
	if x.keepsHost() {
		q.Authority = x.req.Host
	}
	if q.Length == 0 && (x.rpc || !x.body.empty(text(x.req.Method))) {
		q.Length = -1
	}
	for _, f := range x.req.Fields {
		if !x.ours(f) {
			q.Fields = append(q.Fields, f)
		}
	}
	if x.req.Trailers {
		q.Fields = append(q.Fields, h2.Field{Name: nameTE, Value: valueTrailers})
	}
	h.lines = x.appendOwn(h.lines[:0], a, n)
	q.Fields = appendLines(q.Fields, h.lines)
}

var (
	schemeHTTP, schemeHTTPS = []byte("http"), []byte("https")
	nameTE, valueTrailers   = []byte("te"), []byte("trailers")
)

// converseHTTP2 waits for the answer to begin. An attempt that is not alone ends with ctx.
func (x *exchange) converseHTTP2(ctx context.Context, a *answer) error {
	if a.alone {
		return a.beginHTTP2()
	}
	s, stopped := a.h2.s, make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // the waits see by themselves that the time is up
			a.cancelled.Store(true)
			s.Interrupt()
		}
	})
	defer func() {
		if !stop() {
			<-stopped // the stream may be closed from here on
		}
	}()
	return a.beginHTTP2()
}

// beginHTTP2 reads the head of the answer, and of a gRPC answer as much more as it takes to see whether it has a message.
func (a *answer) beginHTTP2() error {
	x := a.x
	for interim := 0; ; interim++ {
		head, err := a.awaitHeadHTTP2()
		switch {
		case err != nil:
			return err
		case head.Status >= 200:
			a.takeHead(head)
			if !x.rpc {
				return nil
			}
			return a.awaitVerdict(x.mayTryAgain() && x.mayRepeat(a))
		case interim >= maxInterim:
			return &badAnswerError{"more than 16 informational answers"}
		case a.alone && head.Status != http.StatusContinue:
			x.client.interim(head.Status, head.Fields)
		}
	}
}

// awaitHeadHTTP2 waits for the next head. While the client of a gRPC call goes on sending, the time that the attempt has begins
// anew with every piece: the service may have nothing to say before it has all.
func (a *answer) awaitHeadHTTP2() (*h2.Head, error) {
	h := &a.h2
	for {
		now, end := abate.Now(), a.until
		if f := a.x.body.feed; f != nil && a.x.rpc && end != abate.NoDeadline {
			end = max(end, min(a.x.limit, later(time.Duration(f.lastAt.Load()), end-h.began)))
		}
		if now >= end {
			return nil, &timeLimitError{"no answer"}
		}
		until := end
		if h.hook == nil {
			until = min(until, later(now, glance))
		}
		head, err := h.s.AwaitHead(until)
		if err == nil {
			return head, nil
		}
		if err = a.after(err); err != nil {
			return nil, err
		}
	}
}

// after is what the error of a wait means; nil: go on waiting.
func (a *answer) after(err error) error {
	switch {
	case err == h2.ErrInterrupted, err == h2.ErrTimeUp && (a.cancelled.Load() || a.x.gone()):
		return errGone
	case err == h2.ErrTimeUp:
		a.listen()
		return nil
	}
	return err
}

// takeHead makes the head of the final answer what one over HTTP/1.1 would be.
func (a *answer) takeHead(head *h2.Head) {
	x, r := a.x, &a.resp
	fields := r.Fields[:0]
	for _, f := range head.Fields {
		if !f.Is("content-length") {
			fields = append(fields, f)
		}
	}
	*r = h1.Response{Status: head.Status, Minor: 1, Fields: fields, Length: -1, Announced: head.Length, KeepAlive: true}
	a.h2.take()
	switch {
	case string(x.req.Method) == http.MethodHead || bodiless(head.Status):
		r.Length = 0
	case a.h2.complete && len(a.h2.first) == 0 && len(a.h2.trailer) == 0:
		r.Length, r.Announced = 0, 0
	case head.Length > 0:
		r.Length = head.Length
	}
	switch {
	case x.rpc:
		a.until = x.limit // the end of a stream cannot be foreseen, but how long its client waits
	case stays(fields):
		a.until = abate.NoDeadline
	}
}

// take takes what has come. It stays valid until there is more to take.
func (h *http2Answer) take() {
	if h.first, h.complete = h.s.Take(); h.complete {
		h.trailer = inTrailer(h.s.Trailer())
	}
}

// peek waits for content, which next returns then, or for the end.
func (a *answer) peek(until time.Duration) error {
	h := &a.h2
	if h.first != nil || h.complete {
		return nil
	}
	data, err := h.s.Next(until)
	switch {
	case err == nil:
		h.first = data
	case err == io.EOF:
		h.complete, h.trailer, err = true, inTrailer(h.s.Trailer()), nil
	case err != h2.ErrTimeUp:
		err = a.after(err)
	}
	return err
}

// nextHTTP2 is next.
func (a *answer) nextHTTP2() ([]byte, error) {
	h := &a.h2
	if data := h.first; data != nil {
		if h.first = nil; h.firstAt == 0 {
			h.firstAt = abate.Now()
		}
		return data, nil
	}
	for !h.complete {
		now := abate.Now()
		if now >= a.until {
			return nil, &timeLimitError{"no end of the answer"}
		}
		until := a.until
		if h.hook == nil || a.held(now) {
			until = min(until, later(now, glance))
		}
		data, err := h.s.Next(until)
		switch {
		case err == nil:
			if h.firstAt == 0 {
				h.firstAt = now
			}
			return data, nil
		case err == io.EOF:
			h.complete, h.trailer = true, inTrailer(h.s.Trailer())
		default:
			if err = a.after(err); err != nil {
				return nil, a.x.because(a, err)
			}
		}
	}
	a.ended = true
	return nil, io.EOF
}

// held tells whether the request holds a place at a gate. It does not when its answer has turned out to be a stream, which
// lasts as long as it likes: what follows the first message at once is still one answer.
func (a *answer) held(now time.Duration) bool {
	in := a.x.in
	if in == nil || !in.open || !a.x.rpc {
		return false
	}
	if a.h2.firstAt != 0 && now-a.h2.firstAt >= glance {
		a.x.served(abate.Ignored)
		return false
	}
	return true
}

// pending is answer.pending.
func (h *http2Answer) pending() bool {
	if h.first == nil && !h.complete {
		h.take()
	}
	return h.first != nil || h.complete
}

// closeHTTP2 ends the attempt's stream.
func (a *answer) closeHTTP2() {
	h := &a.h2
	if h.s == nil {
		return
	}
	if h.hook != nil {
		h.hook.unhook()
		h.hook = nil
	}
	if f := a.x.body.feed; f != nil && f.target == h.s {
		f.leave(h.s)
	}
	if h.rest != nil {
		h.s.Reset(h2.Cancel)
		<-h.rest
		h.rest = nil
	}
	h.s.Close()
	h.s, h.first, h.trailer, h.complete = nil, nil, nil, false
}

// resetError is a stream that ended before its time. It is of the kind of a connection that was reset.
type resetError struct{ *h2.StreamError }

func (e resetError) Unwrap() error        { return e.StreamError }
func (e resetError) Is(target error) bool { return target == syscall.ECONNRESET }

// because is what became of the attempt.
func (x *exchange) because(a *answer, err error) error {
	var end *h2.StreamError
	switch {
	case err == h2.ErrTimeUp:
		return &timeLimitError{"nothing sent"}
	case errors.As(err, &end) && x.gone():
		return errGone
	case a.overdue(err):
		return &timeLimitError{"no answer"}
	case errors.As(err, &end):
		return resetError{end}
	}
	return err
}
