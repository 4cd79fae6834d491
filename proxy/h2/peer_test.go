package h2_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// in returns a deadline on the clock of the guards.
func in(d time.Duration) time.Duration { return core.Now() + d }

const patience = 60 * time.Second

// field makes fields of pairs of strings.
func field(pairs ...string) (list []h2.Field) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, h2.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return list
}

// value returns that of the first field with the name, "" if there is none.
func value(list []h2.Field, name string) string {
	for _, f := range list {
		if string(f.Name) == name {
			return string(f.Value)
		}
	}
	return ""
}

// serve serves clients on a loopback address, with handle, until the test ends. Then it waits for all goroutines.
func serve(t testing.TB, config *h2.Config, handle func(*h2.Stream)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []*h2.Conn
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			c := h2.NewServer(nc, config, handle)
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			all.Go(func() { c.Serve(nil) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
		all.Wait()
	})
	return l.Addr().String()
}

// dial returns a client of the server at addr.
func dial(t testing.TB, addr string, config *h2.Config) *h2.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := h2.NewClient(nc, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// netHTTP returns a client of net/http that speaks HTTP/2 without TLS.
func netHTTP(t testing.TB) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: protocols, DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// netHTTPServer starts a server of net/http that speaks HTTP/2 without TLS.
func netHTTPServer(t testing.TB, h http.HandlerFunc) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{Handler: h, Protocols: protocols}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// echo answers with the content of the request, and with its length in the trailer.
func echo(s *h2.Stream) {
	s.WriteHead(200, field("content-type", "text/plain", "x-path", string(s.Head().Path)), -1, false)
	n := 0
	for {
		p, err := s.Next(in(patience))
		if err == io.EOF {
			s.WriteTrailer(field("x-bytes", fmt.Sprint(n)), core.NoDeadline)
			return
		}
		if err != nil {
			return
		}
		n += len(p)
		if s.Write(p, false, in(patience)) != nil {
			return
		}
	}
}

func random(n int) []byte {
	p := make([]byte, n)
	rand.Read(p)
	return p
}

func TestServesNetHTTP(t *testing.T) {
	t.Parallel()
	addr := serve(t, nil, echo)
	c := netHTTP(t)
	for _, n := range []int{0, 1, 1000, 16384, 70000, 3 << 20} {
		body := random(n)
		resp, err := c.Post("http://"+addr+"/some/path?q=1", "text/plain", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes came back as %d, %v", n, len(got), err)
		}
		if p := resp.Header.Get("X-Path"); p != "/some/path?q=1" {
			t.Errorf("path %q", p)
		}
		if s := resp.Trailer.Get("X-Bytes"); s != fmt.Sprint(n) {
			t.Errorf("trailer says %q, want %d", s, n)
		}
	}
}

func TestServesManyAtOnce(t *testing.T) {
	t.Parallel()
	addr := serve(t, nil, echo)
	c := netHTTP(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			for j := range 20 {
				body := strings.Repeat(fmt.Sprintf("%d/%d ", i, j), i*j*4)
				resp, err := c.Post("http://"+addr+"/", "text/plain", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(got) != body {
					t.Errorf("%d bytes came back as %d, %v", len(body), len(got), err)
				}
			}
		})
	}
	all.Wait()
}

// ask sends a request and returns its answer.
func ask(t testing.TB, c *h2.Conn, h *h2.Head, body []byte) (
	head h2.Head, content []byte, trailer []h2.Field, err error,
) {
	t.Helper()
	s, n, err := c.Open(h, body, true, in(patience))
	if err != nil {
		return head, nil, nil, err
	}
	defer s.Close()
	if n < len(body) {
		sent := make(chan error, 1)
		go func() { sent <- s.Write(body[n:], true, in(patience)) }()
		defer func() { <-sent }()
	}
	for {
		a, err := s.AwaitHead(in(patience))
		if err != nil {
			return head, nil, nil, err
		}
		if head = *a; head.Status >= 200 {
			break
		}
	}
	head.Fields = cloned(head.Fields)
	for {
		p, err := s.Next(in(patience))
		if err == io.EOF {
			return head, content, cloned(s.Trailer()), nil
		}
		if err != nil {
			return head, content, nil, err
		}
		content = append(content, p...)
	}
}

func cloned(list []h2.Field) (own []h2.Field) {
	for _, f := range list {
		own = append(own, h2.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
	}
	return own
}

func post(path string) *h2.Head {
	return &h2.Head{
		Method: []byte("POST"), Scheme: []byte("http"), Authority: []byte("s.test"), Path: []byte(path),
		Fields: field("X-Upper", "Case", "te", "trailers"), Length: -1,
	}
}

func TestAsksNetHTTP(t *testing.T) {
	t.Parallel()
	addr := netHTTPServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Upper") != "Case" || r.Host != "s.test" {
			t.Errorf("got %v for %q", r.Header, r.Host)
		}
		w.Header().Set("Trailer", "X-Bytes")
		w.Header().Set("X-Path", r.RequestURI)
		w.(http.Flusher).Flush()
		n, _ := io.Copy(w, r.Body)
		w.Header().Set("X-Bytes", fmt.Sprint(n))
	})
	c := dial(t, addr, nil)
	for round := range 3 {
		for _, n := range []int{0, 1, 1000, 16384, 70000, 3 << 20} {
			body := random(n)
			head, got, trailer, err := ask(t, c, post("/p"), body)
			if err != nil || !bytes.Equal(got, body) || head.Status != 200 {
				t.Fatalf("round %d: %d bytes came back as %d, %v", round, n, len(got), err)
			}
			if value(head.Fields, "x-path") != "/p" || value(trailer, "x-bytes") != fmt.Sprint(n) {
				t.Errorf("head %s, trailer %s", head.Fields, trailer)
			}
		}
	}
	if c.Streams() != 0 {
		t.Errorf("%d streams are left", c.Streams())
	}
}
