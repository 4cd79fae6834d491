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
	hurried   bool // writes have a deadline, which the next request must not inherit
	cut       bool // a request was not written to its end: what follows would be taken for the rest

	turn   func(fd uintptr) bool // converse's; made once, so that a request allocates nothing
	asked  bool                  // the request has been written, or a part of it
	wrote  int
	failed error
}

// connect makes a connection to e, within the attempt's time.
func (e *endpoint) connect(ctx context.Context, t *transport, now, until time.Duration) (*upstreamConn, error) {
	ctx, cancel := context.WithDeadline(ctx, t.clock.time(min(until, later(now, t.connectTimeout))))
	defer cancel()
	nc, err := t.dial(ctx, e.addr)
	if err != nil {
		return nil, err
	}
	c := &upstreamConn{nc: nc}
	c.tcp, _ = nc.(*net.TCPConn)
	if c.tcp != nil && rawSockets {
		c.raw, _ = c.tcp.SyscallConn()
		c.turn = c.takeTurn
	}
	if e.tls == nil {
		return c, nil
	}
	secure := tls.Client(nc, e.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the server ended it: %w", io.ErrUnexpectedEOF)
		}
		return nil, fmt.Errorf("TLS handshake with %s: %w", e.addr, err)
	}
	c.nc, c.tcp = secure, nil
	return c, nil
}

// alive tells whether an idle connection can take a request: the server has not closed it, and has sent nothing unasked,
// which would be taken for the answer. Over TLS that may have been read along with the last answer. A plain connection is
// looked at by converse.
func (c *upstreamConn) alive() bool {
	if c.tcp != nil && c.raw != nil {
		return true
	}
	if c.raw != nil && !silent(c.raw) {
		return false
	}
	c.nc.SetReadDeadline(time.Unix(1, 0))
	c.readBy = 0
	var one [1]byte
	n, err := c.nc.Read(one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}

// setReadDeadline is clientConn's.
func (c *upstreamConn) setReadDeadline(clock instant, now, until time.Duration) {
	if c.readBy <= now || c.readBy > until {
		c.nc.SetReadDeadline(clock.time(until))
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
		c.setReadDeadline(x.plane.clock, now, min(a.until, later(now, glance)))
		n, err := c.nc.Read(c.in.space())
		if c.in.w += n; n > 0 {
			return nil
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.readBy = 0
			if a.cancelled.Load() || x.gone() {
				return errGone
			}
			if a.resp.Status < 200 { // a 100 behind the head of the final answer would be content
				x.body.upload.remind(now)
			}
		default:
			return err
		}
	}
}

// errStale is a kept connection that turned out to be of no use before anything was sent on it.
var errStale = fmt.Errorf("the service has closed the connection, or sent something unasked: %w", syscall.ECONNRESET)

// converse writes the request and waits for the first bytes of the answer. Both in one wait of the runtime's poller: it is
// told that the connection has nothing to read, and only then does the request go out, so that no answer can be missed, and
// none that was not asked for is taken. It saves a look at the connection before, and a read in vain after.
func (a *answer) converse() error {
	c := a.conn
	c.asked, c.wrote, c.failed = false, 0, nil
	for !c.asked {
		now := abate.Now()
		if now >= a.until {
			return &timeLimitError{"nothing sent"}
		}
		c.setReadDeadline(a.x.plane.clock, now, min(a.until, later(now, glance)))
		err := c.raw.Read(c.turn)
		switch {
		case c.failed != nil:
			return c.failed
		case a.cancelled.Load():
			return errGone
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.readBy = 0 // read goes on waiting
		case err != nil:
			return err
		}
	}
	if c.wrote < len(c.out) { // the socket is full: a rare case for small requests
		c.hurry(a)
		_, err := c.nc.Write(c.out[c.wrote:])
		if c.cut = err != nil; c.cut && !answered(c) {
			return err
		}
	}
	return nil
}

// hurry bounds the time for a write that may have to wait.
func (c *upstreamConn) hurry(a *answer) {
	p := a.x.plane
	c.hurried = true
	c.nc.SetWriteDeadline(p.clock.time(min(a.until, later(abate.Now(), p.config.StallTimeout))))
}

// takeTurn is called when the connection may have something to read, and at first in any case.
func (c *upstreamConn) takeTurn(fd uintptr) bool {
	n, err := readSocket(fd, c.in.space())
	switch {
	case err == errWouldBlock && !c.asked:
		c.asked = true
		if c.wrote, c.failed = writeSocket(fd, c.out); c.failed == errWouldBlock {
			c.failed = nil
		}
		return c.failed != nil || c.wrote < len(c.out)
	case err == errWouldBlock:
		return false
	case !c.asked:
		c.failed = errStale
	case err != nil:
		c.failed = os.NewSyscallError("read", err)
	case n <= 0:
		c.failed = io.EOF
	}
	if c.failed == nil {
		c.in.w += n
	}
	return true
}

// roundTrip sends the request on a connection and reads the head of the answer.
func (a *answer) roundTrip(n int) error {
	c, x := a.conn, a.x
	c.out = x.appendRequest(c.out[:0], a, n)
	body := &x.body
	if body.kind == inMemory {
		c.out = body.appendTo(c.out)
	}
	if c.turn != nil && c.tcp != nil && body.kind != streamed && len(c.out) <= bufferSize {
		err := a.converse()
		if a.sent = c.asked; err == io.EOF {
			return errClosedEarly
		} else if err != nil {
			return err
		}
		return a.awaitHead()
	}
	return a.sendLong()
}

// sendLong sends a request that is too long for one write, or whose body is still coming.
func (a *answer) sendLong() error {
	c, x := a.conn, a.x
	if c.tcp != nil && c.raw != nil && !silent(c.raw) {
		return errStale
	}
	a.sent = true
	if len(c.out) > bufferSize {
		c.hurry(a)
	}
	_, err := c.nc.Write(c.out)
	if cap(c.out) > 2*bufferSize {
		c.out = nil
	}
	if c.cut = err != nil; c.cut && !answered(c) {
		return err
	}
	if x.body.kind == streamed {
		x.body.send(c)
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
