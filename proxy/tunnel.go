package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/untaken"
	"github.com/abate-go/abate/proxy/h1"
)

// tunnel is a connection that has switched to another protocol, such as WebSocket: bytes both ways, until both ends have
// finished. It is no longer under the guard: its call ended well when the service agreed to it.
type tunnel struct {
	client, service net.Conn
	once            sync.Once
	stall           time.Duration
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
	t := &tunnel{client: c.nc, service: up.nc, stall: x.plane.config.StallTimeout}
	if !x.plane.tunnels.open(t) {
		t.close()
		return
	}
	defer x.plane.tunnels.close(t)
	untaken.Bound(t.client, -1) // an end of a tunnel may pause as long as it likes
	untaken.Bound(t.service, -1)
	c.out.take()
	c.out.b = h1.AppendStatus(c.out.b, 101, a.resp.Reason)
	c.out.b = h1.AppendFields(c.out.b, a.resp.Fields)
	if switched := (&head{status: 101}); x.in != nil {
		c.out.b, _ = x.in.appendReport(c.out.b, switched)
	} else {
		c.out.b = x.appendReport(c.out.b, switched)
	}
	c.out.b = append(c.out.b, "Connection: Upgrade\r\nUpgrade: "...)
	c.out.b = append(append(c.out.b, a.resp.Upgrade...), "\r\n\r\n"...)
	c.out.b = append(c.out.b, up.in.unread()...)
	c.out.flush()
	c.out.put()
	up.in.put()
	early := append([]byte(nil), c.body.raw...)
	c.body.put()
	for _, b := range []*[]byte{&x.req.Method, &x.req.Host, &x.req.Path} {
		*b = bytes.Clone(*b) // for the access log: they lie in the input
	}
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
	t.client.SetReadDeadline(time.Now().Add(t.stall)) // a service that has gone must not be waited for with a silent client
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
		untaken.Bound(t.client, t.stall) // what is on its way must not stay with the kernel for longer
		untaken.Bound(t.service, t.stall)
		t.client.Close()
		t.service.Close()
	})
}

// tunnels are those that are open, which a shutdown cuts off at its end.
type tunnels struct {
	mu   sync.Mutex
	all  map[*tunnel]struct{}
	shut bool // for new ones
}

func (l *tunnels) open(t *tunnel) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return false
	}
	if l.all == nil {
		l.all = map[*tunnel]struct{}{}
	}
	l.all[t] = struct{}{}
	return true
}

func (l *tunnels) close(t *tunnel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, t)
}

func (l *tunnels) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shut = true
}

func (l *tunnels) cutOff() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.all {
		t.close()
	}
}

// spliceFrom is how much content must be left for the kernel to move it from socket to socket. splicePiece is how much it
// moves at once: so much a client has to take within StallTimeout.
const (
	spliceFrom  = 128 << 10
	splicePiece = 256 << 10
)

// splice moves a piece of a long answer without reading it, if both ends are TCP. It looks after the client as read does.
// After an error neither end can go on: what had left the service may not have reached the client.
func (x *exchange) splice(a *answer) (moved bool, err error) {
	c, ok := x.client.(*clientConn)
	if !ok || c.tcp == nil || a.conn == nil || a.conn.tcp == nil || a.left < spliceFrom || c.out.chunked || c.out.bare || a.keeping {
		return false, nil
	}
	now := abate.Now()
	if len(a.conn.in.unread()) > 0 || now >= a.until {
		return false, nil // next has what is there, or says what is wrong
	}
	c.out.flush()
	a.conn.readBy, c.writeBy = min(a.until, later(now, glance)), later(now, x.plane.config.StallTimeout)
	a.conn.nc.SetReadDeadline(x.plane.clock.time(a.conn.readBy))
	c.nc.SetWriteDeadline(x.plane.clock.time(c.writeBy))
	piece := io.LimitedReader{R: a.conn.tcp, N: min(a.left, splicePiece)}
	n, err := c.tcp.ReadFrom(&piece)
	a.left -= n
	x.bytes += n
	a.ended = a.left == 0
	if errors.Is(err, os.ErrDeadlineExceeded) && abate.Now() < c.writeBy { // the service is slow, not the client
		if n == 0 && x.client.gone() {
			return false, errGone
		}
		return true, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: %w", errStalls, err)
	}
	return n > 0 && err == nil, err
}

var errStalls = errors.New("the client takes nothing")
