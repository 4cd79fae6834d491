package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"

	"github.com/abate-go/abate/internal/needs"
)

// echo is a server of gRPC calls, and a proxy in front of it.
func echo(t *testing.T) (server, proxy string) {
	t.Helper()
	server = serveGRPC(t, newEcho())
	return server, serveHTTP2(t, reverseProxyHTTP2(server))
}

func serveGRPC(t *testing.T, s *grpc.Server) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func serveHTTP2(t *testing.T, h http.Handler) (addr string) {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = unencryptedHTTP2()
	s.Start()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestUnaryLoadCountsTheCallsThatWereAnswered(t *testing.T) {
	needs.Whole(t)
	server, proxy := echo(t)
	for name, addr := range map[string]string{"grpc-go": server, "ReverseProxy": proxy} {
		if err := probeGRPC(t.Context(), addr); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, u := range []unaryLoad{{3, 1}, {1, 100}} {
			r, err := u.drive(t.Context(), addr, time.Second)
			if err != nil || r.check() != nil || r.failed > 0 || r.requests < u.conns*u.streams || r.p50 <= 0 || r.p99 < r.p50 ||
				r.took < time.Second {
				t.Errorf("%s, %v: %+v, %v", name, u, r, err)
			}
		}
	}
}

func TestUnaryLoadEndsWhenInterrupted(t *testing.T) {
	server, _ := echo(t)
	ctx, interrupt := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer interrupt()
	if r, err := (unaryLoad{2, 2}).drive(ctx, server, time.Hour); err == nil {
		t.Errorf("a result: %+v", r)
	}
}

func TestProbeRefusesOtherAnswersThanTheEcho(t *testing.T) {
	answering := func(fields map[string]string, body string, trailer map[string]string) string {
		return serveHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			for name, value := range fields {
				w.Header().Set(name, value)
			}
			_, _ = io.WriteString(w, body)
			for name, value := range trailer {
				w.Header().Set(http.TrailerPrefix+name, value)
			}
		}))
	}
	whole := strings.Repeat("x", messageHead+bodySize)
	ok := map[string]string{"Grpc-Status": "0"}
	for name, c := range map[string]struct{ addr, want string }{
		"nobody":    {"127.0.0.1:1", "refused"},
		"HTTP/1.1":  {raw(t, "HTTP/1.1 400 Bad Request\r\n\r\n"), "does not speak HTTP/2"},
		"no method": {serveGRPC(t, grpc.NewServer()), "grpc-status 12: unknown service bench.Echo"},
		"no status": {answering(nil, whole, nil), "1029 bytes and the status \"\""},
		"failed": {answering(nil, "", map[string]string{"Grpc-Status": "14", "Grpc-Message": "away"}),
			"grpc-status 14: away"},
		"only a head": {answering(map[string]string{"Grpc-Status": "8"}, "", nil), "grpc-status 8"},
		"too short":   {answering(nil, "xxx", ok), "3 bytes and the status \"0\""},
		"HTTP status": {serveHTTP2(t, http.NotFoundHandler()), "HTTP status 404"},
		"reset": {serveHTTP2(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })),
			"the stream was reset"},
	} {
		if err := probeGRPC(t.Context(), c.addr); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := probeGRPC(t.Context(), answering(nil, whole, ok)); err != nil {
		t.Errorf("a whole answer: %v", err)
	}
}

// peer is the server's end of one connection, driven by hand.
type peer struct {
	t      *testing.T
	frames *http2.Framer
}

// meet connects a client to a peer that announced these settings.
func meet(t *testing.T, settings ...http2.Setting) (*grpcConn, *peer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	met := make(chan *peer, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			close(met)
			return
		}
		t.Cleanup(func() { nc.Close() })
		in := bufio.NewReader(nc)
		p := &peer{t, http2.NewFramer(nc, in)}
		if _, err := io.CopyN(io.Discard, in, int64(len(http2.ClientPreface))); err != nil {
			t.Error(err)
		}
		if err := p.frames.WriteSettings(settings...); err != nil {
			t.Error(err)
		}
		met <- p
	}()
	c, err := dialGRPC(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.nc.Close() })
	return c, <-met
}

// data reads the next DATA frame.
func (p *peer) data() string {
	p.t.Helper()
	for {
		f, err := p.frames.ReadFrame()
		if err != nil {
			p.t.Fatal(err)
		}
		if d, ok := f.(*http2.DataFrame); ok {
			return fmt.Sprintf("%d:%s:%t", d.StreamID, d.Data(), d.StreamEnded())
		}
	}
}

func TestClientKeepsToThePeersWindows(t *testing.T) {
	c, p := meet(t, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5}, http2.Setting{
		ID: http2.SettingMaxConcurrentStreams, Val: 7,
	})
	if c.streams != 7 {
		t.Errorf("%d streams, want 7", c.streams)
	}
	id, err := c.open(chatMethod, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"abc", "def", "ghi"} {
		if err := c.send(id, []byte(text), false); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.send(id, nil, true); err != nil { // though an empty one fits, it may not overtake
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := c.next()
		read <- err
	}()
	if got := p.data(); got != "1:abc:false" || len(c.waiting) != 3 {
		t.Errorf("first came %q, and %d wait", got, len(c.waiting))
	}
	if err := p.frames.WriteWindowUpdate(id, 1); err != nil {
		t.Fatal(err)
	}
	if got := p.data(); got != "1:def:false" {
		t.Errorf("with a window of 3: %q", got)
	}
	if err := p.frames.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 8}); err != nil {
		t.Fatal(err)
	}
	if got := p.data() + " " + p.data(); got != "1:ghi:false 1::true" {
		t.Errorf("with larger windows: %q", got)
	}
	if err := p.frames.WriteGoAway(0, http2.ErrCodeNo, []byte("enough")); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("after GOAWAY: %v", err)
	}
}

func TestClientAnswersPings(t *testing.T) {
	c, p := meet(t)
	go func() { _, _ = c.next() }()
	if err := p.frames.WritePing(false, [8]byte{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	for {
		f, err := p.frames.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if ping, ok := f.(*http2.PingFrame); ok {
			if !ping.IsAck() || ping.Data != [8]byte{1, 2, 3} {
				t.Errorf("%v", ping)
			}
			return
		}
	}
}
