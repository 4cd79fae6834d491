package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// clientConn is a connection of a client that speaks HTTP/1.1. Its goroutine reads a request, has it answered, and reads
// the next.
type clientConn struct {
	lobby *lobby
	plane *plane
	from  origin
	nc    net.Conn
	tcp   *net.TCPConn    // nc, if it is one
	raw   syscall.RawConn // of tcp
	under *underTLS       // nil without TLS
	ready func(fd uintptr) bool
	rerr  error // of the last call of ready
	in    input
	out   output
	body  requestBody
	x     exchange

	readBy, writeBy time.Duration           // the deadlines set on the socket, on the guards' clock; 0 when none
	waiting         atomic.Int64            // since when it waits for a request, and may be dismissed; 0 while it does not
	heading         atomic.Int64            // since when the head of a request is coming, while more of it is waited for; 0 otherwise
	dismissed       atomic.Bool             // it has to make room for another
	http2           atomic.Pointer[h2.Conn] // what it has become, if it speaks that
	agreed          bool                    // TLS has settled that it is HTTP/2
	last            bool                    // no request follows on this connection
}

// contain keeps a panic to the connection it happened on.
func (c *clientConn) contain() {
	if what := recover(); what != nil {
		c.nc.Close()
		c.x.contain(what)
	}
}

// errHandedOff ends the life of a clientConn whose client speaks HTTP/2.
var errHandedOff = errors.New("goes on with HTTP/2")

// serve answers requests until the client goes, or has to.
func (c *clientConn) serve() {
	for first := true; !c.last; first = false {
		head, err := c.awaitHead(first)
		if err != nil {
			if errors.Is(err, errHandedOff) {
				c.serveHTTP2()
				return
			}
			c.refuse(err)
			break
		}
		if bad := c.x.req.Parse(head); bad != nil {
			c.refuse(bad)
			break
		}
		c.in.take(len(head))
		c.last = !c.x.req.KeepAlive
		c.body.begin(c)
		c.x.serve()
		c.settle()
	}
	if !c.x.tunnelled {
		c.close()
	}
}

// settle makes the connection ready for the next request: what was read beyond the end of this one is its beginning.
func (c *clientConn) settle() {
	if c.x.tunnelled {
		c.last = true
		return
	}
	if c.last = c.last || !c.body.complete() || c.out.broken; c.last {
		return
	}
	c.body.end()
	c.in.release()
}

// close ends the connection so that the client gets all that was written: an unread request would have the kernel reset it.
func (c *clientConn) close() {
	tcp := c.socket()
	switch {
	case tcp == nil:
	case c.out.broken && c.out.open:
		c.cut()
	case c.in.r < c.in.w || !c.body.complete():
		if c.under != nil {
			_ = c.nc.(*tls.Conn).CloseWrite() // the end of TLS; the socket's follows
		}
		linger(tcp)
	}
	c.nc.Close()
	c.in.put()
	c.out.put()
	c.body.put()
}

// socket is the client's TCP connection, under TLS if that is spoken; nil if it is none.
func (c *clientConn) socket() *net.TCPConn {
	if c.under != nil {
		return c.under.tcp
	}
	return c.tcp
}

// cut ends the connection by a reset, and TLS without saying so: nobody may take what has come for a whole answer.
func (c *clientConn) cut() {
	if conn := c.http2.Load(); conn != nil {
		conn.Close()
		return
	}
	if tcp := c.socket(); tcp != nil {
		tcp.SetLinger(0)
		tcp.Close()
	}
	c.nc.Close()
}

// How long, and how much, is read of what a client still sends behind its answer: there are clients that find their answer only
// once they have sent all, and take a reset for its loss.
const (
	lingerTime  = 5 * time.Second
	lingerStill = 500 * time.Millisecond // without a byte
	lingerMost  = 64 << 20
	lingerLeast = 250 * time.Millisecond // however much comes
)

// linger reads for a while what a client still sends after its request has been answered.
func linger(tcp *net.TCPConn) {
	if tcp.CloseWrite() != nil {
		return
	}
	scratch := buffers.Get().(*[]byte)
	defer buffers.Put(scratch)
	began := abate.Now()
	for read, now := 0, began; now < began+lingerTime && (read < lingerMost || now < began+lingerLeast); now = abate.Now() {
		tcp.SetReadDeadline(time.Now().Add(min(lingerStill, began+lingerTime-now)))
		n, err := tcp.Read(*scratch)
		if read += n; err != nil {
			return
		}
	}
}

// dismiss ends the wait for a request. mu of the proxy is held.
func (c *clientConn) dismiss() {
	if conn := c.http2.Load(); conn != nil {
		conn.Drain()
	}
	if c.waiting.Load() != 0 {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// awaitHead waits for the head of a request and returns it. It stays valid until settle.
func (c *clientConn) awaitHead(first bool) ([]byte, error) {
	idleSince := c.x.ended
	if first {
		idleSince = abate.Now()
	}
	var began time.Duration // when the head turned out to come in pieces; 0 before
	for scanned := 0; ; {
		if u := c.in.unread(); len(u) > scanned {
			n, bad := h1.HeadEnd(u, scanned)
			if first && bytes.HasPrefix(u, http2Preface[:min(len(u), len(http2Preface))]) {
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
		if c.in.buf != nil && c.in.w == len(*c.in.buf) && !c.in.grow() {
			return nil, &h1.Error{Status: 431, Problem: "the head of the request is longer than 64 KiB"}
		}
		if began == 0 && len(c.in.unread()) > 0 {
			began = abate.Now()
		}
		if err := c.fill(idleSince, began); err != nil {
			return nil, err
		}
	}
}

// http2Preface is how a client of HTTP/2 begins: RFC 9113 §3.4.
var http2Preface = []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")

// fill reads more of the head. Most requests come in one piece and cost one read and no deadline: a deadline that is
// earlier than it should be is left as it is, and set anew when it fires.
func (c *clientConn) fill(idleSince, began time.Duration) error {
	now := idleSince
	for {
		until := later(idleSince, c.plane.config.IdleTimeout)
		if began != 0 {
			until = later(began, c.plane.config.HeaderTimeout)
		}
		if now >= until {
			if began != 0 {
				return errSlowHead
			}
			return io.EOF
		}
		c.setReadDeadline(now, until)
		var err error
		switch {
		case began != 0:
			err = c.readHeading(began)
		default:
			c.waiting.Store(max(int64(idleSince), 1))
			if c.from.door.draining.Load() || c.dismissed.Load() {
				err = c.glimpse()
			} else {
				err = c.read()
			}
			c.waiting.Store(0)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		now, c.readBy = abate.Now(), 0
	}
}

var errSlowHead = &h1.Error{Status: 408, Problem: "the head of the request did not come in time"}

// readHeading reads more of a head that has begun, unless others need the room.
func (c *clientConn) readHeading(began time.Duration) error {
	c.heading.Store(int64(began))
	defer c.heading.Store(0)
	if c.dismissed.Load() {
		return errSlowHead
	}
	err := c.read()
	if errors.Is(err, os.ErrDeadlineExceeded) && c.dismissed.Load() {
		return errSlowHead
	}
	return err
}

// setReadDeadline sees to it that a read does not wait past until, which is after now. It may wake earlier.
func (c *clientConn) setReadDeadline(now, until time.Duration) {
	if c.readBy <= now || c.readBy > until {
		c.nc.SetReadDeadline(c.plane.clock.time(until))
		c.readBy = until
	}
}

// setWriteDeadline gives the client at least half of StallTimeout to take what is written next.
func (c *clientConn) setWriteDeadline() {
	now, stall := abate.Now(), c.plane.config.StallTimeout
	if c.writeBy < now+stall/2 {
		c.writeBy = now + stall
		c.nc.SetWriteDeadline(c.plane.clock.time(c.writeBy))
	}
}

// read reads what there is into the input. On a TCP socket the buffer is taken when there is something: a connection that
// waits holds none.
func (c *clientConn) read() error {
	if c.raw == nil {
		n, err := c.nc.Read(c.in.space())
		if c.in.w += n; n > 0 {
			err = nil
		}
		return err
	}
	if err := c.raw.Read(c.ready); err != nil {
		return err
	}
	return c.rerr
}

// glimpse reads a request that has come already and does not wait for one. What has come before a drain is answered.
func (c *clientConn) glimpse() error {
	err := io.EOF
	if c.raw != nil {
		c.raw.Control(func(fd uintptr) {
			if c.readReady(fd) {
				err = c.rerr
			}
		})
	}
	return err
}

func (c *clientConn) readReady(fd uintptr) bool {
	n, err := readSocket(fd, c.in.space())
	if err == errWouldBlock {
		c.in.release()
		return false
	}
	c.in.w += max(n, 0)
	switch {
	case err != nil:
		c.rerr = os.NewSyscallError("read", err)
	case n <= 0:
		c.rerr = io.EOF
	default:
		c.rerr = nil
	}
	return true
}

// refuse answers a request that could not be read, if it is worth an answer.
func (c *clientConn) refuse(err error) {
	var bad *h1.Error
	if !errors.As(err, &bad) {
		return
	}
	c.last = true
	c.x.refuseUnread(bad)
}

// gone tells whether the client has closed its connection, or half of it. What it has sent behind its request, and nobody
// has read, must not hide that. Once it owes nothing of its request, the alert with which TLS ends tells it too.
func (c *clientConn) gone() bool {
	raw, complete := c.raw, c.body.complete()
	if c.under != nil {
		raw = c.under.raw
	}
	if raw == nil {
		return false
	}
	ended, aborted := finished(raw)
	return aborted || ended && complete || hungUp(raw) || c.under != nil && complete && saidGoodbye(raw)
}

// context is of no use to one who can ask gone.
func (c *clientConn) context() context.Context { return context.Background() }
