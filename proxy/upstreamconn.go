package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/abate-go/abate/internal/nowait"
)

// upstreamConn is a connection to an endpoint that speaks HTTP/1.1, used by one attempt at a time.
type upstreamConn struct {
	nc        net.Conn
	tcp       *net.TCPConn    // nc, unless it is TLS
	raw       syscall.RawConn // of the socket
	of        announcement    // with which it began
	security  *security       // how TLS is spoken, nil if it is not
	in        input
	out       []byte // what an attempt writes, built here
	readBy    time.Duration
	idleSince time.Duration
	until     time.Duration // the end of its life
	hurried   bool          // writes have a deadline, which the next request must not inherit
	cut       bool          // a request was not written to its end: what follows would be taken for the rest

	turn   func(fd uintptr) bool // converse's; made once, so that a request allocates nothing
	asked  bool                  // the request has been written, or a part of it
	wrote  int
	failed error
}

// connect makes a connection to e, within the attempt's time.
func (e *endpoint) connect(ctx context.Context, t *transport, of announcement, now, until time.Duration) (
	*upstreamConn, error) {
	ctx, cancel := context.WithDeadline(ctx, t.clock.time(min(until, later(now, t.connectTimeout))))
	defer cancel()
	nc, err := t.dial(ctx, e, of)
	if err != nil {
		return nil, err
	}
	c := &upstreamConn{nc: nc, of: of, until: e.endOfLife(t, now)}
	c.tcp, _ = nc.(*net.TCPConn)
	if socket, ok := nc.(syscall.Conn); ok && nowait.Possible {
		c.raw, _ = socket.SyscallConn()
		c.turn = c.takeTurn
	}
	if e.scheme != "https" {
		return c, nil
	}
	if c.security, err = e.secured.now(); err != nil {
		nc.Close()
		return nil, err
	}
	secure, err := e.shake(ctx, nc, c.security.http1)
	if err != nil {
		return nil, err
	}
	c.nc, c.tcp = secure, nil
	return c, nil
}

// alive reports whether an idle connection can take a request: the server has not closed it, and has sent nothing
// unasked, which would be taken for the answer. Over TLS that may have been read along with the last answer. A plain
// connection is looked at by converse.
func (c *upstreamConn) alive() bool {
	if c.security == nil && c.raw != nil {
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

// takeTurn is called when the connection may have something to read, and at first in any case.
func (c *upstreamConn) takeTurn(fd uintptr) bool {
	n, err := nowait.Read(fd, c.in.space())
	switch {
	case err == nowait.ErrWouldBlock && !c.asked:
		c.asked = true
		if c.wrote, c.failed = nowait.Write(fd, c.out); c.failed == nowait.ErrWouldBlock {
			c.failed = nil
		}
		return c.failed != nil || c.wrote < len(c.out)
	case err == nowait.ErrWouldBlock:
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

// answered reports whether a service that did not take all of a request has sent something all the same: a refusal,
// perhaps.
func answered(c *upstreamConn) bool { return c.raw != nil && !silent(c.raw) && !hungUp(c.raw) }

// errStale is a kept connection that turned out to be of no use before anything was sent on it.
var errStale = fmt.Errorf("the service has closed the connection, or sent something unasked: %w", syscall.ECONNRESET)

// errClosedEarly is a connection that the service closed before it answered. It counts as a reset.
var errClosedEarly = fmt.Errorf("the service closed the connection before it answered: %w", syscall.ECONNRESET)

// timeLimitError is the end of an attempt whose time was up.
type timeLimitError struct{ what string }

func (e *timeLimitError) Error() string { return e.what + " within the time limit of the attempt" }

func (e *timeLimitError) Timeout() bool { return true }

func (e *timeLimitError) Temporary() bool { return true }

func (e *timeLimitError) Is(target error) bool { return target == context.DeadlineExceeded }
