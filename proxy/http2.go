package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// How many streams a client may have open on one connection. A stream takes about 16 KB while it lasts.
const (
	streamsOfOurs      = 5000 // the programs beside a sidecar
	streamsOfStrangers = 1000
)

// serveHTTP2 goes on with a client that turned out to speak HTTP/2, until its connection ends.
func (c *clientConn) serveHTTP2() {
	c.sock.nc.SetReadDeadline(time.Time{})
	begun := bytes.Clone(c.sock.in.unread())
	c.sock.in.put()
	c.sock.lends.records = nil // frames tell what has begun
	config := *c.inside
	config.ExtendedConnect = true
	if c.from.listen != "" || c.plane.config.Gateway {
		config.MaxStreams = streamsOfStrangers
	}
	conn := h2.NewServer(c.sock.nc, &config, func(s *h2.Stream) { serveStream(c.plane, s, &c.from) })
	c.http2.Store(conn)
	if c.draining.Load() { // looked at after it can be found: dismiss looks the other way round
		conn.Drain()
	}
	_ = conn.Serve(begun) // whatever ended it, the client is gone
}

// stream is a request of a client that speaks HTTP/2: the client of its exchange. It is used again.
type stream struct {
	x       exchange
	h2      *h2.Stream
	from    *origin
	text    []byte     // the head as over HTTP/1.1: x.req lies in it
	fields  []h2.Field // of the answer
	whole   []byte     // the content, if all of it has come with the head
	data    []byte     // of it, read and not used
	read    atomic.Bool
	failed  bool
	ended   bool          // the answer is
	bare    bool          // the answer has no content
	expects bool          // Expect: 100-continue
	handed  bool          // it has become a tunnel, which ends it
	asked   []byte        // the protocol that an extended CONNECT asks for; nil for all others
	loan    *holding.Loan // of the slot at a gate; nil while none is held

	hooked bool       // left is called when the client leaves
	waits  *h2.Stream // what it is waiting for then
	left   func()     // made once
}

var streams = sync.Pool{New: func() any {
	st := new(stream)
	st.left = func() { st.waits.Interrupt() }
	st.x.renew()
	return st
}}

// keptText is how much memory for heads a stream keeps for the next.
const keptText = 4 << 10

func serveStream(p *plane, s *h2.Stream, from *origin) {
	st := streams.Get().(*stream)
	st.h2, st.from = s, from
	st.data, st.failed, st.ended, st.bare, st.handed, st.asked = nil, false, false, false, false, nil
	whole := st.answer(p)
	st.unhook()
	switch {
	case st.handed:
	case !st.ended:
		s.Reset(h2.InternalError) // the client must not take the answer for complete
	case !st.read.Load() && !st.x.req.rpc:
		st.linger()
	}
	if !whole {
		return
	}
	st.h2, st.from, st.x.req.client, st.data, st.whole = nil, nil, nil, nil, nil
	if cap(st.text) > keptText {
		st.text = nil
	}
	clear(st.fields[:cap(st.fields)])
	streams.Put(st)
}

// The rest of a request that is answered without being read: how long it is waited for, and how much of it is read.
const (
	restTime = 50 * time.Millisecond
	restMost = 64 << 10
)

// skipContent reads away what the client is just sending, before it gets an answer that does not depend on that:
// there are clients, curl 7.88 among them, that do not get over an answer in the middle of their request.
func (st *stream) skipContent() {
	until := later(core.Now(), restTime)
	for n := 0; n < restMost && !st.read.Load(); {
		data, err := st.h2.Next(until)
		if n += len(data); err == io.EOF {
			st.read.Store(true)
		} else if err != nil {
			return
		}
	}
}

// linger reads away what the client still sends behind its answer, as linger does over HTTP/1.1: a reset may overtake
// the answer in clients that are still sending. What is left then is refused by one, without error (RFC 9113 §8.1).
func (st *stream) linger() {
	st.h2.ReadOn()
	began := core.Now()
	for read, now := 0, began; now < began+lingerTime && (read < lingerMost ||
		now < began+lingerLeast); now = core.Now() {
		data, err := st.h2.Next(now + min(lingerStill, began+lingerTime-now))
		if read += len(data); err != nil {
			return
		}
	}
}

// answer is false after a panic: what is left of the exchange may be in any state.
func (st *stream) answer(p *plane) (whole bool) {
	x := &st.x
	x.req.plane, x.req.client = p, st
	defer func() {
		if what := recover(); what != nil {
			st.failed, st.ended = true, false
			x.contain(what)
		}
	}()
	if bad := st.readHead(); bad != nil {
		x.refuseUnread(bad)
	} else {
		x.serve()
	}
	return true
}

// readHead reads the request, as strictly as one over HTTP/1.1: it may go on over that.
func (st *stream) readHead() *h1.Error {
	head, q := st.h2.Head(), &st.x.req.Request
	data, complete := st.h2.Buffered()
	st.read.Store(complete && len(data) == 0)
	if st.whole = nil; complete {
		st.whole = data
	}
	trailers, method := false, head.Method
	if len(head.Protocol) > 0 {
		if string(head.Protocol) != websocket {
			return errProtocol
		}
		method = methodGet
	}
	b := append(st.text[:0], method...)
	target := head.Path
	if len(target) == 0 { // CONNECT
		target = head.Authority
	}
	b = append(append(b, ' '), target...)
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), head.Authority...), "\r\n"...)
	st.expects = false
	for i, f := range head.Fields {
		switch {
		case f.Is("content-length"), f.Is("host"), len(head.Protocol) > 0 && f.Is("sec-websocket-key"):
		case f.Is("te"):
			trailers = true // h2 takes nothing else there
		default:
			st.expects = st.expects || f.Is("expect")
			b = h1.AppendFields(b, head.Fields[i:i+1])
		}
	}
	if len(head.Protocol) > 0 {
		b = st.askUpgrade(b, head)
	}
	st.text = append(b, "\r\n"...)
	n, bad := h1.HeadEnd(st.text, 0)
	if bad == nil && n != len(st.text) {
		bad = &h1.Error{Status: http.StatusBadRequest,
			Problem: "a field, the path or the authority of the request contains a line end"}
	}
	if bad == nil {
		bad = q.Parse(st.text)
	}
	q.Length, q.Trailers = head.Length, trailers
	if st.asked != nil { // what comes is no content
		q.Length = 0
		st.read.Store(true)
	}
	if st.read.Load() && (q.Length <= 0 || string(q.Method) == http.MethodHead) {
		q.Length = 0
	}
	q.Chunked = q.Length < 0
	q.Expect = st.expects && q.Length != 0
	return bad
}

func (st *stream) gone() bool { return st.h2.Gone() }

func (st *stream) context() context.Context { return context.Background() }

func (st *stream) complete() bool { return st.read.Load() }

func (st *stream) broken() bool { return st.failed } // writing tells

func (st *stream) multiplexed() bool { return true }

func (st *stream) abort() { st.failed = true }

func (st *stream) stop() { st.h2.StopReading() }

func (st *stream) trailer() []h1.Field { return inTrailer(st.h2.Trailer()) }

func (st *stream) origin() *origin { return st.from }

// takeContent returns the content if all of it has come. It stays where it is.
func (st *stream) takeContent() ([]byte, bool) {
	if st.whole == nil || st.read.Load() {
		return nil, st.read.Load()
	}
	st.read.Store(true)
	return st.whole, true
}

// Read reads the content. That of a client that sends nothing for too long is given up, but a gRPC stream may have
// nothing to say for hours.
func (st *stream) Read(p []byte, until time.Duration) (int, error) {
	data, err := st.next(until)
	n := copy(p, data)
	st.data = data[n:]
	return n, err
}

// next is Read without a copy: what it returns is valid until the next call.
func (st *stream) next(until time.Duration) ([]byte, error) {
	if data := st.data; len(data) > 0 {
		st.data = nil
		return data, nil
	}
	if st.read.Load() {
		return nil, io.EOF
	}
	if !st.x.req.rpc || st.x.body.kind == toHold {
		until = min(until, later(core.Now(), st.x.req.plane.config.StallTimeout))
	}
	data, err := st.receive(until)
	switch err {
	case io.EOF:
		st.read.Store(true)
	case h2.ErrTimeUp:
		err = errSlowBody
	case h2.ErrInterrupted:
		err = errStopped
	}
	return data, err
}

// receive takes what has come, or waits for it.
func (st *stream) receive(until time.Duration) ([]byte, error) {
	if st.loan == nil {
		return st.h2.Next(until)
	}
	if data, complete := st.h2.Take(); len(data) > 0 {
		return data, nil
	} else if complete {
		return nil, io.EOF
	}
	st.loan.Wait()
	defer st.loan.Resume()
	return st.h2.Next(until)
}

// hook has waits for up end when the client leaves.
func (st *stream) hook(up *h2.Stream) bool {
	st.waits, st.hooked = up, true
	st.h2.OnGone(st.left)
	return true
}

func (st *stream) unhook() {
	if st.hooked {
		st.hooked = false
		st.h2.OnGone(nil)
		st.waits = nil
	}
}

func (st *stream) interim(status int, fields []h1.Field) {
	_ = st.h2.Inform(status, fields) // if the client is gone, begin finds out
}

func (st *stream) begin(a *head) {
	st.fields = appendLines(append(st.fields[:0], a.fields...), a.extra)
	length := a.length
	st.bare = string(st.x.req.Method) == http.MethodHead || bodiless(a.status)
	end := st.bare || length == 0
	if bodiless(a.status) || end && st.x.req.rpc {
		length = -1
	}
	if st.loan != nil && st.h2.Crowded() {
		st.loan.Wait()
		defer st.loan.Resume()
	}
	st.done(st.h2.WriteHead(a.status, st.fields, length, end), end)
}

func (st *stream) lend(loan *holding.Loan) { st.loan = loan }

// done notes how a write went, which may have been the last.
func (st *stream) done(err error, end bool) {
	st.failed = st.failed || err != nil
	st.ended = st.ended || end && err == nil
}

func (st *stream) write(p []byte) {
	if st.bare || st.failed || st.ended {
		return
	}
	if st.loan != nil {
		n, err := st.h2.WriteNow(p)
		if p = p[n:]; err != nil || len(p) == 0 {
			st.done(err, false)
			return
		}
		st.loan.Wait()
		defer st.loan.Resume()
	}
	st.done(st.h2.Write(p, false, core.NoDeadline), false)
}

func (st *stream) flush() { st.h2.Flush() }

// Nothing else can be done with the connection of a stream.
func (st *stream) sink(time.Duration) *net.TCPConn { return nil }

func (st *stream) end(trailer []h1.Field) {
	switch {
	case st.ended || st.failed:
	case len(trailer) > 0:
		st.done(st.h2.WriteTrailer(trailer, core.NoDeadline), true)
	default:
		st.done(st.h2.Write(nil, true, core.NoDeadline), true)
	}
}
