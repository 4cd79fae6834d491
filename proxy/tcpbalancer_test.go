package proxy_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy"
	"github.com/abate-go/abate/proxy/h2"
)

// tcpBalancer deals connections out to backends in turn, and sees nothing of what is said on them.
type tcpBalancer struct {
	addr     string
	mu       sync.Mutex
	backends []string
	dealt    int
	open     map[int]net.Conn // by number
	done     sync.WaitGroup
}

func newTCPBalancer(t testing.TB) *tcpBalancer {
	l := listen(t)
	b := &tcpBalancer{addr: l.Addr().String(), open: map[int]net.Conn{}}
	b.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.done.Go(func() { b.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		b.mu.Lock()
		for _, c := range b.open {
			c.Close()
		}
		b.mu.Unlock()
		b.done.Wait()
	})
	return b
}

func (b *tcpBalancer) pass(c net.Conn) {
	b.mu.Lock()
	n, to := b.dealt, b.backends[b.dealt%len(b.backends)]
	b.dealt++
	b.open[n] = c
	b.mu.Unlock()
	defer func() {
		c.Close()
		b.mu.Lock()
		delete(b.open, n)
		b.mu.Unlock()
	}()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, up) // either end may break off
		c.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(up, c)
	up.(*net.TCPConn).CloseWrite()
	back.Wait()
}

// add brings backends in, and returns how many connections have been dealt out before.
func (b *tcpBalancer) add(addrs ...string) (before int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = append(b.backends, addrs...)
	return b.dealt
}

// since is how many connections have been dealt out, and whether one with a number below n is still open.
func (b *tcpBalancer) since(n int) (dealt int, old bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for number := range b.open {
		old = old || number < n
	}
	return b.dealt, old
}

// tally is a backend that counts its calls, over HTTP/1.1 and HTTP/2.
type tally struct {
	addr  string
	calls atomic.Int64
}

func newTally(t testing.TB, http2 bool) *tally {
	c := new(tally)
	if !http2 {
		s := upstream(t, func(nc net.Conn, _ string) {
			c.calls.Add(1)
			io.WriteString(nc, ok("x"))
		})
		c.addr = addrOf(s)
		return c
	}
	l := listen(t)
	c.addr = l.Addr().String()
	head, trailer := fieldsOf("content-type", "application/grpc"), fieldsOf("grpc-status", "0")
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_ = h2.NewServer(nc, nil, func(s *h2.Stream) {
					c.calls.Add(1)
					var all []byte
					for data, err := s.Next(core.NoDeadline); err == nil; data, err = s.Next(core.NoDeadline) {
						all = append(all, data...)
					}
					_ = s.WriteHead(200, head, -1, false)
					_ = s.Write(all, false, core.NoDeadline)
					_ = s.WriteTrailer(trailer, core.NoDeadline)
				}).Serve(nil)
			}()
		}
	}()
	t.Cleanup(func() { l.Close() })
	return c
}

// TestBackendsBehindABalancerOfConnectionsThatAreAddedGetTheirShare: three backends become six, of which the proxy
// hears nothing. When the connections that were there have lived out their lives, the new backends have at least 80 %
// of their share. How long that takes is package spread's test, in virtual time; here lives are short.
func TestBackendsBehindABalancerOfConnectionsThatAreAddedGetTheirShare(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	for _, scheme := range []string{"h2c", "http"} {
		t.Run(scheme, func(t *testing.T) {
			b := newTCPBalancer(t)
			var all []*tally
			more := func() (before int) {
				for range 3 {
					all = append(all, newTally(t, scheme == "h2c"))
				}
				return b.add(all[len(all)-3].addr, all[len(all)-2].addr, all[len(all)-1].addr)
			}
			more()
			r := start(t, single([]string{scheme + "://" + b.addr}, noRetries),
				func(c *proxy.Config) { c.UpstreamMaxAge = 60 * time.Millisecond })
			over := make(chan struct{})
			var clients sync.WaitGroup
			defer clients.Wait()
			defer close(over)
			for range 12 {
				clients.Go(func() { callUntil(t, r, scheme, over) })
			}
			dealt := func(n int) func() bool {
				return func() bool { got, _ := b.since(0); return got >= n }
			}
			eventually(t, "connections are replaced", dealt(12))
			before := more()
			eventually(t, "all connections are new", func() bool { _, old := b.since(before); return !old })
			var at [6]int64
			for i := range all {
				at[i] = all[i].calls.Load()
			}
			// A connection gets as many calls as a busy machine lets its client make while it lives: so chance decides
			// about a few connections. It does not about ten times as many.
			from, _ := b.since(0)
			for more := 60; ; more *= 2 {
				eventually(t, "more connections", dealt(from+more))
				sum, late := int64(0), int64(0)
				for i := range all {
					n := all[i].calls.Load() - at[i]
					if sum += n; i >= 3 {
						late += n
					}
				}
				if float64(late) >= 0.8*float64(sum)/2 {
					return
				}
				if more > 600 {
					t.Fatalf("of %d calls the new backends got %d", sum, late)
				}
			}
		})
	}
}

// callUntil makes one call after the other, none of which may fail. The pauses leave the processor to other tests.
func callUntil(t *testing.T, r *running, scheme string, over <-chan struct{}) {
	var once func() string
	if scheme == "http" {
		c := r.dial()
		defer c.Close()
		once = func() string {
			if a := c.get("/"); a.status != 200 {
				return a.content
			}
			return ""
		}
	} else {
		cc := dialGRPC(t, r.addr)
		once = func() string {
			if c := call(t, cc, "/a.B/C", "x"); c.code != codes.OK {
				return fmt.Sprint(c)
			}
			return ""
		}
	}
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if problem := once(); problem != "" {
			t.Errorf("a call failed: %s", problem)
			return
		}
	}
}
