package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
)

// handoff is a listener of connections that turned out to speak HTTP/2.
type handoff struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// newHTTP2 makes the server for clients of a door that speak HTTP/2. TLS, if there is any, has been taken off before.
func newHTTP2(d *door) (*http.Server, *handoff) {
	p := d.proxy
	h := &handoff{conns: make(chan net.Conn), done: make(chan struct{})}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler: http.HandlerFunc(p.serveStream), Protocols: protocols, IdleTimeout: p.config.IdleTimeout,
		ReadHeaderTimeout: p.config.HeaderTimeout, MaxHeaderBytes: maxHead, ErrorLog: quiet,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 250, WriteByteTimeout: p.config.StallTimeout},
		ConnContext: func(ctx context.Context, nc net.Conn) context.Context {
			return context.WithValue(ctx, originKey{}, originOf(nc))
		},
	}
	go func() { _ = s.Serve(h) }() // ends with ErrServerClosed
	return s, h
}

// take gives the connection of c, with what has been read from it, to the server.
func (h *handoff) take(c *clientConn) {
	c.nc.SetReadDeadline(time.Time{})
	c.x.tunnelled = true // it is no longer ours to close
	nc := &begunConn{Conn: c.nc, begun: append([]byte(nil), c.in.unread()...), from: c.from}
	c.in.put()
	select {
	case h.conns <- nc:
	case <-h.done:
		nc.Close()
	}
}

func (h *handoff) Accept() (net.Conn, error) {
	select {
	case nc := <-h.conns:
		return nc, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *handoff) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }

// begunConn is a connection whose first bytes have been read.
type begunConn struct {
	net.Conn
	begun []byte
	from  origin
}

type originKey struct{}

// originOf is where a connection that the HTTP/2 server has got comes from.
func originOf(nc net.Conn) *origin {
	if c, ok := nc.(*begunConn); ok {
		return &c.from
	}
	return new(origin) // cannot be: handoff has no others
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begun) > 0 {
		n := copy(p, c.begun)
		c.begun = c.begun[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// stream is a request of a client that speaks HTTP/2: the client of its exchange.
type stream struct {
	w      http.ResponseWriter
	r      *http.Request
	from   *origin
	bare   bool
	read   bool // there is no content
	failed bool
	armed  bool // writes have a deadline
	stall  time.Duration
	late   atomic.Bool // with its content
}

// exchanges are kept for the streams to come.
var exchanges = sync.Pool{New: func() any { return new(exchange) }}

func (p *Proxy) serveStream(w http.ResponseWriter, r *http.Request) {
	s := &stream{w: w, r: r, read: r.Body == nil || r.Body == http.NoBody, stall: p.config.StallTimeout}
	s.from = r.Context().Value(originKey{}).(*origin)
	p.answerStream(s, r)
	if s.failed {
		panic(http.ErrAbortHandler) // resets the stream: the client must not take the answer for complete
	}
}

func (p *Proxy) answerStream(s *stream, r *http.Request) {
	x := exchanges.Get().(*exchange)
	x.proxy, x.client = p, s
	defer func() {
		if what := recover(); what != nil {
			s.failed = true
			x.contain(what)
		}
	}()
	var bad *h1.Error
	if x.req, bad = requestOf(r); bad != nil {
		x.refuseUnread(bad)
	} else {
		x.serve()
	}
	x.client = nil
	exchanges.Put(x)
}

func (s *stream) gone() bool               { return s.r.Context().Err() != nil }
func (s *stream) context() context.Context { return s.r.Context() }
func (s *stream) complete() bool           { return s.read }
func (s *stream) broken() bool             { return s.failed || s.gone() }
func (s *stream) multiplexed() bool        { return true }
func (s *stream) abort()                   { s.failed = true }
func (s *stream) stop()                    { _ = s.r.Body.Close() }

func (s *stream) takeContent() ([]byte, bool) { return nil, s.read }

// Read reads the content. That of a client that sends nothing for too long is given up, but a gRPC stream may have nothing
// to say for hours.
func (s *stream) Read(p []byte, until time.Duration) (int, error) {
	patience := until - abate.Now()
	if !strings.HasPrefix(s.r.Header.Get("Content-Type"), "application/grpc") {
		patience = min(patience, s.stall)
	}
	limit := time.AfterFunc(patience, func() {
		s.late.Store(true)
		s.stop()
	})
	defer limit.Stop()
	n, err := s.r.Body.Read(p)
	if err != nil && err != io.EOF && s.late.Load() {
		err = errSlowBody
	}
	return n, err
}

// arm gives the client StallTimeout to take what is written until the next flush: net/http bounds what the connection may
// take, but not how long a client may keep the window of a stream closed.
func (s *stream) arm() {
	if !s.armed {
		s.armed = true
		_ = http.NewResponseController(s.w).SetWriteDeadline(time.Now().Add(s.stall)) // HTTP/2 has them
	}
}

func (s *stream) trailer() []h1.Field { return trailerOf(s.r.Trailer) }

func (s *stream) origin() *origin { return s.from }

// interim sends an informational answer. 100 Continue is net/http's own affair.
func (s *stream) interim(status int, fields []h1.Field) {
	if status == http.StatusContinue {
		return
	}
	h := s.w.Header()
	for _, f := range fields {
		h.Add(string(f.Name), string(f.Value))
	}
	s.w.WriteHeader(status)
	clear(h)
}

func (s *stream) begin(a *head) {
	h := s.w.Header()
	for _, f := range a.fields {
		h.Add(string(f.Name), string(f.Value))
	}
	extra := a.extra
	if a.in != nil {
		extra = a.in.appendAnswer(slices.Clip(extra), a)
	}
	for line := range bytes.Lines(extra) {
		name, value, _ := strings.Cut(strings.TrimRight(string(line), "\r\n"), ": ")
		h.Add(name, value)
	}
	if a.length >= 0 && !bodiless(a.status) {
		h.Set("Content-Length", itoa(a.length))
	}
	if h["Content-Type"] == nil {
		h["Content-Type"] = nil // net/http guesses one otherwise
	}
	s.bare = s.r.Method == http.MethodHead || bodiless(a.status)
	s.w.WriteHeader(a.status)
}

func (s *stream) write(p []byte) {
	if s.bare || s.failed {
		return
	}
	s.arm()
	if _, err := s.w.Write(p); err != nil {
		s.failed = true
	}
}

func (s *stream) flush() {
	s.arm()
	control := http.NewResponseController(s.w)
	if err := control.Flush(); err != nil {
		s.failed = true
	}
	s.armed = false
	_ = control.SetWriteDeadline(time.Time{})
}

func (s *stream) end(trailer []h1.Field) {
	for _, f := range trailer {
		s.w.Header().Add(http.TrailerPrefix+string(f.Name), string(f.Value))
	}
}

// hopByHop are the fields that HTTP/2 does not have, and those that are written anew.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Transfer-Encoding": true, "Upgrade": true, "Te": true,
	"Content-Length": true, "Host": true, "Http2-Settings": true, "Expect": true, "Trailer": true,
}

// fieldsOf makes a list of a header, without what concerns one hop.
func fieldsOf(h http.Header) []h1.Field {
	var fields []h1.Field
	for name, values := range h {
		for _, v := range values {
			if !hopByHop[name] {
				fields = append(fields, h1.Field{Name: []byte(name), Value: []byte(v)})
			}
		}
	}
	return fields
}

// trailerOf makes a list of trailer fields, without those that may not be there.
func trailerOf(h http.Header) []h1.Field {
	return slices.DeleteFunc(fieldsOf(h), func(f h1.Field) bool { return !h1.InTrailer(f.Name) })
}

// announced is the Trailer fields of a message, which net/http has turned into the keys of trailer.
func announced(trailer http.Header) (fields []h1.Field) {
	for name := range trailer {
		fields = append(fields, h1.Field{Name: []byte("Trailer"), Value: []byte(name)})
	}
	return fields
}

// requestOf reads a request that came over HTTP/2, as strictly as one over HTTP/1.1: it may go on over that.
func requestOf(r *http.Request) (h1.Request, *h1.Error) {
	q := h1.Request{}
	text := append([]byte(nil), r.Method+" "+r.RequestURI+" HTTP/1.1\r\nHost: "+r.Host+"\r\n"...)
	text = append(h1.AppendFields(text, append(fieldsOf(r.Header), announced(r.Trailer)...)), "\r\n"...)
	n, bad := h1.HeadEnd(text, 0)
	if bad == nil && n != len(text) {
		bad = &h1.Error{Status: http.StatusBadRequest, Problem: "a field, the path or the authority of the request contains a line end"}
	}
	if bad == nil {
		bad = q.Parse(text)
	}
	q.Length, q.Chunked = r.ContentLength, r.ContentLength < 0
	q.Trailers = r.Header.Get("Te") == "trailers"
	return q, bad
}
