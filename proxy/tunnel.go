package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/internal/untaken"
)

// tunnel is a connection that has switched to another protocol, such as WebSocket: bytes both ways, until both ends
// have finished. It is no longer under the guard: its call ended well when the service agreed to it.
type tunnel struct {
	client, service net.Conn
	once            sync.Once
	stall           time.Duration
	half            atomic.Bool // the service has finished its half
}

// run copies both ways, and returns how much the service sent.
func (t *tunnel) run(early []byte) (n int64) {
	defer t.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.upward(early)
	}()
	n, err := io.Copy(t.client, t.service)
	if err != nil {
		t.close()
	}
	closeWrite(t.client)
	t.half.Store(true)
	t.client.SetReadDeadline(time.Unix(1, 0)) // upward goes on with a limit
	<-done
	return n
}

// upward copies what the client sends. Once the service has finished its half, a client that is silent for too long is
// not waited for. A service must not take a part for the whole: unless the client has finished, it is cut off.
func (t *tunnel) upward(early []byte) {
	_, err := t.service.Write(early)
	if err == nil {
		_, err = io.Copy(t.service, t.client)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && t.half.Load() {
		_, err = io.Copy(t.service, idle{t.client, t.stall})
	}
	if err != nil {
		cut(t.service)
		return
	}
	closeWrite(t.service)
}

// idle is a connection whose reads have a time limit each.
type idle struct {
	net.Conn
	limit time.Duration
}

func (c idle) Read(b []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(c.limit))
	return c.Conn.Read(b)
}

// cut ends a connection so that the other end sees that it was broken off.
func cut(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn() // closed by itself it would say that all had come
	}
	if l, ok := c.(*lendingConn); ok {
		c = l.NetConn()
	}
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
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
