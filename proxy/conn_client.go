package proxy

import (
	"bytes"
	"io"
	"net"
	"time"

	holding "github.com/abate-go/abate/internal/serving"
	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/h2"
)

// What an exchange asks of a clientConn: the client interface.

func (c *clientConn) takeContent() ([]byte, bool) { return c.body.inInput() }

func (c *clientConn) skipContent() { c.body.inInput() }

func (c *clientConn) stop() { c.body.stop() }

func (c *clientConn) gone() bool { return c.sock.left(c.body.complete()) }

func (c *clientConn) complete() bool { return c.body.complete() }

func (c *clientConn) trailer() []h1.Field { return c.body.trailer() }

// interim: clients of HTTP/1.0 do not know informational answers.
func (c *clientConn) interim(status int, fields []h1.Field) {
	if c.x.req.Minor != 0 {
		c.out.interim(status, fields)
	}
}

func (c *clientConn) begin(h *head) {
	c.last = c.out.begin(h, &c.x.req.Request, c.last || !c.body.complete() || c.draining.Load() || c.dismissed.Load() ||
		c.plane.leaves(c.from.listen) || c.plane.crowd.Load() > 0)
}

func (c *clientConn) write(p []byte) { c.out.write(p) }

func (c *clientConn) flush() { c.out.flush() }

func (c *clientConn) end(trailer []h1.Field) { c.out.end(trailer) }

func (c *clientConn) abort() { c.out.abort() }

func (c *clientConn) broken() bool { return c.out.broken }

func (c *clientConn) multiplexed() bool { return false }

func (c *clientConn) Read(p []byte, until time.Duration) (int, error) { return c.body.Read(p, until) }

// next is for clients of HTTP/2.
func (c *clientConn) next(time.Duration) ([]byte, error) { return nil, io.EOF }

// hook: a clientConn is asked whether its client is gone.
func (c *clientConn) hook(*h2.Stream) bool { return false }

func (c *clientConn) unhook() {}

func (c *clientConn) sink(stall time.Duration) *net.TCPConn {
	if c.sock.tcp == nil || c.out.chunked || c.out.bare || c.sock.lends.loan != nil {
		return nil
	}
	c.out.flush()
	c.sock.writeBy = stall
	c.sock.nc.SetWriteDeadline(c.plane.clock.time(stall))
	return c.sock.tcp
}

func (c *clientConn) takeOver() (nc net.Conn, early []byte) {
	c.handedOver = true
	c.out.put()
	early = bytes.Clone(c.body.raw)
	c.body.put()
	c.sock.in.put()
	return c.sock.nc, early
}

func (c *clientConn) accept() {
	c.out.accept()
	c.out.flush()
}

func (c *clientConn) enterTunnel(authority []byte) bool {
	if c.from.tunnelled != nil { // a tunnel in a tunnel
		return false
	}
	c.from.tunnelled, c.last, c.anew = authority, false, true
	c.accept()
	return true
}

func (c *clientConn) lend(loan *holding.Loan) { c.sock.lends.loan = loan }

func (c *clientConn) origin() *origin { return &c.from }
