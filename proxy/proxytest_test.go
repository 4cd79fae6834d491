package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abateredis/trial"
	"github.com/abate-go/abate/internal/loopback"
	"github.com/abate-go/abate/proxy"
	"github.com/abate-go/abate/proxy/sharing"
)

// patience bounds every wait for something that must happen. It is long because the machine may be slow.
const patience = 60 * time.Second

// runChild is what another process of this program does: see scarce. It is nil where there is none.
var runChild func(policy string) error

func TestMain(m *testing.M) {
	if policy := os.Getenv("ABATE_TEST_PROXY_POLICY"); policy != "" && runChild != nil {
		if err := runChild(policy); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if left := goroutinesLeft(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines left after all tests:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// running is a proxy under test.
type running struct {
	t     testing.TB
	addr  string // of the listener for clients
	proxy *proxy.Proxy
	admin http.Handler
	file  string // of the policy
	once  sync.Once
}

// start runs a proxy with a policy file on a port of loopback. It is shut down, which must not take long, when the test
// ends.
func start(t testing.TB, policyYAML string, change ...func(*proxy.Config)) *running {
	t.Helper()
	r := &running{t: t, file: filepath.Join(t.TempDir(), "policy.yaml")}
	r.write(policyYAML)
	c := proxy.Config{Policy: r.file, Log: slog.New(slog.DiscardHandler), ConnectTimeout: patience / 4, UpstreamMaxAge: -1,
		Sharing: sharing.Redis(trial.Start)}
	for _, f := range change {
		f(&c)
	}
	var err error
	if r.proxy, err = proxy.New(c); err != nil {
		t.Fatal(err)
	}
	r.admin = r.proxy.Admin()
	l := listen(t)
	r.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- r.proxy.Serve(l) }()
	t.Cleanup(func() {
		r.shutdown()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// write replaces the policy file.
func (r *running) write(policyYAML string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(policyYAML), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// shutdown ends the proxy, which must not have to cut anybody off.
func (r *running) shutdown() {
	r.t.Helper()
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.proxy.Shutdown(ctx); err != nil {
			r.t.Errorf("Shutdown: %v; goroutines:\n%s", err, goroutinesLeft())
		}
	})
}

// guardState is what /guards tells about a service.
type guardState struct {
	Service string `json:"service"`
	Breaker struct {
		State    string `json:"state"`
		Calls    int    `json:"calls"`
		Openings int    `json:"openings"`
	} `json:"circuitBreaker"`
	Budget   float64 `json:"retryBudgetBalance"`
	Bulkhead struct {
		Running int `json:"running"`
		Queued  int `json:"queued"`
	} `json:"bulkhead"`
	Endpoints []struct {
		URL     string `json:"url"`
		Pending int    `json:"pending"`
		Idle    int    `json:"idleConnections"`
		HTTP2   int    `json:"http2Connections"`
		Ejected bool   `json:"ejected"`
	} `json:"endpoints"`
}

// guard returns the first service of /guards.
func (r *running) guard() guardState {
	r.t.Helper()
	var report struct{ Services []guardState }
	if err := json.Unmarshal([]byte(r.adminGet("/guards")), &report); err != nil || len(report.Services) == 0 {
		r.t.Fatalf("/guards: %v", err)
	}
	return report.Services[0]
}

// adminGet returns a page of the admin handler.
func (r *running) adminGet(path string) string {
	w := httptest.NewRecorder()
	r.admin.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Body.String()
}

// single is a policy with one service, "s", for every host, with these upstreams and more keys of the service, if any,
// as lines like "maxRetries: 0".
func single(upstreams []string, keys ...string) string {
	lines := append([]string{`upstreams: ["` + strings.Join(upstreams, `", "`) + `"]`, "routes: [{path: /}]"}, keys...)
	return "services:\n  s:\n    " + strings.Join(lines, "\n    ") + "\n"
}

// forward is single for clients that take the proxy for one of theirs, and ask for http://s.test/.
func forward(upstreams []string, keys ...string) string {
	return strings.Replace(single(upstreams, keys...), "routes: [{path: /}]", "routes: [{path: /}, {host: s.test}]", 1)
}

// Keys for single.
const (
	noRetries = "maxRetries: 0"
	noBreaker = "circuitBreaker: {disabled: true}"
	// the kind adaptive tries no slow attempt again of a service that has never answered
	retriesSlow = "circuitBreaker: {kind: thresholds}"
	noEjection  = "outlierDetection: {disabled: true}"
	quickRetry  = "initialDelay: 1ms"
)

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// server is an upstream that a test scripts.
type server struct {
	url string // of plain HTTP

	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	accepted int
	requests []string
}

// rawUpstream runs serve for every connection, which is the nth, from 1. It is closed when serve returns or the test
// ends.
func rawUpstream(t testing.TB, serve func(c net.Conn, n int)) *server {
	t.Helper()
	l := listen(t)
	s := &server{url: "http://" + l.Addr().String(), conns: map[net.Conn]struct{}{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.accepted++
			n := s.accepted
			s.conns[c] = struct{}{}
			s.mu.Unlock()
			all.Go(func() {
				defer s.forget(c)
				serve(c, n)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.drop()
		all.Wait()
	})
	return s
}

// upstream answers requests one after the other with answer, which writes to c whatever it likes. req is a whole
// request as the proxy wrote it, head and body, chunks not decoded. A request that is not complete is never seen.
func upstream(t testing.TB, answer func(c net.Conn, req string)) *server {
	t.Helper()
	ready := make(chan *server, 1)
	s := rawUpstream(t, func(c net.Conn, _ int) {
		s := <-ready
		ready <- s
		for in := bufio.NewReader(c); ; {
			req, err := readMessage(in)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.requests = append(s.requests, req)
			s.mu.Unlock()
			answer(c, req)
		}
	})
	ready <- s
	return s
}

func (s *server) forget(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// drop closes all connections.
func (s *server) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// seen is the requests so far.
func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// connections is how many there have been.
func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// open is how many connections there are now.
func (s *server) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// readMessage reads one message: a head, and a body by Content-Length or in chunks.
func readMessage(in *bufio.Reader) (string, error) {
	var b strings.Builder
	length, chunked := int64(0), false
	for {
		line, err := in.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			return b.String(), err
		}
		if line == "\r\n" {
			break
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch strings.ToLower(name) {
		case "content-length":
			fmt.Sscan(value, &length)
		case "transfer-encoding":
			chunked = true
		}
	}
	_, err := io.CopyN(&b, in, length)
	for last := false; chunked && err == nil; {
		var line string
		line, err = in.ReadString('\n')
		b.WriteString(line)
		switch size := int64(0); {
		case err != nil:
		case last:
			chunked = line != "\r\n"
		default:
			if _, err = fmt.Sscanf(line, "%x", &size); err != nil {
				break
			}
			if last = size == 0; !last {
				_, err = io.CopyN(&b, in, size+2)
			}
		}
	}
	return b.String(), err
}

// ok is an answer with that content.
func ok(content string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(content), content)
}

// line is the request line of a request as an upstream got it.
func line(req string) string { first, _, _ := strings.Cut(req, "\r\n"); return first }

// field is a field of a message, "" if it has none.
func field(message, name string) string {
	head, _, _ := strings.Cut(message, "\r\n\r\n")
	for l := range strings.SplitSeq(head, "\r\n") {
		if n, value, found := strings.Cut(l, ":"); found && strings.EqualFold(n, name) {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// content is what follows the head of a message.
func content(message string) string { _, c, _ := strings.Cut(message, "\r\n\r\n"); return c }

// client is a connection to a proxy.
type client struct {
	t testing.TB
	*net.TCPConn
	in *bufio.Reader
}

// reply is an answer that a client got.
type reply struct {
	status  int
	header  http.Header
	trailer http.Header
	content string
	close   bool // the answer said Connection: close
}

func (r *running) dial() *client { r.t.Helper(); return dial(r.t, r.addr) }

func dial(t testing.TB, addr string) *client {
	t.Helper()
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { nc.Close() })
	return &client{t, nc.(*net.TCPConn), bufio.NewReader(nc)}
}

// send writes bytes as they are.
func (c *client) send(s string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Errorf("sending: %v", err)
	}
	return c
}

// read reads the answer to a request with that method. Interim answers are answers of their own.
func (c *client) read(method string) (reply, error) {
	resp, err := http.ReadResponse(c.in, &http.Request{Method: method})
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, resp.Trailer, string(body), resp.Close}, err
}

// answer reads the answer to a GET or a POST, which must be well-formed.
func (c *client) answer() reply {
	c.t.Helper()
	a, err := c.read("GET")
	if err != nil {
		c.t.Fatalf("reading the answer: %v", err)
	}
	return a
}

// get sends a GET and returns the answer.
func (c *client) get(path string) reply {
	c.t.Helper()
	return c.send("GET " + path + " HTTP/1.1\r\nHost: s.test\r\n\r\n").answer()
}

// closed checks that the proxy closes the connection, and sends nothing more.
func (c *client) closed() {
	c.t.Helper()
	rest, err := io.ReadAll(c.in)
	if len(rest) > 0 {
		c.t.Errorf("more came from the proxy: %q", rest)
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		c.t.Error("the proxy did not close the connection")
	}
}

// get sends a GET on a connection of its own.
func (r *running) get(path string) reply {
	r.t.Helper()
	c := r.dial()
	defer c.Close()
	return c.get(path)
}

// eventually waits until cond holds. It is for what no channel or socket tells of.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience); !cond(); <-tick.C {
		if time.Now().After(until) {
			t.Fatalf("never: %s; goroutines:\n%s", what, goroutinesLeft())
		}
	}
}

// soon receives from ch.
func soon[T any](t testing.TB, what string, ch <-chan T) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(patience):
		t.Fatalf("never: %s; goroutines:\n%s", what, goroutinesLeft())
	}
}

// goroutinesLeft returns the stacks of goroutines that run code of the proxy, "" when there are none, after giving them
// a while to end. Tests that run in parallel have theirs too.
func goroutinesLeft() string {
	var left string
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(patience / 3); time.Now().Before(until); <-tick.C {
		buf := make([]byte, 4<<20)
		buf = buf[:runtime.Stack(buf, true)]
		left = ""
		for stack := range strings.SplitSeq(string(buf), "\n\n") {
			if strings.Contains(stack, "abate/proxy.") || strings.Contains(stack, "abate/proxy/h2.") ||
				strings.Contains(stack, "net/http.") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
	}
	return left
}

// socketPath is a path that is short enough for a socket, wherever tests have their folders.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "abate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}
