package proxy

import (
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// http2Answer is the part of an attempt that goes over HTTP/2.
type http2Answer struct {
	s      *h2.Stream // nil for none
	head   h2.Head    // of the request
	lines  []byte     // which the proxy adds to it
	began  time.Duration
	hooked bool // the client interrupts the waits by itself when it leaves
	// extended reports that the request is an extended CONNECT.
	extended bool

	rest chan struct{} // closed when the rest of the request has been sent; nil without one

	first    []byte        // content that has been taken, and that next is still to return
	complete bool          // nothing comes behind that
	trailer  []h1.Field    // once the answer has ended
	firstAt  time.Duration // when content came first; 0 before
	left     int64         // of the content, to be passed on; 0 if nobody knows
	all      bool          // has been passed on
}

// listen has the client's leaving end the waits of the attempt. Most calls are over before it would pay: they look
// now and then.
func (a *answer) listen() {
	if a.alone && !a.h2.hooked && a.req.keyInUse() == nil {
		a.h2.hooked = a.req.client.hook(a.h2.s)
	}
}

// openWhole sends a request that is in memory. What there is no window for goes out beside the wait for the answer:
// the service may give one before it has all of it. A gRPC call without a message ends with an empty frame of
// content, as gRPC over HTTP/2 has it: there are servers, Node's among them, that wait for one for ever.
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
		go h.sendRest(b.bytes[n:], b.trailer, until)
	case !whole:
		_ = s.WriteTrailer(b.trailer, until) // what became of the stream, its answer tells
	}
	return nil
}

// sendRest sends what openWhole could not. The content may be closed by then, for the answer may have come.
func (h *http2Answer) sendRest(rest []byte, trailer []h1.Field, until time.Duration) {
	defer close(h.rest)
	whole := len(trailer) == 0
	if err := h.s.Write(rest, whole, until); err == nil && !whole {
		_ = h.s.WriteTrailer(trailer, until)
	}
}

// beginHTTP2 reads the head of the answer, and of a gRPC answer as much more as it takes to see whether it has a
// message.
func (a *answer) beginHTTP2() error {
	r := a.req
	for interim := 0; ; interim++ {
		head, err := a.awaitHeadHTTP2()
		switch {
		case err != nil:
			return err
		case head.Status >= 200:
			a.takeHead(head)
			if !r.rpc {
				return nil
			}
			return a.awaitVerdict(r.mayTryAgain() && a.mayRepeat())
		case interim >= maxInterim:
			return &badAnswerError{"more than 16 informational answers"}
		case a.alone && head.Status != http.StatusContinue:
			r.client.interim(head.Status, head.Fields)
		}
	}
}

// awaitHeadHTTP2 waits for the next head.
func (a *answer) awaitHeadHTTP2() (*h2.Head, error) {
	h := &a.h2
	for {
		now := core.Now()
		more := followBody(a, now)
		if now >= a.until {
			return nil, &timeLimitError{"no answer"}
		}
		until := a.until
		if !h.hooked || more {
			until = min(until, nextLook(a, now))
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
	case err == h2.ErrInterrupted, err == h2.ErrTimeUp && (a.cancelled.Load() || a.req.gone()):
		return errGone
	case err == h2.ErrTimeUp:
		a.listen()
		return nil
	}
	return err
}

// takeHead makes the head of the final answer what one over HTTP/1.1 would be.
func (a *answer) takeHead(head *h2.Head) {
	q, r := a.req, &a.resp
	fields := r.Fields[:0]
	for _, f := range head.Fields {
		if !f.Is("content-length") {
			fields = append(fields, f)
		}
	}
	*r = h1.Response{Status: head.Status, Minor: 1, Fields: fields, Length: -1, Announced: head.Length, KeepAlive: true}
	a.h2.take()
	switched(a, head)
	switch {
	case r.Status == http.StatusSwitchingProtocols:
		a.until = core.NoDeadline
	case string(q.Method) == http.MethodHead || bodiless(head.Status):
		r.Length = 0
	case a.h2.complete && len(a.h2.first) == 0 && len(a.h2.trailer) == 0:
		r.Length, r.Announced = 0, 0
	case head.Length > 0:
		r.Length = head.Length
		if !q.rpc && !announcesTrailer(fields) {
			a.h2.left = head.Length
		}
	}
	switch {
	case q.rpc:
		a.until = q.limit // the end of a stream cannot be foreseen, but how long its client waits
	case stays(fields):
		a.until = core.NoDeadline
	}
}

func announcesTrailer(fields []h1.Field) bool {
	for _, f := range fields {
		if f.Is("trailer") {
			return true
		}
	}
	return false
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
			h.firstAt = core.Now()
		}
		return data, nil
	}
	for !h.complete {
		now := core.Now()
		more := !a.req.rpc && followBody(a, now) // the time of gRPC does not end with the attempt's
		if now >= a.until && h.all {
			break // the client has all of it: only the end of the stream is late
		}
		if now >= a.until {
			return nil, &timeLimitError{"no end of the answer"}
		}
		until := a.until
		if !h.hooked || a.held(now) || more {
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
				return nil, a.because(err)
			}
		}
	}
	a.ended = true
	return nil, io.EOF
}

// passed counts a piece of the content that is about to go to the client, and reports whether it is the last one
// although the stream has not ended: the length is known, and no trailer is announced.
func (h *http2Answer) passed(data []byte) bool {
	if h.s == nil || h.left <= 0 {
		return false
	}
	h.left -= int64(len(data))
	h.all = h.left <= 0
	return h.all
}

// held reports whether the request holds a slot at a gate. It does not when its answer has turned out to be a stream,
// which lasts as long as it likes: what follows the first message at once is still one answer.
func (a *answer) held(now time.Duration) bool {
	in := a.req.in
	if in == nil || !in.open || !a.req.rpc {
		return false
	}
	if a.h2.firstAt != 0 && now-a.h2.firstAt >= glance {
		in.served(abate.Ignored)
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
	if h.hooked {
		a.req.client.unhook()
		h.hooked = false
	}
	h.leaveBody(a.body)
	if h.rest != nil {
		h.s.Reset(h2.Cancel)
		<-h.rest
		h.rest = nil
	}
	h.s.Close()
	h.s, h.first, h.trailer, h.complete = nil, nil, nil, false
}

// leaveBody ends the attempt's part of a body that is still coming: what comes from here on is for the next attempt.
func (h *http2Answer) leaveBody(b *content) {
	if f := b.feed; f != nil && h.s != nil && f.target == h.s {
		f.leave(h.s)
	}
}

// resetError is a stream that ended before its time. It is of the kind of a connection that was reset.
type resetError struct{ *h2.StreamError }

func (e resetError) Unwrap() error { return e.StreamError }

func (e resetError) Is(target error) bool { return target == syscall.ECONNRESET }
