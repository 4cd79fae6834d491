//go:build unix

package rollout_test

import (
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/abate-go/abate/internal/loopback"
)

// balancer deals connections out to backends in turn. Connections that there are stay where they are.
type balancer struct {
	addr     string
	mu       sync.Mutex
	backends []string
	dealt    int
	open     map[net.Conn]struct{}
	closed   bool
	running  sync.WaitGroup
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{addr: l.Addr().String(), open: map[net.Conn]struct{}{}}
	b.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.running.Go(func() { b.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		b.mu.Lock()
		b.closed = true
		for c := range b.open {
			c.Close()
		}
		b.mu.Unlock()
		b.running.Wait()
	})
	return b
}

// take picks a backend for a connection; "" if it is too late.
func (b *balancer) take(c net.Conn) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return ""
	}
	b.open[c] = struct{}{}
	b.dealt++
	return b.backends[b.dealt%len(b.backends)]
}

func (b *balancer) pass(c net.Conn) {
	defer c.Close()
	to := b.take(c)
	if to == "" {
		return
	}
	defer func() {
		b.mu.Lock()
		delete(b.open, c)
		b.mu.Unlock()
	}()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	var back sync.WaitGroup
	back.Go(func() { relay(c, up) })
	relay(up, c)
	back.Wait()
}

// relay passes on what one end says, and its end.
func relay(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either end may break off
	_ = to.(*net.TCPConn).CloseWrite()
}

func (b *balancer) add(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = append(slices.Clone(b.backends), addr)
}

func (b *balancer) remove(addr string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(slices.Clone(b.backends), func(a string) bool { return a == addr })
}
