package proxy

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/abate-go/abate/internal/untaken"
)

// tunnel is a connection that has switched to another protocol, such as WebSocket: bytes both ways, until both ends
// have finished. It is no longer under the guard: its call ended well when the service agreed to it.
type tunnel struct {
	client, service net.Conn
	once            sync.Once
	stall           time.Duration
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
	// a service that has gone must not be waited for with a silent client
	t.client.SetReadDeadline(time.Now().Add(t.stall))
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
