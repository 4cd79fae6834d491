// Package backend is a server that counts what it gets and fails on command.
//
// The last part of a request's path is the command: a status ("503"), "hang" (no answer), "reset" (the connection is
// reset once the request was read), "close" (closed without an answer), "half" (a body that breaks off). Everything
// before it says whose request it is.
package backend

import (
	"context"
	"io"
	"net"
	"net/http"
	"path"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/internal/loopback"
)

// Attempt is one request that arrived.
type Attempt struct {
	Endpoint int // which of the endpoints got it
	Method   string
	At       time.Duration // since the backend started
}

// Backend is several endpoints with one memory. It may be used by several goroutines.
type Backend struct {
	Addresses []string // host:port of each endpoint
	// Dead are as many addresses at which connections are refused. Nobody else can come to listen there meanwhile.
	Dead     []string
	start    time.Time
	mu       sync.Mutex
	attempts map[string][]Attempt // by path
	open     map[string]int       // attempts that are not over
	changed  chan struct{}        // closed when something changes
}

// Start starts a backend with n endpoints and n dead addresses, which ends with the test.
func Start(t testing.TB, n int) *Backend {
	t.Helper()
	b := &Backend{start: time.Now(), attempts: map[string][]Attempt{}, open: map[string]int{},
		changed: make(chan struct{})}
	b.hold(t, n)
	for i := range n {
		l, err := loopback.Listen()
		if err != nil {
			t.Fatal(err)
		}
		ended, end := context.WithCancel(context.Background())
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.serve(i, w, r) }),
			BaseContext: func(net.Listener) context.Context { return ended }, Protocols: new(http.Protocols),
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				return context.WithValue(ctx, connection{}, c)
			}}
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true) // for proxies that speak gRPC
		go func() { _ = server.Serve(l) }()
		t.Cleanup(func() {
			end()
			_ = server.Close()
		})
		b.Addresses = append(b.Addresses, l.Addr().String())
	}
	return b
}

// hold takes n ports at which nobody listens: each is the near end of a connection.
func (b *Backend) hold(t testing.TB, n int) {
	t.Helper()
	l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for range n {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		b.Dead = append(b.Dead, conn.LocalAddr().String())
	}
}

// connection is the key of a request's connection in its context.
type connection struct{}

func (b *Backend) serve(endpoint int, w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	defer b.Arrived(endpoint, r.Method, r.URL.Path)()
	switch command := path.Base(r.URL.Path); command {
	case "hang":
		<-r.Context().Done()
	case "reset", "close":
		conn, _ := r.Context().Value(connection{}).(net.Conn)
		if r.ProtoMajor < 2 {
			var err error
			if conn, _, err = http.NewResponseController(w).Hijack(); err != nil {
				return
			}
		}
		if tcp, ok := conn.(*net.TCPConn); ok && command == "reset" {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	case "half":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
		panic(http.ErrAbortHandler)
	default:
		status, err := strconv.Atoi(command)
		if err != nil || status < 200 || status > 599 {
			status = http.StatusOK
		}
		w.WriteHeader(status)
		if status != http.StatusNoContent && status != http.StatusNotModified {
			_, _ = io.WriteString(w, "said on command\n")
		}
	}
}

// Arrived counts an attempt, for servers that speak something else than HTTP/1.1. They call the function that it
// returns when the attempt is over.
func (b *Backend) Arrived(endpoint int, method, path string) (over func()) {
	b.note(func() {
		b.attempts[path] = append(b.attempts[path], Attempt{endpoint, method, time.Since(b.start)})
		b.open[path]++
	})
	return func() { b.note(func() { b.open[path]-- }) }
}

func (b *Backend) note(what func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what()
	close(b.changed)
	b.changed = make(chan struct{})
}

// Attempts returns what arrived with a path, in order.
func (b *Backend) Attempts(path string) []Attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Attempt(nil), b.attempts[path]...)
}

// Await waits until ok holds of the number of attempts with a path, and of those of them that are not over. It reports
// false when the limit is over first.
func (b *Backend) Await(path string, limit time.Duration, ok func(all, open int) bool) bool {
	over := time.After(limit)
	for {
		b.mu.Lock()
		holds, changed := ok(len(b.attempts[path]), b.open[path]), b.changed
		b.mu.Unlock()
		if holds {
			return true
		}
		select {
		case <-changed:
		case <-over:
			return false
		}
	}
}
