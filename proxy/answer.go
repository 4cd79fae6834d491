package proxy

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/tracing"
)

// answer is what one attempt brings: the head of a response, and its content as it comes.
type answer struct {
	req      *request
	body     *content
	tries    *tries
	to       *endpoint
	begun    balance.Attempt // to it
	picked   bool            // it has not ended
	dated    time.Duration   // since when the time is the endpoint's
	result   balance.Result
	until    time.Duration // the end of the attempt's time, reading the answer included
	sent     bool          // a byte of the request may have reached the service
	alone    bool          // it has no copies beside it
	looked   bool          // how far its client is
	head     requestHead
	call     *core.Call    // whose only attempt it is; nil for none
	patience time.Duration // for the service, from when it has the request; 0: without limit
	callEnd  time.Duration // the end of the call's time
	failed   bool          // of copies: it is none
	resp     h1.Response

	conn    *upstreamConn // HTTP/1.1
	slot    upstreamSlot
	frame   framing
	ended   bool // all content has been read
	keeping bool // the content goes into the store of good answers too

	h2        http2Answer // HTTP/2
	verdict   verdict     // of gRPC
	broke     error       // why the client did not get all of it
	died      bool        // for which the client has done nothing
	cancelled atomic.Bool // a copy has won
	rests     bool        // its call waits for another attempt: until is how much time is left
	span      attemptSpan
}

// begin points a at the content after the head.
func (a *answer) begin() {
	a.frame.begin(&a.resp)
	a.ended = a.frame.ended
	if stays(a.resp.Fields) {
		a.until = core.NoDeadline
	}
}

// stays reports whether an answer is a stream of events, which is meant to last: the attempt's time ends with its head.
func stays(fields []h1.Field) bool {
	for _, f := range fields {
		if f.Is("content-type") {
			return len(f.Value) >= len(eventStream) && bytes.EqualFold(f.Value[:len(eventStream)], eventStream)
		}
	}
	return false
}

var eventStream = []byte("text/event-stream")

// next returns the next piece of the content, which is valid until the next call, and io.EOF after the last.
func (a *answer) next() ([]byte, error) {
	if a.h2.s != nil {
		return a.nextHTTP2()
	}
	for !a.ended {
		in := &a.conn.in
		if in.r == in.w {
			if err := a.read(); err != nil {
				if err == io.EOF && !a.frame.chunked && a.frame.left < 0 {
					break
				}
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return nil, err
			}
		}
		data, err := a.frame.decode(in)
		a.ended = a.frame.ended
		if err != nil || len(data) > 0 {
			return data, err
		}
	}
	a.ended = true
	return nil, io.EOF
}

// pending reports whether more of the content is here already, so that it can go out together.
func (a *answer) pending() bool {
	if a.h2.s != nil {
		return a.h2.pending()
	}
	return a.ended || a.conn.in.r < a.conn.in.w
}

func (a *answer) trailer() []h1.Field {
	switch {
	case a.h2.s != nil:
		return a.h2.trailer
	case a.frame.chunked:
		return a.frame.decoder.Trailer()
	}
	return nil
}

// release ends the attempt: the endpoint is told how it went, and the connection is kept if it is fit for another
// request. drain has a short rest of an unwanted answer read for that.
func (a *answer) release(now time.Duration, drain bool) {
	if a.span.id != (tracing.SpanID{}) {
		endSpan(a, now)
	}
	a.disconnect(now, drain)
	a.settle(now)
}

// rest stops the attempt's time, while its call waits for another one. The endpoint hears of its end.
func rest(a *answer, now time.Duration) {
	a.settle(now)
	a.rests, a.span.over = true, now
	if a.until != core.NoDeadline {
		a.until -= now
	}
}

// wake has the time of an attempt go on that has rested.
func wake(a *answer, now time.Duration) {
	if a.rests && a.until != core.NoDeadline {
		a.until = later(now, a.until)
	}
	a.rests = false
}

// settle tells the endpoint how the attempt went, the first time.
func (a *answer) settle(now time.Duration) {
	if a.picked {
		a.picked = false
		a.begun.Done(now, a.result)
	}
}

// disconnect is release's part about the connection.
func (a *answer) disconnect(now time.Duration, drain bool) {
	a.closeHTTP2()
	c := a.conn
	if c == nil {
		a.slot.leave()
		return
	}
	defer a.slot.leave()
	a.conn = nil
	if drain && !a.ended && a.resp.Status != 0 {
		a.conn = c
		a.drain()
		a.conn = nil
	}
	whole := a.ended && a.resp.KeepAlive && a.resp.Status != 101 && !c.cut && len(c.in.unread()) == 0 &&
		a.to.fresh(c)
	if u := a.body.upload; u != nil && u.to == c {
		u.stop()
		whole = whole && u.done.Load()
	}
	c.in.release()
	if !whole {
		c.nc.Close()
		c.in.put()
		return
	}
	if c.hurried {
		c.hurried = false
		c.nc.SetWriteDeadline(time.Time{})
	}
	a.to.pool.put(c, now)
}

const (
	// drainLimit is how much of an unwanted answer is read so that its connection can be used again. Reading so much is
	// cheaper than a new connection, more is not.
	drainLimit = 64 << 10
	// drainTime is how long the next attempt may be held up by that.
	drainTime = 50 * time.Millisecond
)

func (a *answer) drain() {
	if a.frame.left > drainLimit || a.resp.Status == 101 || a.frame.left < 0 && !a.frame.chunked {
		return
	}
	a.until = min(a.until, later(core.Now(), drainTime))
	for n := 0; n <= drainLimit; {
		data, err := a.next()
		if n += len(data); err != nil {
			return
		}
	}
}
