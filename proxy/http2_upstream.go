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
	cancel context.CancelFunc
	ctx    context.Context
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
		e.h2 = t
	})
	return e.h2
}

// sendHTTP2 is the attempt over HTTP/2, with net/http.
func (x *exchange) sendHTTP2(ctx context.Context, a *answer, n int) error {
	e := a.endpoint()
	t := e.transport(&x.proxy.config)
	if t == nil {
		return net.ErrClosed // the endpoint has just left the policy file
	}
	ctx, cancel := x.attemptContext(ctx, a)
	h := &http2Answer{cancel: cancel, ctx: ctx}
	var conns atomic.Int32
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { conns.Add(1) }})
	req, err := x.http2Request(traced, h, e, n, a.until)
	if err != nil {
		cancel()
		return err
	}
	resp, err := t.RoundTrip(req)
	a.sent = conns.Load() > 0
	if hidden := conns.Load() - 1; hidden > 0 { // net/http sends again by itself when a kept connection turns out to be dead
		x.route.Guard.CountHiddenRetries(int(hidden))
	}
	if err != nil {
		h.close()
		x.body.note(h)
		switch {
		case x.client.gone():
			return errGone
		case errors.Is(err, context.DeadlineExceeded):
			return &timeLimitError{"no answer"}
		}
		return err
	}
	h.resp, a.h2 = resp, h
	a.resp = h1.Response{Status: resp.StatusCode, Minor: 1, Fields: fieldsOf(resp.Header), Length: resp.ContentLength, Announced: resp.ContentLength, KeepAlive: true}
	if x.bodilessTo(resp) {
		a.resp.Length = 0
	}
	return nil
}

func (x *exchange) bodilessTo(resp *http.Response) bool {
	return string(x.req.Method) == http.MethodHead || bodiless(resp.StatusCode)
}

// attemptContext is the attempt's time limit as a context, which ends too when the client leaves. It lasts until the answer
// is released.
func (x *exchange) attemptContext(parent context.Context, a *answer) (context.Context, context.CancelFunc) {
	if a.alone {
		parent = x.client.context()
	}
	ctx, cancel := context.WithCancel(parent)
	if a.until != abate.NoDeadline && !x.grpc() {
		ctx, cancel = context.WithDeadline(parent, x.proxy.began.time(a.until))
	}
	if parent.Done() != nil {
		return ctx, cancel
	}
	client := x.client
	go func() { // a client of HTTP/1.1 has to be asked
		tick := time.NewTicker(glance)
		defer tick.Stop()
		for !client.gone() {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel()
	}()
	return ctx, cancel
}

func (x *exchange) http2Request(ctx context.Context, h *http2Answer, e *endpoint, n int, until time.Duration) (*http.Request, error) {
	u, err := url.ParseRequestURI(string(x.appendTarget(nil, e)))
	if err != nil {
		return nil, &badAnswerError{"the request's target cannot be sent over HTTP/2: " + err.Error()}
	}
	u.Scheme, u.Host = "http", e.addr
	if e.tls != nil {
		u.Scheme = "https"
	}
	req := (&http.Request{Method: string(x.req.Method), URL: u, Host: e.host, ContentLength: x.req.Length, Header: http.Header{}}).WithContext(ctx)
	if x.proxy.config.Gateway {
		req.Host = string(x.req.Host)
	}
	for _, f := range x.req.Fields {
		if !ours(f) {
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
	}
	return req, nil
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
		if err != nil {
			return nil, err
		}
	}
}

func (h *http2Answer) trailer() []h1.Field { return fieldsOf(h.resp.Trailer) }

func (h *http2Answer) close() {
	h.cancel()
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
	client client // nil when all is in memory
	closed bool
	err    error // the client did not send it
	req    *http.Request
}

// share makes the body of an attempt.
func (b *content) share(req *http.Request) *sharedBody {
	s := &sharedBody{req: req}
	s.memory.Reset(b.bytes)
	if b.kind == streamed {
		s.memory.Reset(append([]byte(nil), b.bytes...))
		s.client, b.taken = b.x.client, true
		return s
	}
	s.trailers(b.trailer)
	return s
}

// note keeps why the client's body failed, if it did.
func (b *content) note(h *http2Answer) {
	if h.body != nil && h.body.err != nil {
		b.err = h.body.err
	}
}

func (s *sharedBody) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, errStopped
	case s.memory.Len() > 0 || s.client == nil:
		return s.memory.Read(p)
	}
	n, err := s.client.Read(p)
	if err == io.EOF {
		s.trailers(s.client.trailer())
	} else if err != nil && !errors.Is(err, errStopped) {
		s.err = err
	}
	return n, err
}

// trailers gives the request its trailer fields. net/http sends them after the body.
func (s *sharedBody) trailers(fields []h1.Field) {
	for _, f := range fields {
		if s.req.Trailer == nil {
			s.req.Trailer = http.Header{}
		}
		s.req.Trailer.Add(string(f.Name), string(f.Value))
	}
}

// Close may be called more than once.
func (s *sharedBody) Close() error {
	if s.client != nil && !s.client.complete() {
		s.client.stop()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
