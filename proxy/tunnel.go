package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/untaken"
)

// tunnel is a connection that has switched to another protocol, such as WebSocket: bytes both ways, until both ends
// have finished. It is no longer under the guard: its call ended well when the service agreed to it.
type tunnel struct {
	client, service net.Conn
	once            sync.Once
	stall           time.Duration
	half            atomic.Bool // the service has finished its half
	way             string      // of CONNECT and of redirected connections: the entry of the list that allows it
	to, peer        string
	since           time.Duration
	up, down        atomic.Int64 // bytes, of a direction that has ended
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
	if t.down.Add(n); err != nil {
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
	n, more := int64(len(early)), int64(0)
	if err == nil {
		more, err = io.Copy(t.service, t.client)
		n += more
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && t.half.Load() {
		more, err = io.Copy(t.service, idle{t.client, t.stall})
		n += more
	}
	t.up.Add(n)
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
	mu      sync.Mutex
	all     map[*tunnel]struct{}
	shut    bool                  // for new ones
	ways    map[string]*TunnelWay // by the entry of the list
	refused map[string]int64      // by reason
}

// TunnelWay is what has gone through tunnels that one entry of the list allows.
type TunnelWay struct {
	Entry   string  `json:"entry"`
	Open    int     `json:"open"`
	Opened  int64   `json:"opened"`
	Seconds float64 `json:"seconds"`       // for which those that have ended were open
	Up      int64   `json:"bytesSent"`     // by programs, in those that have ended
	Down    int64   `json:"bytesReceived"` // by programs, in those that have ended
}

// mostWays is how many entries are told apart. A list has fewer, as long as it is not changed too often.
const mostWays = 1000

// way returns the sum for an entry. mu is held.
func (l *tunnels) way(entry string) *TunnelWay {
	w := l.ways[entry]
	if w == nil && len(l.ways) >= mostWays {
		entry = "(others)"
		w = l.ways[entry]
	}
	if w == nil {
		if w = (&TunnelWay{Entry: entry}); l.ways == nil {
			l.ways = map[string]*TunnelWay{}
		}
		l.ways[entry] = w
	}
	return w
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
	if t.since = core.Now(); t.way != "" {
		w := l.way(t.way)
		w.Open, w.Opened = w.Open+1, w.Opened+1
	}
	return true
}

func (l *tunnels) close(t *tunnel) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, t)
	if t.way != "" {
		w := l.way(t.way)
		w.Open--
		w.Seconds += (core.Now() - t.since).Seconds()
		w.Up, w.Down = w.Up+t.up.Load(), w.Down+t.down.Load()
	}
}

// refuses counts a tunnel that was not opened.
func (l *tunnels) refuses(reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil {
		l.refused = map[string]int64{}
	}
	l.refused[reason]++
}

// own reports whether an address is this side's of a tunnel to a service: what comes in from there has been here
// before.
func (l *tunnels) own(peer netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.all {
		if t.way != "" && addrPort(t.service.LocalAddr()) == peer {
			return true
		}
	}
	return false
}

// OpenTunnel is one that is open.
type OpenTunnel struct {
	To     string `json:"to"`
	Entry  string `json:"entry"`
	Client string `json:"client"`
	For    string `json:"for"`
}

// report returns copies: the sums, those that are open, and how many were refused, by reason.
func (l *tunnels) report() (ways []TunnelWay, open []OpenTunnel, refused map[string]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, entry := range slices.Sorted(maps.Keys(l.ways)) {
		ways = append(ways, *l.ways[entry])
	}
	now := core.Now()
	for t := range l.all {
		if t.way != "" {
			open = append(open, OpenTunnel{t.to, t.way, t.peer, (now - t.since).Round(time.Millisecond).String()})
		}
	}
	sort.SliceStable(open, func(i, j int) bool { return open[i].To+open[i].Client < open[j].To+open[j].Client })
	return ways, open, maps.Clone(l.refused)
}

// isShut reports whether new ones are refused, because the proxy drains.
func (l *tunnels) isShut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shut
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
