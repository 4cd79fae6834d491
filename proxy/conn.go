package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// clientConn is a connection of a client that speaks HTTP/1.1. Its goroutine reads a request, has it answered, and
// reads the next.
type clientConn struct {
	plane    *plane
	inside   *h2.Config   // how it speaks HTTP/2, if it does
	draining *atomic.Bool // of its door
	from     origin
	sock     clientSocket
	out      output
	body     requestBody
	x        *exchange     // of the request that is being answered; nil while it waits for one
	idle     time.Duration // since when it waits for a request, once it does

	silence
	shakes     atomic.Int32            // the state of its handshake
	inTLS      bool                    // its handshake is under way; guarded by mu of the lobby
	dismissed  atomic.Bool             // it has to make room for another
	http2      atomic.Pointer[h2.Conn] // what it has become, if it speaks that
	agreed     bool                    // TLS has settled that it is HTTP/2
	handedOver bool                    // what follows is no HTTP
	last       bool                    // no request follows on this connection
	anew       bool                    // what comes is the first of it, or of the tunnel that it has become
	rested     bool                    // in this wait for a request
	perch      int32                   // where it rested last; of the roost
}

// contain keeps a panic to the connection it happened on.
func (c *clientConn) contain() {
	if what := recover(); what != nil {
		c.sock.nc.Close()
		if c.x == nil {
			exchangeOf(c).renew()
		}
		c.x.contain(what)
	}
}

// errHandedOff ends the life of a clientConn whose client speaks HTTP/2.
var errHandedOff = errors.New("goes on with HTTP/2")

// errRests is no error: whoever serves the client has to have it rest.
var errRests = errors.New("nothing comes for a while")

// serve answers requests until the client goes, or has to, or is to rest: then serve goes on after that.
func (c *clientConn) serve() (rests bool) {
	for !c.last {
		head, err := c.awaitHead()
		switch {
		case err == nil:
		case errors.Is(err, errRests):
			return true
		case errors.Is(err, errHandedOff):
			c.serveHTTP2()
			return false
		default:
			c.refuse(err)
			c.last = true
			continue
		}
		c.anew, c.rested = false, false
		x := exchangeOf(c)
		if bad := x.req.Parse(head); bad != nil {
			c.refuse(bad)
			break
		}
		c.sock.in.take(len(head))
		c.last = !x.req.KeepAlive || x.req.connects() // what follows a CONNECT that is refused may be no request
		c.body.begin(&x.req.Request)
		x.serve()
		c.settle()
	}
	if !c.handedOver {
		c.close()
	}
	return false
}

// exchanges are taken for a request and given back after it, with the memory that the next can use, so that idle
// connections hold none, and clients that come for one request make none.
var exchanges = sync.Pool{New: func() any {
	x := new(exchange)
	x.renew()
	return x
}}

// exchangeOf returns the exchange of the request of a client, and takes one if there is none.
func exchangeOf(c *clientConn) *exchange {
	if c.x == nil {
		c.x = exchanges.Get().(*exchange)
		c.x.req.plane, c.x.req.client = c.plane, c
	}
	return c.x
}

// put gives the exchange back. One whose request did not come to its end may be in any state, and is not.
func (x *exchange) put() {
	x.req.client = nil
	exchanges.Put(x)
}

// settle makes the connection ready for the next request: what was read beyond the end of this one is its beginning.
func (c *clientConn) settle() {
	c.idle, c.sock.grace = c.x.ended, 0
	if c.handedOver {
		c.last = true
		return
	}
	if !c.body.complete() || c.out.broken {
		c.last = true
		return
	}
	c.x.put()
	c.x = nil
	if c.last {
		return
	}
	c.body.end()
	c.sock.in.release()
}

// close ends the connection so that the client gets all that was written: an unread request would have the kernel
// reset it.
func (c *clientConn) close() {
	bare := c.sock.bare()
	switch {
	case bare == nil:
	case c.out.broken && c.out.open:
		c.cut()
	case c.sock.in.r < c.sock.in.w || !c.body.complete():
		if c.sock.under != nil {
			_ = c.sock.nc.(*tls.Conn).CloseWrite() // the end of TLS; the socket's follows
		}
		linger(bare)
	}
	c.sock.nc.Close()
	c.sock.in.put()
	c.out.put()
	c.body.put()
}

// dismiss ends the wait for a request. mu of the proxy is held.
func (c *clientConn) dismiss() {
	if conn := c.http2.Load(); conn != nil {
		conn.Drain()
	}
	if c.waiting.Load() != 0 && (!c.inTLS || c.dismissed.Load()) {
		c.sock.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// awaitHead waits for the head of a request and returns it. It stays valid until settle.
func (c *clientConn) awaitHead() ([]byte, error) {
	if c.anew && !c.rested {
		c.idle = core.Now()
	}
	var began time.Duration // when the head turned out to come in pieces; 0 before
	for scanned := 0; ; {
		if u := c.sock.in.unread(); len(u) > scanned {
			n, bad := h1.HeadEnd(u, scanned)
			if c.anew && bytes.HasPrefix(u, http2Preface[:min(len(u), len(http2Preface))]) {
				if len(u) >= len(http2Preface) {
					return nil, errHandedOff
				}
			} else if c.agreed { // then nothing else is a request, and HTTP/2 says so
				return nil, errHandedOff
			} else if bad != nil {
				return nil, bad
			} else if n > 0 {
				return u[:n], nil
			}
			scanned = len(u)
		}
		if c.sock.in.buf != nil && c.sock.in.w == len(*c.sock.in.buf) && !c.sock.in.grow() {
			return nil, &h1.Error{Status: 431, Problem: "the head of the request is longer than 64 KiB"}
		}
		if began == 0 && len(c.sock.in.unread()) > 0 {
			began = core.Now()
		}
		if err := c.fill(began); err != nil {
			return nil, err
		}
	}
}

// http2Preface is how a client of HTTP/2 begins: RFC 9113 §3.4.
var http2Preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// fill reads more of the head. Most requests come in one piece and cost one read and no deadline: a deadline that is
// earlier than it should be is left as it is, and set anew when it fires.
func (c *clientConn) fill(began time.Duration) error {
	now := c.idle
	for {
		hurried := c.dismissed.Load()
		until, rest := later(c.idle, c.plane.config.IdleTimeout), core.NoDeadline
		if began != 0 {
			until = later(began, headTime(c, hurried))
		} else if !c.rested && c.sock.wakes() {
			rest = later(c.idle, restAfter)
		}
		var err error
		switch {
		case now >= until && began != 0:
			return errSlowHead
		case now >= until:
			return io.EOF
		case now >= rest:
			return beginRest(c)
		}
		c.sock.setReadDeadline(now, min(until, rest))
		if began != 0 {
			err = c.readHeading(began, hurried)
		} else {
			err = readFirst(c)
		}
		if err == nil {
			if c.heading.Store(0); !c.asked.Load() {
				c.asked.Store(true)
			}
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		now, c.sock.readBy = core.Now(), 0
	}
}

// headTime is how long a head may take, from its first byte on. Others may need the room, but one that has just begun
// has its time also then: whoever dismissed its client may not have seen it.
func headTime(c *clientConn, hurried bool) time.Duration {
	if hurried {
		return min(c.plane.config.HeaderTimeout, slowEnough)
	}
	return c.plane.config.HeaderTimeout
}

// readFirst waits for the first bytes of a head.
func readFirst(c *clientConn) error {
	c.waiting.Store(max(int64(c.idle), 1))
	defer c.waiting.Store(0)
	if c.sock.lends.records != nil { // of one of them a part may have come with what was before
		c.sock.lends.records.tell()
	}
	if c.draining.Load() || c.dismissed.Load() {
		return c.sock.glimpse(&c.dismissed)
	}
	return c.sock.read()
}

// restAfter is how long a client has been silent when its connection is put to rest.
var restAfter = 100 * time.Millisecond

// beginRest has the connection rest. It still waits, and may be dismissed: whoever does that wakes it.
func beginRest(c *clientConn) error {
	c.rested, c.body.decoder = true, nil
	c.sock.in.release()
	c.waiting.Store(max(int64(c.idle), 1))
	return errRests
}

// awaitByte waits for the next byte of a client, and for nothing else, so that a small stack is enough for it. Whoever
// dismisses the client sets another deadline after it has said so.
func awaitByte(c *clientConn) {
	c.sock.setReadDeadline(c.idle, later(c.idle, c.plane.config.IdleTimeout))
	if !c.draining.Load() && !c.dismissed.Load() {
		c.sock.await()
	}
}

var errSlowHead = &h1.Error{Status: 408, Problem: "the head of the request did not come in time"}

// readHeading reads more of a head that has begun. hurried tells that it is known that others need the room; whoever
// finds that out meanwhile has moved the deadline.
func (c *clientConn) readHeading(began time.Duration, hurried bool) error {
	c.heading.Store(int64(began))
	defer c.heading.Store(0)
	if !hurried && c.dismissed.Load() {
		return os.ErrDeadlineExceeded
	}
	return c.sock.read()
}

// refuse answers a request that could not be read, if it is worth an answer.
func (c *clientConn) refuse(err error) {
	var bad *h1.Error
	if !errors.As(err, &bad) {
		return
	}
	c.last = true
	exchangeOf(c).refuseUnread(bad)
}

// context is of no use to one who can ask gone.
func (c *clientConn) context() context.Context { return context.Background() }

// cut ends the connection by a reset, and TLS without saying so: nobody may take what has come for a whole answer.
func (c *clientConn) cut() {
	if conn := c.http2.Load(); conn != nil {
		conn.Close()
		return
	}
	if bare := c.sock.bare(); bare != nil {
		if tcp, ok := bare.(*net.TCPConn); ok {
			tcp.SetLinger(0)
		}
		bare.Close()
	}
	c.sock.nc.Close()
}
