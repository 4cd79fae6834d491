package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// mostIdle is what a connection may cost that has had an answer and waits for the next request, stacks included. With a
// goroutine that does nothing but wait for it, it would be more than 3.5 KB.
const mostIdle = 3 << 10

// socket is a client that costs this process no memory to speak of.
type socket int

func connect(t *testing.T, addr string) socket {
	to := netip.MustParseAddrPort(addr)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return socket(fd)
}

// ask sends a request and reads the answer.
func (s socket) ask(t *testing.T) {
	t.Helper()
	s.send(t)
	s.hear(t)
}

func (s socket) send(t *testing.T) {
	t.Helper()
	if _, err := syscall.Write(int(s), []byte("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
}

// hear reads an answer, which ends with "ok".
func (s socket) hear(t *testing.T) {
	t.Helper()
	var room [1024]byte
	var err error
	for n := 0; err == nil && !bytes.HasSuffix(room[:n], []byte("\r\n\r\nok")); {
		more := 0
		if more, err = syscall.Read(int(s), room[n:]); more == 0 && err == nil {
			err = io.ErrUnexpectedEOF
		}
		n += max(more, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnIdleConnectionTakesLittleMemory(t *testing.T) {
	const clients = 1000
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("ok")) })
	r := start(t, single([]string{s.url}))
	first, all := make([]socket, 0, clients), make([]socket, 0, clients)
	defer func() {
		for _, c := range append(first, all...) {
			syscall.Close(int(c))
		}
	}()
	for range clients / 4 { // so that there are as many spare goroutines before as after
		c := connect(t, r.addr)
		c.ask(t)
		first = append(first, c)
	}
	eventually(t, "all rest", func() bool { return r.proxy.Resting() == len(first) })
	for _, c := range first {
		syscall.Shutdown(int(c), syscall.SHUT_RDWR)
	}
	eventually(t, "all have gone", func() bool { return r.proxy.Clients() == 0 })
	s.forgetRequests()
	before := heapAndStacks()
	for range clients {
		c := connect(t, r.addr)
		c.ask(t)
		all = append(all, c)
	}
	for n := range 2 {
		eventually(t, "all rest", func() bool { return r.proxy.Resting() == clients })
		s.forgetRequests()
		each := (heapAndStacks() - before) / clients
		if each > mostIdle && !raceDetector {
			t.Errorf("%d bytes for each idle connection, the %d. time", each, n+1)
		}
		for _, c := range all {
			c.ask(t)
		}
	}
}

// Clients that go on at once are answered all, and rest again with as little as before.
func TestClientsThatGoOnAtOnceAreAnsweredAndRestAgain(t *testing.T) {
	const clients = 1000
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("ok")) })
	r := start(t, single([]string{s.url}, noBreaker))
	all := make([]socket, clients)
	defer func() {
		for _, c := range all {
			syscall.Close(int(c))
		}
	}()
	for i := range all {
		all[i] = connect(t, r.addr)
		all[i].ask(t)
	}
	var before int64
	least := int64(math.MaxInt64) // that a round left: a burst may open more connections than the one before
	for n := range 5 {
		eventually(t, "all rest", func() bool { return r.proxy.Resting() == clients })
		s.forgetRequests()
		now := heapAndStacks()
		if n > 1 { // the first time makes what is kept for the next
			least = min(least, now-before)
		}
		before = now
		for _, c := range all {
			c.send(t)
		}
		for _, c := range all {
			c.hear(t)
		}
	}
	if each := least / clients; each > mostIdle/4 && !raceDetector {
		t.Errorf("%d bytes more for each, every time", each)
	}
}

// Where the roost cannot wait any more, everybody is waited for alone, those who rested too.
func TestClientsAreAnsweredWhereTheRoostFails(t *testing.T) {
	for name, spoil := range map[string]func(*proxy.Proxy) error{
		"closed": (*proxy.Proxy).CloseRoost, "no epoll": (*proxy.Proxy).SpoilRoost,
	} {
		s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("ok")) })
		var logged strings.Builder
		r := start(t, single([]string{s.url}), idleTimeout(4*long), func(c *proxy.Config) {
			c.Log = slog.New(slog.NewTextHandler(&logged, nil))
		})
		conns := make([]*client, 5)
		for i := range conns {
			conns[i] = r.dial()
			conns[i].get("/")
		}
		eventually(t, "all rest", func() bool { return r.proxy.Resting() == len(conns) })
		if err := spoil(r.proxy); err != nil {
			t.Fatal(err)
		}
		for _, c := range append(conns, r.dial()) {
			for range 2 {
				if a := c.get("/"); a.content != "ok" {
					t.Errorf("%s: %+v", name, a)
				}
			}
		}
		if n := r.proxy.Resting(); n != 0 {
			t.Errorf("%s: %d rest", name, n)
		}
		r.shutdown()
		if !strings.Contains(logged.String(), "idle clients") {
			t.Errorf("%s: nothing is said: %s", name, &logged)
		}
	}
}

// A client that a balancer has announced is the same after a rest.
func TestAnAnnouncedClientRestsAndStaysWhoItIs(t *testing.T) {
	r := protect(t, guardOf("http://"+heralded(t, nil), trustLoop, "proxyProtocol: true", "sendProxyProtocol: v2"))
	header := v2("192.0.2.1:4711")
	c := r.dial().send(header[:5])
	c.quiet(short / 4) // longer than until it would rest
	c.send(header[5:])
	for range 3 {
		eventually(t, "it rests", func() bool { return r.proxy.Resting() == 1 })
		if a := c.get("/"); !strings.Contains(a.content, "192.0.2.1:4711") {
			t.Errorf("it is %q", a.content)
		}
	}
}

// halved sends the first bytes of what is written, and the rest when it is told to.
type halved struct {
	net.Conn
	on  bool
	now chan struct{}
}

func (h *halved) Write(p []byte) (int, error) {
	if !h.on {
		return h.Conn.Write(p)
	}
	n, err := h.Conn.Write(p[:7])
	if err != nil {
		return n, err
	}
	<-h.now
	m, err := h.Conn.Write(p[7:])
	return n + m, err
}

// A client may rest in the middle of a record of TLS, also in that of its end.
func TestAClientRestsInTheMiddleOfARecordOfTLS(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(t, guardOf(mirror(t).url, f.tls()))
	h := &halved{now: make(chan struct{})}
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	h.Conn = nc
	c := tls.Client(h, &tls.Config{InsecureSkipVerify: true})
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		eventually(t, "it rests", func() bool { return r.proxy.Resting() == 1 })
		h.on = true
		go func() {
			eventually(t, "it is looked at", func() bool { return r.proxy.Resting() == 0 })
			h.now <- struct{}{}
		}()
		a, err := askTLS(c, "/")
		if h.on = false; err != nil || a.status != 200 {
			t.Fatalf("%+v, %v", a, err)
		}
	}
}

// heapAndStacks returns how many bytes are in use.
func heapAndStacks() int64 {
	inUse := heap()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return inUse + int64(m.StackInuse)
}

// forgetRequests gives back the memory of the requests that have come.
func (s *server) forgetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Whatever has a client that waits go has one go that rests, and the next request of one that stays is answered.
func TestAClientThatRestsIsServedLikeAnyOther(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("ok")) })
	resting := func(r *running, n int) {
		t.Helper()
		eventually(t, "clients rest", func() bool { return r.proxy.Resting() == n })
	}
	r := start(t, single([]string{s.url}))
	a, b := r.dial(), r.dial()
	for range 3 {
		resting(r, 2)
		a.get("/")
		a.send("GET / HTTP/1.1\r\n") // the rest of it comes later
		b.get("/")
		resting(r, 1)
		a.send("Host: s.test\r\n\r\n").answer()
	}
	resting(r, 2)
	a.Close()
	eventually(t, "one has gone", func() bool { return r.proxy.Clients() == 1 })
	resting(r, 1)
	r.shutdown()
	b.closed()

	r = start(t, single([]string{s.url}), idleTimeout(short))
	c := r.dial()
	resting(r, 1)
	c.closed()
	eventually(t, "its time is over", func() bool { return r.proxy.Clients() == 0 })

	r = start(t, single([]string{s.url}), func(c *proxy.Config) { c.MaxConnections = 1 })
	c = r.dial()
	c.get("/")
	resting(r, 1)
	r.dial().get("/")
	c.closed()

	r = start(t, single([]string{s.url}))
	r.dial()
	resting(r, 1)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.proxy.Shutdown(ended) // which has no time for anybody
	eventually(t, "it is cut off", func() bool { return r.proxy.Clients() == 0 })
}

// What TLS has read already, a request behind another or a part of one, is not waited for in vain.
func TestWhatTLSHasReadIsNotLeftToRest(t *testing.T) {
	f := newFiles(t, trusted.issue(t), trusted)
	r := protect(t, guardOf(mirror(t).url, f.tls()))
	nc, err := r.secure(func(c *tls.Config) { c.DynamicRecordSizingDisabled = true })
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(nc)
	answers := func(n int) {
		t.Helper()
		for range n {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
		}
	}
	send := func(s string) {
		t.Helper()
		if _, err := io.WriteString(nc, s); err != nil {
			t.Fatal(err)
		}
	}
	// 64 bytes, so that what is read at once ends where a request does; and so many that one read does not take all,
	// and the next is in TLS still.
	const one, many = "GET / HTTP/1.1\r\nHost: s\r\nX: 01234567890123456789012345678901\r\n\r\n", 260
	for range 3 {
		eventually(t, "it rests", func() bool { return r.proxy.Resting() == 1 })
		send(strings.Repeat(one, many))
		answers(many)
		send(one + one[:5])
		answers(1)
		if r.proxy.Resting() != 0 {
			t.Error("it rests in the middle of a head")
		}
		send(one[5:])
		answers(1)
	}
	nc.Close()
	eventually(t, "it has gone", func() bool { return r.proxy.Clients() == 0 })
}

// Many clients at once, who go on, begin a head, leave or cut their connection while they rest, and whose descriptors
// others get: every request is answered, everybody who has left is let go, and nothing stays behind.
func TestManyClientsThatRestAndGoOnAtOnce(t *testing.T) {
	const clients, rounds = 100, 5
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("ok")) })
	r := start(t, single([]string{s.url}))
	conns := make([]*client, clients)
	for i := range conns {
		conns[i] = r.dial()
	}
	for range rounds {
		eventually(t, "all rest", func() bool { return r.proxy.Resting() == clients })
		var all sync.WaitGroup
		for i, c := range conns {
			all.Go(func() {
				switch i % 4 {
				case 0:
					c.get("/")
				case 1:
					c.send("GET / HTTP/1.1\r\n").send("Host: s.test\r\n\r\n").answer()
				case 2:
					c.Close()
				case 3:
					c.SetLinger(0)
					c.Close()
				}
				if i%4 > 1 {
					conns[i] = r.dial()
					conns[i].get("/")
				}
			})
		}
		all.Wait()
		eventually(t, "who left has gone", func() bool { return r.proxy.Clients() == clients })
	}
	eventually(t, "all rest", func() bool { return r.proxy.Resting() == clients })
	r.shutdown()
	if n := r.proxy.Resting(); n != 0 {
		t.Errorf("%d rest where nobody is", n)
	}
}

// A client at a Unix socket rests like any other.
func TestAClientAtAUnixSocketRests(t *testing.T) {
	s := upstream(t, func(c net.Conn, _ string) { io.WriteString(c, ok("ok")) })
	r := start(t, single([]string{s.url}))
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(l) }()
	nc, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	for range 2 {
		eventually(t, "it rests", func() bool { return r.proxy.Resting() == 1 })
		if a, err := askTLS(nc, "/"); err != nil || a.content != "ok" {
			t.Fatalf("%v, %+v", err, a)
		}
	}
	r.shutdown()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
