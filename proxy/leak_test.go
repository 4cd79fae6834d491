package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/proxy"
)

// leaving is how a client goes.
var leaving = []struct {
	name  string
	leave func(*client)
}{
	{"closes", func(c *client) { c.Close() }},
	{"closes one half", func(c *client) { c.CloseWrite() }},
	{"resets", func(c *client) { c.SetLinger(0); c.Close() }},
}

// ways are policies under which a request takes different ways through the proxy.
var ways = []struct{ name, keys string }{
	{"no retries", noRetries},
	{"retries", "maxRetries: 5\n    initialDelay: 1ms"},
	{"hedging", "hedge: {delay: 1h}"},
	{"a copy in the air", "hedge: {delay: 1ms}"},
}

const roomy = "bulkhead: {maxConcurrentCalls: 3, maxQueue: 10, maxWait: 1h}"

// counting is a breaker that counts, and opens at the first failure.
const counting = "circuitBreaker: {failureThreshold: 1}"

// silentUpstream reads requests and answers none. It tells when one has come, and when its connection has ended.
func silentUpstream(t testing.TB) (s *server, came, ended chan struct{}) {
	came, ended = make(chan struct{}, 100), make(chan struct{}, 100)
	return rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		readHead(in)
		came <- struct{}{}
		io.Copy(io.Discard, in)
		ended <- struct{}{}
	}), came, ended
}

// unharmed checks that clients that left have left nothing behind, and are not held against the service.
func unharmed(t testing.TB, r *running) {
	t.Helper()
	eventually(t, "everything is given back", func() bool { return calm(r) })
	if g := r.guard(); g.Breaker.State != "closed" || g.Breaker.Openings != 0 {
		t.Errorf("the breaker has counted it: %+v", g.Breaker)
	}
}

func TestClientLeavesDuringAnAttempt(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s, came, ended := silentUpstream(t)
			r := start(t, single([]string{s.url}, way.keys, roomy, counting))
			var conns []*client
			for range leaving {
				conns = append(conns, r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n"))
			}
			for range conns {
				soon(t, "an attempt", came)
			}
			for i, l := range leaving {
				l.leave(conns[i])
			}
			for range conns {
				soon(t, "the end of the attempt", ended)
			}
			conns[1].closed() // has left with one half only
			unharmed(t, r)
			eventually(t, "all attempts have ended", func() bool { return s.open() == 0 })
			if got := s.connections(); got != len(leaving) && way.name != "a copy in the air" {
				t.Errorf("%d attempts", got)
			}
		})
	}
}

func TestClientLeavesWhileItSends(t *testing.T) {
	t.Parallel()
	for _, head := range []string{
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 1000000\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
	} {
		s, came, ended := silentUpstream(t)
		r := start(t, single([]string{s.url}, roomy, counting, quickRetry))
		for _, l := range leaving {
			conn := r.dial().send(head)
			soon(t, "an attempt", came)
			l.leave(conn)
			soon(t, "the end of the attempt", ended)
		}
		unharmed(t, r)
		if got := s.connections(); got != len(leaving) {
			t.Errorf("%d attempts", got)
		}
	}
}

func TestClientLeavesBeforeItsContentHasCome(t *testing.T) {
	t.Parallel()
	s := echo(t)
	r := start(t, single([]string{s.url}, roomy, counting, quickRetry))
	for _, head := range []string{
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 10\r\n\r\nabc",
		"GET / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Le",
	} {
		for _, l := range leaving {
			conn := r.dial().send(head)
			if l.leave(conn); l.name == "closes one half" {
				conn.closed()
			}
		}
	}
	unharmed(t, r)
	if got := s.seen(); len(got) != 0 {
		t.Errorf("the service got %q", got)
	}
}

func TestClientLeavesDuringTheAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range endlessAnswers {
		for _, way := range ways {
			if way.name == "a copy in the air" {
				continue
			}
			s, ended := pouring(t, c.head, c.piece)
			r := start(t, single([]string{s.url}, way.keys, roomy, counting))
			for _, l := range leaving {
				if l.name == "closes one half" {
					continue // and goes on reading: it gets its answer
				}
				conn := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
				io.CopyN(io.Discard, conn, 1<<20)
				l.leave(conn)
				soon(t, "the end of the attempt", ended)
			}
			unharmed(t, r)
		}
	}
}

func TestClientLeavesDuringBackOff(t *testing.T) {
	t.Parallel()
	for _, hedge := range []string{"hedge: {disabled: true}", "hedge: {delay: 1h}"} {
		t.Run(hedge, func(t *testing.T) {
			answered := make(chan struct{}, 10)
			s := upstream(t, func(c net.Conn, _ string) {
				io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
				answered <- struct{}{}
			})
			r := start(t, single([]string{s.url}, hedge, roomy, noBreaker,
				"backoff: fixed\n    jitter: none\n    initialDelay: 1h\n    maxDelay: 1h"))
			for _, l := range leaving {
				conn := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
				soon(t, "an answer", answered)
				l.leave(conn)
			}
			eventually(t, "everything is given back", func() bool { return calm(r) })
			if got := len(s.seen()); got != len(leaving) {
				t.Errorf("%d attempts", got)
			}
		})
	}
}

func TestClientLeavesTheQueue(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	t.Parallel()
	for _, hedge := range []string{"hedge: {disabled: true}", "hedge: {delay: 1h}"} {
		t.Run(hedge, func(t *testing.T) {
			s, came, ended := silentUpstream(t)
			r := start(
				t, single([]string{s.url}, hedge, counting, "bulkhead: {maxConcurrentCalls: 1, maxQueue: 10, maxWait: 1h}"))
			first := r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n")
			soon(t, "an attempt", came)
			var conns []*client
			for i := range leaving {
				conns = append(conns, r.dial().send("GET / HTTP/1.1\r\nHost: s.test\r\n\r\n"))
				eventually(t, "the client queues", func() bool { return r.guard().Bulkhead.Queued == i+1 })
			}
			for i, l := range leaving {
				l.leave(conns[i])
			}
			eventually(t, "the queue is empty", func() bool { return r.guard().Bulkhead.Queued == 0 })
			first.Close()
			soon(t, "the end of the attempt", ended)
			unharmed(t, r)
			if got := s.connections(); got != 1 {
				t.Errorf("%d attempts", got)
			}
		})
	}
}

// TestNothingIsLeftAfterAStorm has many clients that leave at any point of their requests, with services that break
// off.
func TestNothingIsLeftAfterAStorm(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	if left := goroutinesLeft(); left != "" {
		t.Fatalf("before the test:\n%s", left)
	}
	s := rawUpstream(t, func(c net.Conn, n int) {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		for in := bufio.NewReader(c); ; {
			if _, err := readMessage(in); err != nil {
				return
			}
			answer := ok(strings.Repeat("a", rng.IntN(40000)))
			switch rng.IntN(6) {
			case 0:
				io.WriteString(c, answer[:rng.IntN(len(answer))])
				return
			case 1:
				io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
			case 2:
				io.Copy(io.Discard, in) // says nothing
			default:
				io.WriteString(c, answer)
			}
		}
	})
	for _, way := range ways {
		keys := strings.Replace(way.keys, "1h", "40ms", 1)
		r := start(t, single([]string{s.url, nobody(t)}, keys, noBreaker, "attemptTimeout: 50ms",
			"bulkhead: {maxConcurrentCalls: 8, maxQueue: 8, maxWait: 20ms}"),
			stallTimeout(short), headerTimeout(short), func(c *proxy.Config) { c.MaxBufferedBody = 1000 })
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() { storm(t, r, rand.New(rand.NewPCG(uint64(i), 2))) })
		}
		all.Wait()
		eventually(t, "everything is given back", func() bool { return calm(r) })
		r.shutdown()
		eventually(t, "no connection to the service is left", func() bool { return s.open() == 0 })
	}
	if left := goroutinesLeft(); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}

// storm sends requests and leaves at some point of each.
func storm(t *testing.T, r *running, rng *rand.Rand) {
	requests := []string{
		"GET / HTTP/1.1\r\nHost: s.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 500\r\n\r\n" + strings.Repeat("b", 500),
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 50000\r\n\r\n" + strings.Repeat("b", 50000),
		"PUT / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("1000\r\n%s\r\n", strings.Repeat("b", 4096)) + "0\r\n\r\n",
	}
	for range 15 {
		nc, err := net.DialTimeout("tcp", r.addr, patience)
		if err != nil {
			t.Error(err)
			return
		}
		nc.SetDeadline(time.Now().Add(patience))
		request := requests[rng.IntN(len(requests))]
		if rng.IntN(3) == 0 {
			request = request[:rng.IntN(len(request))]
		}
		io.WriteString(nc, request)
		if rng.IntN(3) > 0 {
			nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			io.CopyN(io.Discard, nc, int64(1+rng.IntN(50000)))
		}
		if rng.IntN(2) == 0 {
			nc.(*net.TCPConn).SetLinger(0)
		}
		nc.Close()
	}
}
