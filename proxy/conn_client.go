package proxy

import (
	"time"

	"github.com/abate-go/abate/proxy/h1"
)

// What an exchange asks of a clientConn: the client interface.

func (c *clientConn) takeContent() ([]byte, bool)           { return c.body.inInput() }
func (c *clientConn) skipContent()                          { c.body.inInput() }
func (c *clientConn) stop()                                 { c.body.stop() }
func (c *clientConn) complete() bool                        { return c.body.complete() }
func (c *clientConn) trailer() []h1.Field                   { return c.body.trailer() }
func (c *clientConn) interim(status int, fields []h1.Field) { c.out.interim(status, fields) }
func (c *clientConn) begin(h *head)                         { c.out.begin(h) }
func (c *clientConn) write(p []byte)                        { c.out.write(p) }
func (c *clientConn) flush()                                { c.out.flush() }
func (c *clientConn) end(trailer []h1.Field)                { c.out.end(trailer) }
func (c *clientConn) abort()                                { c.out.abort() }
func (c *clientConn) broken() bool                          { return c.out.broken }
func (c *clientConn) multiplexed() bool                     { return false }

func (c *clientConn) Read(p []byte, until time.Duration) (int, error) { return c.body.Read(p, until) }

func (c *clientConn) origin() *origin { return &c.from }
