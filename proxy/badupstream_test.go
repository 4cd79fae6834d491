package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// failing is an answer that brings nothing good.
type failing struct {
	name   string
	send   string
	stays  bool // the service does not close the connection behind it
	status int  // for the client, if no other attempt is made
	broken bool // the client gets the beginning of the answer and no proper end
}

const okHead = "HTTP/1.1 200 OK\r\n"

var answersRefused = []failing{
	{"nothing", "", false, 502, false},
	{"part of a status line", "HTTP/1.1 2", false, 502, false},
	{"part of a head", "HTTP/1.1 200 OK\r\nContent-Le", false, 502, false},
	{"head without its end", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", false, 502, false},
	{"interim answer only", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", false, 502, false},
	{"text", "hello\r\n\r\n", true, 502, false},
	{"HTTP/0.9", "<html>hello\r\n</html>\r\n\r\n", true, 502, false},
	{"SSH", "SSH-2.0-server\r\n\r\n", true, 502, false},
	{"TLS alert", "\x15\x03\x01\x00\x02\x02\x46", false, 502, false},
	{"HTTP/2 frame", "\x00\x00\x00\x04\x00\x00\x00\x00\x00", true, 502, false}, // has a NUL
	{"HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"status 99", "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"status 600", "HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"status of words", "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"Content-Length and Transfer-Encoding", okHead + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		true, 502, false},
	{"two Content-Lengths", okHead + "Content-Length: 5\r\nContent-Length: 4\r\n\r\nabcde", true, 502, false},
	{"list of Content-Lengths", okHead + "Content-Length: 5, 5\r\n\r\nabcde", true, 502, false},
	{"negative Content-Length", okHead + "Content-Length: -5\r\n\r\nabcde", true, 502, false},
	{"Content-Length beyond 63 bits", okHead + "Content-Length: 18446744073709551621\r\n\r\nabcde", true, 502, false},
	{"unknown coding", okHead + "Transfer-Encoding: gzip\r\n\r\nabcde", true, 502, false},
	{"chunked twice", okHead + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true,
		502, false},
	{"chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true, 502, false},
	{"folded line", okHead + "A: b\r\n c\r\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"bare LF", okHead + "A: b\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"bare CR", okHead + "A: b\rContent-Length: 0\r\n\r\n", true, 502, false},
	{"NUL", okHead + "A: \x00\r\nContent-Length: 0\r\n\r\n", true, 502, false},
	{"space before a colon", okHead + "Content-Length : 5\r\n\r\nabcde", true, 502, false},
	{"257 fields", okHead + strings.Repeat("A: b\r\n", 257) + "\r\n", true, 502, false},
	{"head of 70 KB", okHead + "A: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", true, 502, false},
	{"101 that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
		true, 502, false},
	{"100 interim answers", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100) + ok("late"), true, 502, false},
	{"1000 times 100 Continue", strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1000) + ok("late"), true, 502, false},
	{"interim answer with content", "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nabcde" + ok("late"), true,
		502, false},

	{"less than Content-Length", okHead + "Content-Length: 10\r\n\r\nabcd", false, 200, true},
	{"no content at all", okHead + "Content-Length: 10\r\n\r\n", false, 200, true},
	{"no chunk", okHead + "Transfer-Encoding: chunked\r\n\r\n", false, 200, true},
	{"part of a chunk size", okHead + "Transfer-Encoding: chunked\r\n\r\n1", false, 200, true},
	{"part of a chunk", okHead + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc", false, 200, true},
	{"no last chunk", okHead + "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n", false, 200, true},
	{"part of a trailer", okHead + "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\nA: b\r\n", false, 200, true},
	{"broken chunk size", okHead + "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\nx\r\n", true, 200, true},
	{"chunk longer than its size", okHead + "Transfer-Encoding: chunked\r\n\r\n4\r\nabcdef\r\n0\r\n\r\n", true, 200, true},
	{"endless chunk extensions", okHead + "Transfer-Encoding: chunked\r\n\r\n" +
		strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\na\r\n", 1000), true, 200, true},
}

// scripted answers the first attempt at /i with the ith of answers, and everything else well.
func scripted(t testing.TB, answers []failing) *server {
	return upstream(t, func(c net.Conn, req string) {
		i, err := strconv.Atoi(strings.TrimPrefix(strings.Fields(req)[1], "/"))
		if err != nil || field(req, "X-Envoy-Attempt-Count") != "1" {
			fmt.Fprint(c, ok(line(req)))
			return
		}
		if io.WriteString(c, answers[i].send); !answers[i].stays {
			c.Close()
		}
	})
}

// final reads answers until one is not interim.
func (c *client) final() (reply, error) {
	for {
		if a, err := c.read("GET"); err != nil || a.status >= 200 {
			return a, err
		}
	}
}

func TestBadAnswersAreFailures(t *testing.T) {
	s := scripted(t, answersRefused)
	r := start(t, single([]string{s.url}, noRetries, noBreaker, noEjection))
	for i, c := range answersRefused {
		t.Run(c.name, func(t *testing.T) {
			before := len(s.seen())
			conn := dial(t, r.addr).send(fmt.Sprintf("GET /%d HTTP/1.1\r\nHost: s.test\r\n\r\n", i))
			a, err := conn.final()
			if a.status != c.status || (err != nil) != c.broken {
				t.Errorf("status %d %q, error %v; want %d, broken off %v", a.status, a.content, err, c.status, c.broken)
			}
			if c.broken {
				conn.closed()
				conn = dial(t, r.addr)
			} else if a.header.Get("Abate-Reason") == "" || a.header.Get("X-Should-Retry") != "false" {
				t.Errorf("header %v", a.header)
			}
			if a := conn.get("/next"); a.status != 200 || a.content != "GET /next HTTP/1.1" {
				t.Errorf("the next request got %d %q", a.status, a.content)
			}
			if got := len(s.seen()) - before; got != 2 {
				t.Errorf("the service got %d requests", got)
			}
		})
	}
}

func TestBadAnswersAreTriedAgain(t *testing.T) {
	s := scripted(t, answersRefused)
	r := start(t, single([]string{s.url}, quickRetry, noBreaker, noEjection, "retryBudget: {ratio: 1, reserve: 1000}"))
	for i, c := range answersRefused {
		for _, ask := range []struct {
			name, head string
			again      bool
		}{
			{"GET", "GET /%d HTTP/1.1\r\nHost: s.test\r\n\r\n", true},
			{"POST", "POST /%d HTTP/1.1\r\nHost: s.test\r\nContent-Length: 2\r\n\r\nok", false},
			{"POST with a key", "POST /%d HTTP/1.1\r\nHost: s.test\r\nIdempotency-Key: 1\r\nContent-Length: 2\r\n\r\nok", true},
		} {
			t.Run(c.name+" "+ask.name, func(t *testing.T) {
				before := len(s.seen())
				conn := dial(t, r.addr).send(fmt.Sprintf(ask.head, i))
				a, err := conn.final()
				want, status := 2, 200
				if !ask.again || c.broken {
					want, status = 1, c.status
				}
				if a.status != status || (err != nil) != c.broken {
					t.Errorf("status %d %q, error %v; want %d", a.status, a.content, err, status)
				}
				if got := len(s.seen()) - before; got != want {
					t.Errorf("the service got %d requests, want %d", got, want)
				}
			})
		}
	}
}

// longer are answers with more bytes than they may have.
var longer = []struct{ name, request, answer, extra, content string }{
	{"Content-Length", "GET", okHead + "Content-Length: 4\r\n\r\nmine", ok("stolen"), "mine"},
	{"Content-Length: 0", "GET", okHead + "Content-Length: 0\r\n\r\n", ok("stolen"), ""},
	{"chunks", "GET", okHead + "Transfer-Encoding: chunked\r\n\r\n4\r\nmine\r\n0\r\n\r\n", ok("stolen"), "mine"},
	{"204", "GET", "HTTP/1.1 204 No Content\r\n\r\n", ok("stolen"), ""},
	{"204 with Content-Length", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 300\r\n\r\n", ok("stolen"), ""},
	{"304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 300\r\n\r\n", ok("stolen"), ""},
	{"HEAD", "HEAD", okHead + "Content-Length: 300\r\n\r\n", ok("stolen"), ""},
	{"HEAD in chunks", "HEAD", okHead + "Transfer-Encoding: chunked\r\n\r\n", "4\r\nmine\r\n0\r\n\r\n" + ok("stolen"), ""},
	{"100 Continue unasked", "GET", okHead + "Content-Length: 4\r\n\r\nmine", "HTTP/1.1 100 Continue\r\n\r\n" +
		ok("stolen"), "mine"},
	{"408 on the idle connection", "GET", okHead + "Content-Length: 4\r\n\r\nmine",
		"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", "mine"},
	{"one byte", "GET", okHead + "Content-Length: 4\r\n\r\nmine", "\n", "mine"},
}

// TestBytesBeyondAnAnswerAreNotTheNext sends them with the answer, and after the client has got it.
func TestBytesBeyondAnAnswerAreNotTheNext(t *testing.T) {
	for _, c := range longer {
		for _, at := range []string{"at once", "later"} {
			t.Run(c.name+" "+at, func(t *testing.T) {
				got, sent := make(chan struct{}), make(chan struct{})
				s := upstream(t, func(conn net.Conn, req string) {
					switch {
					case line(req) != c.request+" /trick HTTP/1.1":
						fmt.Fprint(conn, ok("own"))
					case at == "at once":
						fmt.Fprint(conn, c.answer+c.extra)
					default:
						fmt.Fprint(conn, c.answer)
						<-got
						fmt.Fprint(conn, c.extra)
						close(sent)
					}
				})
				r := start(t, single([]string{s.url}, noRetries, noBreaker, noEjection))
				conn := r.dial().send(c.request + " /trick HTTP/1.1\r\nHost: s.test\r\n\r\n")
				if a, err := conn.read(c.request); err != nil || a.content != c.content {
					t.Fatalf("%d %q, %v", a.status, a.content, err)
				}
				if close(got); at == "later" {
					soon(t, "the bytes beyond", sent)
				}
				for _, conn := range []*client{conn, r.dial()} {
					if a := conn.get("/next"); a.status != 200 || a.content != "own" {
						t.Errorf("the next request got %d %q", a.status, a.content)
					}
				}
			})
		}
	}
}

func TestConnectionClosedWhileIdleCostsNobodyAnAnswer(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, noRetries, noBreaker, noEjection))
	conn := r.dial()
	for i := range 20 {
		if a := conn.get("/"); a.status != 200 {
			t.Fatalf("GET %d: %d %s", i, a.status, a.content)
		}
		s.drop()
		if a := conn.send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 1\r\n\r\na").answer(); a.status != 200 {
			t.Fatalf("POST %d: %d %s", i, a.status, a.content)
		}
		s.drop()
	}
}

// early answers as soon as it has the head of a request, and closes the connection, or keeps it but reads no more.
func early(t testing.TB, closes bool) *server {
	end := make(chan struct{})
	s := rawUpstream(t, func(c net.Conn, _ int) {
		readHead(bufio.NewReader(c))
		fmt.Fprint(c, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 4\r\n\r\nmuch")
		if !closes {
			<-end
		}
	})
	t.Cleanup(func() { close(end) })
	return s
}

// readHead reads the head of a message.
func readHead(in *bufio.Reader) string {
	var b strings.Builder
	for {
		l, err := in.ReadString('\n')
		if b.WriteString(l); err != nil || l == "\r\n" {
			return b.String()
		}
	}
}

// endless writes until the connection ends, and tells how long it took.
func endless(c *client, piece string) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := io.WriteString(c, piece); err != nil {
				return
			}
		}
	}()
	return done
}

func TestAnswerBeforeTheRequestHasBeenSent(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	chunk := "2000\r\n" + strings.Repeat("a", 0x2000) + "\r\n"
	for _, c := range []struct {
		name, head, piece string
		closes            bool
	}{
		{"Content-Length, closed", "Content-Length: 1000000000000", chunk, true},
		{"Content-Length, open", "Content-Length: 1000000000000", chunk, false},
		{"chunks, closed", "Transfer-Encoding: chunked", chunk, true},
		{"chunks, open", "Transfer-Encoding: chunked", chunk, false},
	} {
		for _, retries := range []string{noRetries, quickRetry} {
			t.Run(c.name+" "+retries, func(t *testing.T) {
				s := early(t, c.closes)
				r := start(t, single([]string{s.url}, retries, noBreaker, noEjection))
				conn := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\n" + c.head + "\r\n\r\n")
				done := endless(conn, c.piece)
				if a := conn.answer(); a.status != 413 || a.content != "much" || !a.close {
					t.Errorf("%d %q, close %v", a.status, a.content, a.close)
				}
				soon(t, "the end of the request", done)
				if n := s.connections(); n != 1 {
					t.Errorf("sent %d times", n)
				}
				eventually(t, "the connection to the service is closed", func() bool {
					return c.closes || r.guard().Endpoints[0].Idle == 0
				})
			})
		}
	}
}

func TestBothDirectionsFlowAtOnceOverHTTP1(t *testing.T) {
	s := rawUpstream(t, func(c net.Conn, _ int) {
		in := bufio.NewReader(c)
		readHead(in)
		fmt.Fprint(c, okHead+"Content-Length: 200000\r\n\r\n")
		io.Copy(c, io.LimitReader(in, 200000))
	})
	r := start(t, single([]string{s.url}, noBreaker))
	conn := r.dial().send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 200000\r\n\r\n")
	if head := readHead(conn.in); !strings.HasPrefix(head, okHead) {
		t.Fatalf("%q", head)
	}
	for i := range 20 {
		piece := strings.Repeat(string(rune('a'+i)), 10000)
		conn.send(piece)
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(conn.in, got); err != nil || string(got) != piece {
			t.Fatalf("piece %d is %.20q, %v", i, got, err)
		}
	}
	conn.closed() // as its answer said: the request had not been read then
}

func TestRequestThatIsNotRepeatableIsSentOnce(t *testing.T) {
	var sent atomic.Int64
	for _, answer := range []string{
		"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\nConte", "",
	} {
		s := upstream(t, func(c net.Conn, req string) {
			sent.Add(1)
			if io.WriteString(c, answer); !strings.HasSuffix(answer, "\r\n\r\n") {
				c.Close()
			}
		})
		r := start(t, single([]string{s.url, s.url + "/again"}, quickRetry, noBreaker, noEjection,
			"retryBudget: {ratio: 1, reserve: 1000}"))
		for _, c := range []struct {
			request string
			want    int64
		}{
			{"GET / HTTP/1.1\r\nHost: s.test\r\n\r\n", 4},
			{"HEAD / HTTP/1.1\r\nHost: s.test\r\n\r\n", 4},
			{"POST / HTTP/1.1\r\nHost: s.test\r\n\r\n", 1},
			{"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\n\r\nabcd", 1},
			{"PATCH / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n", 1},
			{"DELETE / HTTP/1.1\r\nHost: s.test\r\n\r\n", 1},
			{"get / HTTP/1.1\r\nHost: s.test\r\n\r\n", 1},
			{"POST / HTTP/1.1\r\nHost: s.test\r\nIdempotency-Key: 1\r\nContent-Length: 4\r\n\r\nabcd", 4},
			{"POST / HTTP/1.1\r\nHost: s.test\r\nIdempotency-Key: 1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
				4},
			{"POST / HTTP/1.1\r\nHost: s.test\r\nIdempotency-Key:\r\nContent-Length: 4\r\n\r\nabcd", 1},
			// too long to be held
			{"GET / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 100000), 1},
		} {
			sent.Store(0)
			conn := r.dial().send(c.request)
			if a, err := conn.read(strings.Fields(c.request)[0]); err != nil || a.status < 500 {
				t.Errorf("%.30q: %d %q, %v", c.request, a.status, a.content, err)
			}
			if got := sent.Load(); got != c.want {
				t.Errorf("%.200q answered with %q: sent %d times, want %d", c.request, answer, got, c.want)
			}
			conn.Close()
		}
	}
}

// nobody is the address of a port where nobody listens.
func nobody(t testing.TB) string {
	l := listen(t)
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestRefusedConnectionGoesToTheOtherEndpoint(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{nobody(t), s.url}, quickRetry, noBreaker, noEjection,
		"retryBudget: {ratio: 1, reserve: 1000}"))
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: s.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\n\r\nabcd",
		"POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("a", 100000),
	} {
		conn := r.dial()
		for range 20 {
			before := len(s.seen())
			if a := conn.send(request).answer(); a.status != 200 {
				t.Errorf("%.20q: %d %s", request, a.status, a.content)
			}
			if got := len(s.seen()) - before; got != 1 {
				t.Errorf("%.20q: sent %d times", request, got)
			}
		}
	}
}

// atOnce gathers what is written until the service reads again, so that several TLS records come together.
type atOnce struct {
	net.Conn
	held []byte
}

func (c *atOnce) Write(p []byte) (int, error) { c.held = append(c.held, p...); return len(p), nil }

func (c *atOnce) Read(p []byte) (int, error) { c.let(); return c.Conn.Read(p) }

func (c *atOnce) let() { c.Conn.Write(c.held); c.held = nil }

// Over TLS unasked bytes may have been read from the socket along with the answer, and a closed connection has an alert
// to be read.
func TestBytesBeyondAnAnswerOverTLS(t *testing.T) {
	cert := trusted.issue(t)
	for _, end := range []string{"another answer at once", "another answer later", "closed"} {
		t.Run(end, func(t *testing.T) {
			got, sent := make(chan struct{}), make(chan struct{}, 2)
			s := rawUpstream(t, func(nc net.Conn, n int) {
				raw := &atOnce{Conn: nc}
				c := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}})
				for in := bufio.NewReader(c); ; {
					if readHead(in) == "" {
						return
					}
					io.WriteString(c, ok("own"))
					if n > 1 {
						raw.let()
						continue
					}
					switch end {
					case "another answer at once":
						io.WriteString(c, ok("stolen"))
					case "another answer later":
						raw.let()
						<-got
						io.WriteString(c, ok("stolen"))
					case "closed":
						c.CloseWrite()
						nc.SetWriteDeadline(time.Time{}) // it has set one
					}
					raw.let()
					sent <- struct{}{}
				}
			})
			r := start(t, single([]string{strings.Replace(s.url, "http:", "https:", 1)}, noRetries, noBreaker, noEjection))
			conn := r.dial()
			if a := conn.get("/"); a.content != "own" {
				t.Fatalf("%d %q", a.status, a.content)
			}
			close(got)
			soon(t, "the bytes beyond", sent)
			for range 2 {
				if a := conn.send("POST / HTTP/1.1\r\nHost: s.test\r\n\r\n").answer(); a.status != 200 || a.content != "own" {
					t.Errorf("the next request got %d %q", a.status, a.content)
				}
			}
		})
	}
}
