package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
)

// http2Answer is the part of an answer that came over HTTP/2.
type http2Answer struct {
	resp   *http.Response
	body   *sharedBody
	ctx    context.Context // its cause says why the attempt ended before its answer did
	cancel context.CancelCauseFunc
	limit  *time.Timer // of the attempt, nil for none
	watch  *time.Timer // of the client, nil if ctx knows when it leaves
	unhook func() bool // ctx from body
	buf    *[]byte
}

// transport makes the endpoint's connections that speak HTTP/2, at its first use.
func (e *endpoint) transport(c *Config) *http.Transport {
	e.once.Do(func() {
		protocols := new(http.Protocols)
		t := &http.Transport{
			DisableCompression: true, IdleConnTimeout: c.UpstreamIdleTimeout, TLSHandshakeTimeout: c.ConnectTimeout, Protocols: protocols,
			DialContext: (&net.Dialer{Timeout: c.ConnectTimeout}).DialContext, MaxResponseHeaderBytes: maxHead,
			HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
		}
		if e.tls != nil {
			t.TLSClientConfig = e.tls.Clone()
			t.TLSClientConfig.NextProtos = nil
			protocols.SetHTTP2(true)
		} else {
			protocols.SetUnencryptedHTTP2(true)
		}
		e.h2.Store(t)
	})
	return e.h2.Load()
}

// sendHTTP2 is the attempt over HTTP/2, with net/http.
func (x *exchange) sendHTTP2(ctx context.Context, a *answer, n int) error {
	e := a.endpoint()
	t := e.transport(&x.proxy.config)
	h := x.http2Answer(a)
	defer context.AfterFunc(ctx, func() { // a copy has won, before the head of this one was there
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // limit sees to that
			h.cancel(errGone)
		}
	})()
	var conns atomic.Int32
	traced := httptrace.WithClientTrace(h.ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { conns.Add(1) }})
	resp, err := t.RoundTrip(x.http2Request(traced, h, e, n, a.until))
	a.sent = conns.Load() > 0
	if hidden := conns.Load() - 1; hidden > 0 { // net/http sends again by itself when a kept connection turns out to be dead
		x.route.Guard.CountHiddenRetries(int(hidden))
	}
	if err != nil {
		err = h.because(err)
		h.close()
		if h.body != nil && h.body.late && x.req.Length > 0 && timedOut(err) {
			x.body.err = errSlowBody // see upload.late
		}
		x.body.note(h)
		if x.gone() {
			return errGone
		}
		return err
	}
	h.resp, a.h2 = resp, h
	if x.body.kind == streamed { // else copies may be under way
		x.body.taken = true
	}
	if h.limit != nil && (x.grpc() || stays(fieldsOf(resp.Header))) { // the end of a gRPC call cannot be foreseen, its head can
		h.limit.Stop()
	}
	a.resp = h1.Response{Status: resp.StatusCode, Minor: 1, Fields: append(fieldsOf(resp.Header), announced(resp.Trailer)...), Length: resp.ContentLength, Announced: resp.ContentLength, KeepAlive: true}
	if x.bodilessTo(resp) {
		a.resp.Length = 0
	}
	return nil
}

func (x *exchange) bodilessTo(resp *http.Response) bool {
	return string(x.req.Method) == http.MethodHead || bodiless(resp.StatusCode)
}

// http2Answer begins an answer with the attempt's time limit as its context, which ends too when the client leaves. It
// lasts until the answer is released.
func (x *exchange) http2Answer(a *answer) *http2Answer {
	h, client := new(http2Answer), x.client.context()
	if x.keyInUse() != nil { // it may go on for a while
		client = context.Background()
	}
	h.ctx, h.cancel = context.WithCancelCause(client)
	if a.until != abate.NoDeadline {
		h.limit = time.AfterFunc(a.until-abate.Now(), func() { h.cancel(&timeLimitError{"no answer"}) })
	}
	if client.Done() == nil { // a client of HTTP/1.1 has to be asked
		h.watch = watch(h.ctx, x.gone, func() { h.cancel(errGone) })
	}
	return h
}

func (x *exchange) http2Request(ctx context.Context, h *http2Answer, e *endpoint, n int, until time.Duration) *http.Request {
	u := &url.URL{Scheme: "http", Host: e.addr, Opaque: string(x.target(e))} // Opaque is sent as it is
	if e.tls != nil {
		u.Scheme = "https"
	}
	req := (&http.Request{Method: string(x.req.Method), URL: u, Host: e.host, ContentLength: x.req.Length}).WithContext(ctx)
	req.Header = http.Header{"User-Agent": {""}} // else net/http writes its own
	if x.keepsHost() {
		req.Host = string(x.req.Host)
	}
	if strings.HasPrefix(u.Opaque, "//") {
		u.Opaque = "//" + req.Host + u.Opaque
	}
	for _, f := range x.req.Fields {
		switch {
		case ours(f):
		case f.Is("user-agent"):
			req.Header.Set("User-Agent", string(f.Value))
		default:
			req.Header.Add(string(f.Name), string(f.Value))
		}
	}
	for line := range bytes.Lines(x.appendOwn(nil, n, until)) {
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(": "))
		req.Header.Add(string(name), string(value))
	}
	if x.req.Trailers {
		req.Header.Set("Te", "trailers")
	}
	if x.body.kind != noContent {
		h.body = x.body.share(req)
		req.Body = h.body
		h.unhook = context.AfterFunc(ctx, func() { _ = h.body.Close() }) // net/http does not look at ctx while it reads a body
	}
	return req
}

// because is why the answer ended: the attempt's time was up, or the client has left, else err.
func (h *http2Answer) because(err error) error {
	if cause := context.Cause(h.ctx); cause != nil {
		return cause
	}
	return err
}

// next is answer.next.
func (h *http2Answer) next() ([]byte, error) {
	if h.buf == nil {
		h.buf = buffers.Get().(*[]byte)
	}
	for {
		n, err := h.resp.Body.Read(*h.buf)
		if n > 0 {
			return (*h.buf)[:n], nil
		}
		if err == io.EOF {
			return nil, err
		}
		if err != nil {
			return nil, h.because(err)
		}
	}
}

func (h *http2Answer) trailer() []h1.Field { return trailerOf(h.resp.Trailer) }

func (h *http2Answer) close() {
	for _, t := range [...]*time.Timer{h.limit, h.watch} {
		if t != nil {
			t.Stop()
		}
	}
	if h.unhook != nil {
		h.unhook()
	}
	h.cancel(nil)
	if h.resp != nil {
		h.resp.Body.Close()
	}
	if h.body != nil {
		h.body.Close()
	}
	if h.buf != nil {
		buffers.Put(h.buf)
		h.buf = nil
	}
}

// sharedBody is a request's body that net/http reads on a goroutine of its own, perhaps after the attempt has ended: after
// Close nobody reads from the client any more.
type sharedBody struct {
	mu     sync.Mutex // held while reading
	memory bytes.Reader
	x      *exchange   // whose client it comes from; nil when all is in memory
	begun  atomic.Bool // something has been read from the client
	asking atomic.Bool // the client is waited for
	late   bool        // and was so at the end
	closed atomic.Bool
	end    sync.Once
	err    error // the client did not send it
	req    *http.Request
}

// share makes the body of an attempt.
func (b *content) share(req *http.Request) *sharedBody {
	s := &sharedBody{req: req}
	req.Trailer = http.Header{} // filled in at the end of the body
	s.memory.Reset(b.bytes)
	if b.kind == streamed {
		s.memory.Reset(append([]byte(nil), b.bytes...))
		s.x = b.x
		if b.x.req.Expect { // net/http would not pass the service's 100 on
			b.x.client.interim(http.StatusContinue, nil)
			b.x.req.Expect = false
		}
		return s
	}
	s.trailers(b.trailer)
	return s
}

// note keeps what became of the client's body in an attempt that failed, and has been closed.
func (b *content) note(h *http2Answer) {
	if h.body == nil || b.kind != streamed {
		return
	}
	b.taken = h.body.begun.Load()
	h.body.mu.Lock()
	defer h.body.mu.Unlock()
	if h.body.err != nil {
		b.err = h.body.err
	}
}

func (s *sharedBody) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memory.Len() > 0 || s.x == nil {
		if s.closed.Load() {
			return 0, errStopped
		}
		return s.memory.Read(p)
	}
	s.begun.Store(true)
	if s.closed.Load() { // looked at after begun is set: Close looks the other way round
		return 0, errStopped
	}
	s.asking.Store(true)
	n, err := s.x.client.Read(p, abate.NoDeadline)
	s.asking.Store(false)
	if err == io.EOF {
		s.trailers(s.x.trailer())
	} else if err != nil && !errors.Is(err, errStopped) && !s.closed.Load() {
		s.err = err
	}
	return n, err
}

// trailers gives the request its trailer fields. net/http sends them after the body.
func (s *sharedBody) trailers(fields []h1.Field) {
	for _, f := range fields {
		s.req.Trailer.Add(string(f.Name), string(f.Value))
	}
}

// Close may be called more than once.
func (s *sharedBody) Close() error {
	s.end.Do(func() {
		s.closed.Store(true)
		s.late = s.asking.Load()
		if s.begun.Load() && !s.x.client.complete() {
			s.x.client.stop()
		}
	})
	s.mu.Lock() // until nobody reads any more
	defer s.mu.Unlock()
	return nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
