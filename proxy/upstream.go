package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
)

// upstreamConn is a connection to an endpoint that speaks HTTP/1.1, used by one attempt at a time.
type upstreamConn struct {
	nc        net.Conn
	tcp       *net.TCPConn    // nc, unless it is TLS
	raw       syscall.RawConn // of the socket
	in        input
	out       []byte // what an attempt writes, built here
	readBy    time.Duration
	idleSince time.Duration
	reused    bool // it has served a request before
	hurried   bool // writes have a deadline, which the next request must not inherit
}

// connect makes a connection to e, within the attempt's time.
func (e *endpoint) connect(ctx context.Context, p *Proxy, now, until time.Duration) (*upstreamConn, error) {
	limit := p.config.ConnectTimeout
	ctx, cancel := context.WithDeadline(ctx, p.began.time(min(until, later(now, limit))))
	defer cancel()
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", e.addr)
	if err != nil {
		return nil, err
	}
	c := &upstreamConn{nc: nc}
	c.tcp, _ = nc.(*net.TCPConn)
	if c.tcp != nil && rawSockets {
		c.raw, _ = c.tcp.SyscallConn()
	}
	if e.tls == nil {
		return c, nil
	}
	secure := tls.Client(nc, e.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the server ended the TLS handshake: %w", io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	c.nc, c.tcp = secure, nil
	return c, nil
}

// alive tells whether an idle connection can take a request: the server has not closed it, and has sent nothing unasked.
// Over TLS what is there to read may be a session ticket.
func (c *upstreamConn) alive() bool {
	switch {
	case c.raw == nil:
		return true
	case c.tcp == nil:
		return !hungUp(c.raw)
	}
	return silent(c.raw)
}

// setReadDeadline is clientConn's.
func (c *upstreamConn) setReadDeadline(p *Proxy, now, until time.Duration) {
	if c.readBy <= now || c.readBy > until {
		c.nc.SetReadDeadline(p.began.time(until))
		c.readBy = until
	}
}

// timeLimitError is the end of an attempt whose time was up.
type timeLimitError struct{ what string }

func (e *timeLimitError) Error() string        { return e.what + " within the time limit of the attempt" }
func (e *timeLimitError) Timeout() bool        { return true }
func (e *timeLimitError) Temporary() bool      { return true }
func (e *timeLimitError) Is(target error) bool { return target == context.DeadlineExceeded }

// read reads what comes next for a, into the connection's input. It waits until the attempt's time is up, the client has
// left, or a copy of the attempt has won.
func (a *answer) read() error {
	c, x := a.conn, a.x
	for {
		now := abate.Now()
		if now >= a.until {
			return &timeLimitError{"no answer"}
		}
		c.setReadDeadline(x.proxy, now, min(a.until, later(now, glance)))
		n, err := c.nc.Read(c.in.space())
		if c.in.w += n; n > 0 {
			return nil
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.readBy = 0
			if a.cancelled.Load() || x.client.gone() {
				return errGone
			}
			x.body.upload.remind(now)
		default:
			return err
		}
	}
}

// roundTrip sends the request on a connection and reads the head of the answer.
func (a *answer) roundTrip(n int) error {
	c, x := a.conn, a.x
	c.out = x.appendRequest(c.out[:0], a.endpoint(), n, a.until)
	body := &x.body
	if body.kind == inMemory {
		c.out = body.appendTo(c.out)
	}
	a.sent = true
	if len(c.out) > bufferSize {
		c.hurried = true
		c.nc.SetWriteDeadline(x.proxy.began.time(min(a.until, later(abate.Now(), x.proxy.config.StallTimeout))))
	}
	_, err := c.nc.Write(c.out)
	if cap(c.out) > 2*bufferSize {
		c.out = nil
	}
	if err != nil && !answered(c) {
		return err
	}
	if body.kind == streamed {
		body.send(c)
	}
	return a.awaitHead()
}

// answered tells whether a service that did not take all of a request has sent something all the same: a refusal, perhaps.
func answered(c *upstreamConn) bool { return c.raw != nil && !silent(c.raw) && !hungUp(c.raw) }

// appendTo adds a body that is in memory.
func (b *content) appendTo(dst []byte) []byte {
	if !b.chunked {
		return append(dst, b.bytes...)
	}
	if len(b.bytes) > 0 {
		dst = h1.AppendChunk(dst, b.bytes)
	}
	return h1.AppendLastChunk(dst, b.trailer)
}

// maxInterim is how many informational answers an attempt may bring.
const maxInterim = 16

// awaitHead reads the head of the final answer, and passes informational ones on.
func (a *answer) awaitHead() error {
	c, x := a.conn, a.x
	for interim := 0; ; interim++ {
		head, err := a.readHead()
		if err != nil {
			return err
		}
		if bad := a.resp.Parse(head, string(x.req.Method) == "HEAD"); bad != nil {
			return &badAnswerError{bad.Problem}
		}
		c.in.take(len(head))
		switch status := a.resp.Status; {
		case status >= 200 || status == 101 && x.req.Upgrade != nil:
			a.begin()
			return nil
		case status == 101:
			return &badAnswerError{"101 Switching Protocols, which nobody asked for"}
		case interim >= maxInterim:
			return &badAnswerError{"more than 16 informational answers"}
		case status == 100:
			if u := x.body.upload; u != nil && !u.granted {
				x.client.interim(100, nil)
				u.grant()
			}
		case a.alone:
			x.client.interim(status, a.resp.Fields)
		}
	}
}

// badAnswerError is an answer that is not HTTP, or a trick.
type badAnswerError struct{ problem string }

func (e *badAnswerError) Error() string { return "malformed answer: " + e.problem }

// readHead reads one head.
func (a *answer) readHead() ([]byte, error) {
	c := a.conn
	for scanned := 0; ; {
		if u := c.in.unread(); len(u) > scanned {
			n, bad := h1.HeadEnd(u, scanned)
			switch {
			case bad != nil:
				return nil, &badAnswerError{bad.Problem}
			case n > 0:
				return u[:n], nil
			}
			scanned = len(u)
		}
		if c.in.buf != nil && c.in.w == len(*c.in.buf) && !c.in.grow() {
			return nil, &badAnswerError{"its head is longer than 64 KiB"}
		}
		if err := a.read(); err != nil {
			if err == io.EOF && len(c.in.unread()) == 0 {
				return nil, errClosedEarly
			} else if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// errClosedEarly is a connection that the service closed before it answered. It counts as a reset.
var errClosedEarly = fmt.Errorf("the service closed the connection before it answered: %w", syscall.ECONNRESET)
