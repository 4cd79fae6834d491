package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/balance"
	"github.com/abate-go/abate/proxy/h1"
)

// answer is what one attempt brings: the head of a response, and its content as it comes.
type answer struct {
	x      *exchange
	fleet  *fleet
	chosen int // the endpoint
	picked bool
	result balance.Result
	until  time.Duration // the end of the attempt's time, reading the answer included
	sent   bool          // a byte of the request may have reached the service
	alone  bool          // it has no copies beside it
	told   telling       // with the request
	failed bool          // of copies: it is none
	resp   h1.Response

	conn    *upstreamConn // HTTP/1.1
	berthOf *origin       // whose room for that it has; its client may be another's by the end
	left    int64         // of Content-Length; -1 for chunks, or until the connection ends
	decoder h1.Chunked
	ended   bool // all content has been read
	keeping bool // the content goes into the store of good answers too

	h2        http2Answer   // HTTP/2
	verdict   verdict       // of gRPC
	deadline  time.Duration // of the gRPC call, as the service was told it
	broke     error         // why the client did not get all of it
	died      bool          // for which the client has done nothing
	cancelled atomic.Bool   // a copy has won
}

func (a *answer) reset() {
	fields, sent, lines := a.resp.Fields[:0], a.h2.head.Fields[:0], a.h2.lines[:0]
	*a = answer{}
	a.resp.Fields, a.h2.head.Fields, a.h2.lines = fields, sent, lines
}

func (a *answer) endpoint() *endpoint { return a.fleet.endpoints[a.chosen] }

// begin points a at the content after the head.
func (a *answer) begin() {
	a.left = a.resp.Length
	a.ended = a.left == 0
	if a.resp.Chunked {
		a.decoder.Reset()
	}
	if stays(a.resp.Fields) {
		a.until = abate.NoDeadline
	}
}

// stays tells whether an answer is a stream of events, which is meant to last: the attempt's time ends with its head.
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
				if err == io.EOF && !a.resp.Chunked && a.left < 0 {
					break
				}
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return nil, err
			}
		}
		data, err := a.decode(in)
		if err != nil || len(data) > 0 {
			return data, err
		}
	}
	a.ended = true
	return nil, io.EOF
}

// decode takes the content that has been read out of in.
func (a *answer) decode(in *input) ([]byte, error) {
	u := in.unread()
	if a.resp.Chunked {
		data, n, done, bad := a.decoder.Next(u)
		if bad != nil {
			return nil, &badAnswerError{bad.Problem}
		}
		in.take(n)
		a.ended = done
		return data, nil
	}
	if a.left >= 0 {
		u = u[:min(int64(len(u)), a.left)]
		a.left -= int64(len(u))
		a.ended = a.left == 0
	}
	in.take(len(u))
	return u, nil
}

// pending tells whether more of the content is here already, so that it can go out together.
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
	case a.resp.Chunked:
		return a.decoder.Trailer()
	}
	return nil
}

// release ends the attempt: the endpoint is told how it went, and the connection is kept if it is fit for another request.
// drain has a short rest of an unwanted answer read for that.
func (a *answer) release(now time.Duration, drain bool) {
	a.disconnect(now, drain)
	if a.picked {
		a.picked = false
		a.fleet.balancer.Done(a.chosen, now, a.result)
	}
}

// disconnect is release's part about the connection.
func (a *answer) disconnect(now time.Duration, drain bool) {
	a.closeHTTP2()
	c := a.conn
	if c == nil {
		a.unberth()
		return
	}
	defer a.unberth()
	a.conn = nil
	if drain && !a.ended && a.resp.Status != 0 {
		a.conn = c
		a.drain()
		a.conn = nil
	}
	whole := a.ended && a.resp.KeepAlive && a.resp.Status != 101 && !c.cut && len(c.in.unread()) == 0
	if u := a.x.body.upload; u != nil && u.to == c {
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
	a.endpoint().pool.put(c, now)
}

const (
	// drainLimit is how much of an unwanted answer is read so that its connection can be used again. Reading so much is
	// cheaper than a new connection, more is not.
	drainLimit = 64 << 10
	// drainTime is how long the next attempt may be held up by that.
	drainTime = 50 * time.Millisecond
)

func (a *answer) drain() {
	if a.left > drainLimit || a.resp.Status == 101 || a.left < 0 && !a.resp.Chunked {
		return
	}
	a.until = min(a.until, later(abate.Now(), drainTime))
	for n := 0; n <= drainLimit; {
		data, err := a.next()
		if n += len(data); err != nil {
			return
		}
	}
}

// sendUnder makes attempt n with a, as far as the head of the answer. One that may have copies beside it, which is not
// alone, ends with ctx.
func (x *exchange) sendUnder(ctx context.Context, a *answer, n int, until time.Duration, alone bool) error {
	a.x, a.fleet, a.until, a.alone = x, x.fleet, until, alone
	if err := x.body.fill(until); err != nil {
		return err
	}
	if n > 1 && x.gone() {
		return errGone
	}
	now := abate.Now()
	a.pick(now)
	e := a.endpoint()
	if e.scheme == "h2c" || x.rpc {
		return x.sendHTTP2(ctx, a, n)
	}
	if err := a.berth(); err != nil {
		return err
	}
	for {
		c := e.pool.get()
		kept := c != nil
		if !kept {
			var err error
			if c, err = e.connect(ctx, &x.plane.out, now, until); err != nil {
				return err
			}
		}
		a.conn = c
		err := a.roundTripUnder(ctx, n)
		if err != errStale || !kept {
			return err
		}
		a.conn = nil
		c.nc.Close()
		c.in.put()
	}
}

// roundTripUnder is roundTrip for an attempt that ends with ctx, unless it is alone.
func (a *answer) roundTripUnder(ctx context.Context, n int) error {
	if a.alone {
		return a.roundTrip(n)
	}
	c := a.conn
	defer context.AfterFunc(ctx, func() {
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // read sees by itself that the time is up
			a.cancelled.Store(true)
			c.nc.SetReadDeadline(time.Unix(1, 0))
		}
	})()
	return a.roundTrip(n)
}

// pass gives the answer to the client.
func (x *exchange) pass(a *answer, extra []byte) {
	x.takeHead(a)
	if a.resp.Status == http.StatusSwitchingProtocols {
		x.tunnel(a)
		return
	}
	if x.rpc {
		extra = x.addTail(a, append(extra, x.closing(a)...))
	}
	length := a.resp.Length
	if length == 0 {
		length = a.resp.Announced // to HEAD, and of 304: what would have come, if the service says so
	}
	keep, arrived := x.record(a)
	key := x.keyInUse()
	a.keeping = keep != nil || key != nil
	if a.resp.Length == 0 && x.client.multiplexed() { // the head is all of it: who has that may ask again
		keep.Commit(arrived)
		x.whole(a, key)
	}
	h := head{status: a.resp.Status, reason: a.resp.Reason, fields: a.resp.Fields, length: length, extra: extra}
	if key == nil {
		x.respond(h)
	} else if !x.beginKeyed(a, key, h) {
		keep.Drop()
		return
	}
	if length != 0 && !a.pending() { // an event may be long in coming, and a client that sends and receives waits for the head
		x.client.flush()
	}
	for !x.client.broken() || key != nil {
		data, err := x.more(a)
		if err == io.EOF {
			keep.Commit(arrived)
			x.close(a, key)
			return
		}
		if err != nil {
			keep.Drop()
			a.broke, a.died = err, x.blames(err)
			x.reason = "the answer broke off: " + err.Error()
			x.breakOff(a, err)
			return
		}
		x.bytes += int64(len(data))
		keep.Write(data)
		key.write(data)
		if a.ended {
			keep.Commit(arrived) // before the client has all of it, and may ask again
			x.whole(a, key)
		}
		if x.client.write(data); !a.pending() {
			x.client.flush()
		}
	}
	keep.Drop()
	if x.reason == "" {
		x.reason = "the client left before the end of the answer"
	}
}

// blames tells whether the service is to blame for an answer that broke off with err.
func (x *exchange) blames(err error) bool {
	return !x.rpc && !errors.Is(err, errGone) && !errors.Is(err, errStalls) && !x.client.broken() && !x.client.gone()
}

// close ends the answer, which has come to its end.
func (x *exchange) close(a *answer, key *keyed) {
	x.conclude(a)
	x.whole(a, key)
	if x.endKeyed(key) {
		return
	}
	trailer := x.ending(a)
	if a.conn != nil && len(trailer) == 0 && x.client.multiplexed() {
		a.disconnect(abate.Now(), false) // the client's next request, which may come at once, can have the connection
	}
	x.client.end(trailer)
}

// takeHead looks at the head of the answer, and takes off what was for the proxy.
func (x *exchange) takeHead(a *answer) {
	switch {
	case x.in != nil:
		x.settle(a)
	case x.owner:
		a.resp.Fields = withoutMade(a.resp.Fields)
	}
}

// more returns the next piece of the content, none if it has gone to the client already.
func (x *exchange) more(a *answer) ([]byte, error) {
	if x.bytes >= widenFrom && a.conn != nil {
		a.conn.in.widen()
	}
	if moved, err := x.splice(a); moved || err != nil {
		return nil, err
	}
	return a.next()
}

// head is the head of an answer to a client.
type head struct {
	status int
	reason []byte // nil for the usual one
	fields []h1.Field
	length int64    // of the content, -1 when not known
	extra  []byte   // more fields, as lines
	in     *arrival // whose gate adds fields of its own; nil for none
}

// respond begins the answer.
func (x *exchange) respond(h head) {
	x.status = h.status
	if sending := x.fleet != nil && x.body.taken; !sending && !x.client.complete() {
		x.client.skipContent() // what is here already need not end the connection
	}
	h.extra = x.appendReport(h.extra, &h)
	x.head, x.head.in = h, x.in
	x.client.begin(&x.head)
}
