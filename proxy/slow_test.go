package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// short is a time limit that a test waits for, long is one that it waits for and must stay below meanwhile, although
// the machine may stand still for a second.
const (
	short = 250 * time.Millisecond
	long  = 2 * time.Second
)

func headerTimeout(d time.Duration) func(*proxy.Config) {
	return func(c *proxy.Config) { c.HeaderTimeout = d }
}

func idleTimeout(d time.Duration) func(*proxy.Config) {
	return func(c *proxy.Config) { c.IdleTimeout = d }
}

func stallTimeout(d time.Duration) func(*proxy.Config) {
	return func(c *proxy.Config) { c.StallTimeout = d }
}

// pause waits d for something to come from the proxy, which must not happen.
func (c *client) pause(d time.Duration) *client {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(d))
	if b, err := c.in.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("%q, %v came from the proxy", b, err)
	}
	c.SetReadDeadline(time.Now().Add(patience))
	return c
}

// drip sends b a byte at a time, again and again, until the proxy has had enough.
func (c *client) drip(b string) {
	tick := time.NewTicker(5 * time.Millisecond)
	go func() {
		defer tick.Stop()
		for i := 0; ; i++ {
			if _, err := io.WriteString(c, b[i%len(b):i%len(b)+1]); err != nil {
				return
			}
			<-tick.C
		}
	}()
}

func TestSlowHeadIsRefused(t *testing.T) {
	t.Parallel()
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker), headerTimeout(short))
	conns := map[string]*client{}
	for name, send := range map[string]func(*client){
		"stops in the request line": func(c *client) { c.send("GET / HT") },
		"stops in a field":          func(c *client) { c.send("GET / HTTP/1.1\r\nHost: s.te") },
		"stops before the end":      func(c *client) { c.send("GET / HTTP/1.1\r\nHost: s.test\r\n") },
		"stops in the preface":      func(c *client) { c.send("PRI * HTTP/2.0\r\n\r\nSM") },
		"goes on and on":            func(c *client) { c.send("GET / HTTP/1.1\r\nHost: s.test\r\n").drip("A: b\r\n") },
		"after a good request":      func(c *client) { c.get("/good"); c.send("GET / HT") },
		"behind a good request": func(c *client) {
			c.send("GET /good HTTP/1.1\r\nHost: s.test\r\n\r\nGET / HT").answer()
		},
	} {
		conns[name] = r.dial()
		send(conns[name])
	}
	for name, conn := range conns {
		if a := conn.answer(); a.status != 408 || !a.close {
			t.Errorf("%s: %d, close %v", name, a.status, a.close)
		}
		conn.closed()
	}
	for _, req := range s.seen() {
		if line(req) != "GET /good HTTP/1.1" {
			t.Errorf("the service got %q", req)
		}
	}
}

func TestIdleClientIsLetGo(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel()
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker), idleTimeout(long), headerTimeout(patience))
	silent, conn := r.dial(), r.dial()
	conn.get("/")
	silent.closed()
	conn.closed()
}

// A client that has been idle has all of HeaderTimeout for its next head.
func TestIdleTimeIsNotPartOfTheHead(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker), headerTimeout(long))
	conn := r.dial().pause(long + long/4).send("GET /late HTTP/1.1\r\n").pause(short / 2).send("Host: s.test\r\n\r\n")
	if a := conn.answer(); a.status != 200 {
		t.Errorf("%d %s", a.status, a.content)
	}
}

func TestSlowBodyIsRefused(t *testing.T) {
	t.Parallel()
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker, quickRetry), stallTimeout(short))
	rows := []struct{ name, head, body string }{
		{"held", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 10\r\n\r\n", "abc"},
		{"held, nothing of it", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 10\r\n\r\n", ""},
		{"held in chunks", "GET / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n"},
		{"streamed", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 1000000\r\n\r\n", "abc"},
		{"streamed in chunks", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n", "3\r\nab"},
		{"streamed without the last chunk", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n",
			"3\r\nabc\r\n0\r\nA: b\r\n"},
	}
	var conns []*client
	for _, c := range rows {
		conns = append(conns, r.dial().send(c.head+c.body))
	}
	for i, c := range rows {
		if a := conns[i].answer(); a.status != 408 || !a.close {
			t.Errorf("%s: %d %s, close %v", c.name, a.status, a.content, a.close)
		}
		conns[i].closed()
		conns[i].Close()
	}
	eventually(t, "everything is given back", func() bool { return calm(r) })
	if got := s.seen(); len(got) > 0 {
		t.Errorf("the service took %q for whole", got)
	}
	eventually(t, "the connections to the service are closed", func() bool { return s.open() == 0 })
}

// calm reports whether nothing is under way.
func calm(r *running) bool {
	g := r.guard()
	for _, e := range g.Endpoints {
		if e.Pending != 0 {
			return false
		}
	}
	return g.Bulkhead.Running == 0 && g.Bulkhead.Queued == 0
}

// A body that comes slowly but comes is no reason to end its request.
func TestSlowBodyThatGoesOnIsTaken(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := echo(t)
	const limit = 3 * time.Second
	r := start(t, single([]string{s.url}, noBreaker), stallTimeout(limit), func(c *proxy.Config) {
		c.MaxBufferedBody = 20
	})
	held := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 20\r\n\r\n")
	streamed := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 40\r\n\r\n")
	for range 4 {
		held.pause(limit * 3 / 10).send("abcde") // each pause is short, all together are not
		streamed.send("abcdefghij")
	}
	for _, conn := range []*client{held, streamed} {
		if a := conn.answer(); a.status != 200 {
			t.Errorf("%d %s", a.status, a.content)
		}
	}
}

// pouring answers with content that does not end, until the connection does, which it tells.
func pouring(t testing.TB, head, piece string) (s *server, ended chan struct{}) {
	ended = make(chan struct{}, 10)
	return rawUpstream(t, func(c net.Conn, _ int) {
		readHead(bufio.NewReader(c))
		io.WriteString(c, head)
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				ended <- struct{}{}
				return
			}
		}
	}), ended
}

// endlessAnswers are heads of answers and the pieces of their content.
var endlessAnswers = []struct{ name, head, piece string }{
	{"Content-Length", okHead + "Content-Length: 1000000000000\r\n\r\n", strings.Repeat("a", 32<<10)},
	{"chunks", okHead + "Transfer-Encoding: chunked\r\n\r\n", "8000\r\n" + strings.Repeat("a", 32<<10) + "\r\n"},
	{"until the connection ends", okHead + "\r\n", strings.Repeat("a", 32<<10)},
}

func TestClientThatDoesNotReadIsLetGo(t *testing.T) {
	t.Parallel()
	for _, c := range endlessAnswers {
		t.Run(c.name, func(t *testing.T) {
			s, ended := pouring(t, c.head, c.piece)
			r := start(t, single([]string{s.url}, noBreaker), stallTimeout(short))
			conn := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
			soon(t, "the end of the answer", ended)
			eventually(t, "everything is given back", func() bool { return calm(r) })
			if _, err := conn.read("GET"); err == nil {
				t.Error("the answer seems to be complete")
			}
		})
	}
}

// A client that reads slowly but reads gets all of the answer, and every byte of it.
func TestSlowReaderGetsAllOfItsAnswer(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel()
	random := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{}).Read(random)
	big := string(random)
	for _, c := range []struct {
		name, answer string
		every        time.Duration
	}{
		{"Content-Length", ok(big), 24 * time.Millisecond}, // 128 reads at least: longer than anybody may stall
		{"chunks", okHead + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(big), big),
			time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := upstream(t, func(conn net.Conn, _ string) { io.WriteString(conn, c.answer) })
			r := start(t, single([]string{s.url}, noBreaker), stallTimeout(long))
			conn := r.dial()
			conn.SetReadBuffer(64 << 10)
			conn.in = bufio.NewReaderSize(&slowly{conn, time.NewTicker(c.every)}, 64<<10)
			conn.send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
			a, err := conn.read("GET")
			if err != nil || a.content != big {
				n := 0
				for n < len(a.content) && a.content[n] == big[n] {
					n++
				}
				t.Errorf("%d of %d bytes, the first %d right: %v", len(a.content), len(big), n, err)
			}
		})
	}
}

// slowly reads a little at each tick.
type slowly struct {
	*client
	tick *time.Ticker
}

func (s *slowly) Read(p []byte) (int, error) {
	<-s.tick.C
	return s.TCPConn.Read(p)
}

// slowAnswers never end.
var slowAnswers = []struct {
	name   string
	send   func(c net.Conn)
	status int
	broken bool
}{
	{"says nothing", func(net.Conn) {}, 504, false},
	{"stops in the status line", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 2") }, 504, false},
	{"stops in the head", func(c net.Conn) { io.WriteString(c, okHead+"A: b") }, 504, false},
	{"stops behind an interim answer", func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\n")
	}, 504, false},
	{"stops in the content", func(c net.Conn) { io.WriteString(c, okHead+"Content-Length: 10\r\n\r\nabc") }, 200, true},
	{"stops in the first 200 KB of content", func(c net.Conn) {
		io.WriteString(c, okHead+"Content-Length: 1000000\r\n\r\n"+strings.Repeat("a", 200000))
	}, 200, true},
	{"stops in a chunk", func(c net.Conn) {
		io.WriteString(c, okHead+"Transfer-Encoding: chunked\r\n\r\n5\r\nabc")
	}, 200, true},
	{"stops before the last chunk", func(c net.Conn) {
		io.WriteString(c, okHead+"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
	}, 200, true},
}

func TestSlowAnswersEndWithTheirTimeLimit(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel()
	s := upstream(t, func(c net.Conn, req string) {
		var i int
		if n, _ := fmt.Sscanf(req, "GET /%d ", &i); n == 1 {
			slowAnswers[i].send(c)
		} else {
			fmt.Fprint(c, ok("quick"))
		}
	})
	r := start(t, single([]string{s.url}, noRetries, noBreaker, noEjection, "attemptTimeout: "+long.String()))
	var conns []*client
	for i := range slowAnswers {
		conns = append(conns, r.dial().send(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: s.test\r\n\r\n", i)))
	}
	for i, c := range slowAnswers {
		a, err := conns[i].final()
		if a.status != c.status || (err != nil) != c.broken {
			t.Errorf("%s: %d %.100q, %v", c.name, a.status, a.content, err)
		}
		if c.broken {
			conns[i].closed()
		} else if a := conns[i].get("/next"); a.status != 200 || a.content != "quick" {
			t.Errorf("%s: the next request got %d %q", c.name, a.status, a.content)
		}
	}
	eventually(t, "everything is given back", func() bool { return calm(r) })
}

// A head that grows a byte at a time is bounded by the time limit, one that grows fast by its length.
func TestHeadWithoutEnd(t *testing.T) {
	t.Parallel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for name, c := range map[string]struct {
		piece  string
		ticks  bool
		status int
	}{
		"slow": {"A: b\r\n", true, 504},
		"fast": {strings.Repeat("A: b\r\n", 500), false, 502},
	} {
		t.Run(name, func(t *testing.T) {
			s := rawUpstream(t, func(conn net.Conn, _ int) {
				readHead(bufio.NewReader(conn))
				for head := okHead; ; head = c.piece {
					if _, err := io.WriteString(conn, head); err != nil {
						return
					}
					if c.ticks {
						<-tick.C
					}
				}
			})
			limit := patience
			if c.ticks {
				limit = short
			}
			r := start(t, single([]string{s.url}, noRetries, noBreaker, "attemptTimeout: "+limit.String()))
			if a := r.get("/"); a.status != c.status {
				t.Errorf("%d %s", a.status, a.content)
			}
			eventually(t, "the connection to the service is closed", func() bool { return s.open() == 0 })
		})
	}
}

// The time limit of an attempt must not stay on its connection.
func TestTimeLimitEndsWithItsAttempt(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := echo(t)
	r := start(t, single([]string{s.url}, noRetries, noBreaker, "attemptTimeout: "+long.String()))
	for _, c := range []struct{ name, request string }{
		{"held", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 40000\r\n\r\n" + strings.Repeat("a", 40000)},
		{"streamed", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, r.addr).send(c.request)
			if c.name == "streamed" {
				conn.pause(short / 4).send("0\r\n\r\n")
			}
			if a := conn.answer(); a.status != 200 {
				t.Fatalf("%d %s", a.status, a.content)
			}
			for until := time.Now().Add(long + short); time.Now().Before(until); conn.pause(short / 4) {
				if a := conn.get("/"); a.status != 200 {
					t.Fatalf("%d %s", a.status, a.content)
				}
			}
		})
	}
	if n := s.connections(); n > 2 {
		t.Errorf("%d connections to the service", n)
	}
}
