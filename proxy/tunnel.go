package proxy

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/proxy/h1"
)

// tunnel is a connection that has switched to another protocol, such as WebSocket: bytes both ways, until both ends have
// finished. It is no longer under the guard: its call ended well when the service agreed to it.
type tunnel struct {
	client, service net.Conn
	once            sync.Once
}

// tunnel takes both connections over.
func (x *exchange) tunnel(a *answer) {
	c, ok := x.client.(*clientConn)
	if !ok { // cannot be: HTTP/2 has no Upgrade
		x.client.abort()
		return
	}
	x.status, x.tunnelled = 101, true
	up := a.conn
	a.conn = nil
	t := &tunnel{client: c.nc, service: up.nc}
	if !x.proxy.open(t) {
		t.close()
		return
	}
	defer x.proxy.close(t)
	c.out.take()
	c.out.b = h1.AppendStatus(c.out.b, 101, a.resp.Reason)
	c.out.b = h1.AppendFields(c.out.b, a.resp.Fields)
	c.out.b = append(c.out.b, "Connection: Upgrade\r\nUpgrade: "...)
	c.out.b = append(append(c.out.b, a.resp.Upgrade...), "\r\n\r\n"...)
	c.out.b = append(c.out.b, up.in.unread()...)
	c.out.flush()
	c.out.put()
	up.in.put()
	early := append([]byte(nil), c.body.raw...)
	c.body.put()
	c.in.put()
	c.nc.SetDeadline(time.Time{})
	up.nc.SetDeadline(time.Time{})
	x.bytes = t.run(early)
	a.sent = true
}

// run copies both ways, and returns how much the service sent.
func (t *tunnel) run(early []byte) (n int64) {
	defer t.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := t.service.Write(early); err == nil {
			_, _ = io.Copy(t.service, t.client)
		}
		closeWrite(t.service)
	}()
	n, err := io.Copy(t.client, t.service)
	if err != nil {
		t.close()
	}
	closeWrite(t.client)
	<-done
	return n
}

// closeWrite tells the other end that nothing more comes.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	c.Close()
}

func (t *tunnel) close() {
	t.once.Do(func() {
		t.client.Close()
		t.service.Close()
	})
}

// open and close keep the list of tunnels, which a shutdown cuts off at its end.
func (p *Proxy) open(t *tunnel) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.draining.Load() {
		return false
	}
	p.tunnels[t] = struct{}{}
	return true
}

func (p *Proxy) close(t *tunnel) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tunnels, t)
}

// spliceFrom is how much content must be left for the kernel to move it from socket to socket.
const (
	spliceFrom  = 128 << 10
	splicePiece = 4 << 20
)

// splice moves a piece of a long answer without reading it, if both ends are TCP. False means that it did not.
func (x *exchange) splice(a *answer) bool {
	c, ok := x.client.(*clientConn)
	if !ok || c.tcp == nil || a.conn == nil || a.conn.tcp == nil || a.left < spliceFrom || c.out.chunked || c.out.bare || a.keeping {
		return false
	}
	if len(a.conn.in.unread()) > 0 {
		return false
	}
	now := abate.Now()
	if now >= a.until {
		return false // next says what is wrong
	}
	c.out.flush()
	until := min(a.until, later(now, x.proxy.config.StallTimeout))
	a.conn.nc.SetReadDeadline(x.proxy.began.time(until))
	c.nc.SetWriteDeadline(x.proxy.began.time(until))
	a.conn.readBy, c.writeBy = until, until
	piece := io.LimitedReader{R: a.conn.tcp, N: min(a.left, splicePiece)}
	n, err := c.tcp.ReadFrom(&piece)
	a.left -= n
	x.bytes += n
	a.ended = a.left == 0
	if err != nil || n == 0 {
		return false
	}
	return true
}
