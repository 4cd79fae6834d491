package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func upstream(t *testing.T) (addr string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestGoProxiesPassTheUpstreamsAnswerOn(t *testing.T) {
	up := upstream(t)
	std := httptest.NewServer(reverseProxy(up))
	t.Cleanup(std.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	quick, ended := fastProxy(up), make(chan error, 1)
	go func() { ended <- quick.Serve(l) }()
	t.Cleanup(func() {
		if err := quick.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for name, addr := range map[string]string{
		"upstream": up, stdlib: std.Listener.Addr().String(), fast: l.Addr().String(),
	} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 { // on one connection: it is kept open
			if err := exchange(conn, smallRequest(addr), make([]byte, 4*bodySize)); err != nil {
				t.Errorf("%s, request %d: %v", name, i, err)
			}
		}
		conn.Close()
		if err := probe(t.Context(), addr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLongAnswersComeWholeAndFramedAsAskedFor(t *testing.T) {
	up := upstream(t)
	std := httptest.NewServer(reverseProxy(up))
	t.Cleanup(std.Close)
	for _, addr := range []string{up, std.Listener.Addr().String()} {
		for _, chunked := range []bool{false, true} {
			if took, err := download(t.Context(), addr, 3*mib+7, chunked); err != nil || took <= 0 {
				t.Errorf("chunked %t: %v, %v", chunked, took, err)
			}
		}
	}
}

func TestDownloadRefusesOtherAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		chunked bool
		want    string
	}{
		"status": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, false, "502"},
		"short": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 99))
		}, false, "got 99 of 100 bytes"},
		"framing": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 100))
		}, true, "asked for chunked=true"},
		"framing the other way": {func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			_, _ = w.Write(make([]byte, 100))
		}, false, "asked for chunked=false"},
	} {
		s := httptest.NewServer(c.answer)
		_, err := download(t.Context(), s.Listener.Addr().String(), 100, c.chunked)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		s.Close()
	}
}

// raw answers every connection with text once it has read something, and closes it.
func raw(t *testing.T, text string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestExchangeRefusesOtherAnswers(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":  {"", "closed before the answer was complete"},
		"half":     {head + "xxx", "closed before the answer was complete"},
		"too much": {head + strings.Repeat("x", bodySize+3), "3 bytes after the end"},
		"status":   {"HTTP/1.1 503 No\r\n\r\n", "not 200"},
		"endless":  {strings.Repeat("x", 5*bodySize), "more than"},
	} {
		if err := probe(t.Context(), raw(t, c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := probe(t.Context(), raw(t, head+strings.Repeat("x", bodySize))); err != nil {
		t.Errorf("a whole answer: %v", err)
	}
}

func TestOwnLoadCountsWhatItSees(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case n == 10:
			w.WriteHeader(http.StatusServiceUnavailable)
		case n == 100:
			cancel()
			fallthrough
		default:
			answer(w, r)
		}
	}))
	defer s.Close()
	var w worker
	w.run(ctx, shapes[0], s.Listener.Addr().String())
	if len(w.latencies) != 99 || w.failed != 1 {
		t.Errorf("%d answered and %d failed, want 99 and 1", len(w.latencies), w.failed)
	}
	if slices.Min(w.latencies) <= 0 {
		t.Errorf("an answer after %v", slices.Min(w.latencies))
	}
}

func TestOwnLoadEndsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cancel()
		answer(w, r)
	}))
	defer s.Close()
	if r, err := ownLoad(ctx, shapes[0], s.Listener.Addr().String(), time.Hour); err == nil {
		t.Errorf("a result: %+v", r)
	}
}

func TestQuantiles(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i)
	}
	for q, want := range map[float64]time.Duration{0: 0, 0.5: 50, 0.99: 99, 1: 99} {
		if got := quantile(hundred, q); got != want {
			t.Errorf("%v: %d, want %d", q, got, want)
		}
	}
	if got := quantile(hundred[:1], 0.99); got != 0 {
		t.Errorf("of one value: %d", got)
	}
}

func TestClientsNoticeAConnectionThatWasNotKept(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(answer))
	defer s.Close()
	c, err := openClients(t.Context(), s.Listener.Addr().String(), 40)
	defer c.close()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.askAgain(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.CloseClientConnections()
	if err := c.askAgain(t.Context()); err == nil || !strings.Contains(err.Error(), "was not kept open") {
		t.Errorf("after they were closed: %v", err)
	}
}
