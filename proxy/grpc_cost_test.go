package proxy_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// grpcLoop is a client and a service that speak HTTP/2 with our own package: what they allocate per call is counted
// too.
type grpcLoop struct {
	conn *h2.Conn
	head h2.Head
	body []byte
}

func fieldsOf(pairs ...string) (fields []h2.Field) {
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, h2.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return fields
}

func newGRPCLoop(t testing.TB) *grpcLoop {
	l := listen(t)
	head, trailer := fieldsOf("content-type", "application/grpc"), fieldsOf("grpc-status", "0", "grpc-message", "")
	serve := func(s *h2.Stream) {
		data, _ := s.Buffered()
		_ = s.WriteHead(200, head, -1, false)
		_ = s.Write(data, false, core.NoDeadline)
		_ = s.WriteTrailer(trailer, core.NoDeadline)
	}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = h2.NewServer(nc, nil, serve).Serve(nil) }()
		}
	}()
	t.Cleanup(func() { l.Close() })
	policy := strings.ReplaceAll(everyPolicy, "http://UPSTREAM", "h2c://"+l.Addr().String())
	p := start(t, strings.ReplaceAll(policy, "{path: /x}", "{path: /}")+"    retryMethods: [/shop.Payment/*]\n")
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := h2.NewClient(nc, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &grpcLoop{conn, h2.Head{Method: []byte("POST"), Scheme: []byte("http"), Authority: []byte("shop.example"),
		Path: []byte("/shop.Payment/Get"), Length: -1,
		Fields: fieldsOf("content-type", "application/grpc", "te", "trailers", "user-agent", "loop/1", "grpc-timeout",
			"10S")}, message(strings.Repeat("x", 1024))}
}

func (l *grpcLoop) once(t testing.TB) {
	s, n, err := l.conn.Open(&l.head, l.body, true, core.NoDeadline)
	if err != nil || n != len(l.body) {
		t.Fatalf("%d bytes sent, %v", n, err)
	}
	defer s.Close()
	got := 0
	for err == nil {
		var data []byte
		data, err = s.Next(core.NoDeadline)
		got += len(data)
	}
	if trailer := s.Trailer(); err != io.EOF || got != len(l.body) || len(trailer) == 0 ||
		string(trailer[0].Value) != "0" {
		t.Fatalf("%d bytes, %v, %v", got, err, trailer)
	}
}

// TestAGRPCCallAllocatesNothing: two goroutines, two pools of streams, and no garbage for a call that goes well.
func TestAGRPCCallAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Log("not under the race detector, which allocates")
		return
	}
	l := newGRPCLoop(t)
	for range 200 {
		l.once(t)
	}
	if n := allocations(1000, func() { l.once(t) }); n >= 1 {
		t.Errorf("%v allocations a call", n)
	}
}

func BenchmarkGRPCUnary(b *testing.B) {
	l := newGRPCLoop(b)
	l.once(b)
	b.ReportAllocs()
	for b.Loop() {
		l.once(b)
	}
}

// Whatever a service and a client say in the fields of gRPC, each call ends, and the proxy goes on.
func FuzzGRPCFields(f *testing.F) {
	f.Add("0", "", "", "10S", "1", byte(0))
	f.Add("14", "busy%20", "-1", "1n", "-1", byte(1))
	f.Add("x", "%zz%", "99999999999999999999", "99999999H", "99", byte(2))
	f.Add("8", "\x00", "1,2", "", "", byte(3))
	f.Add("", "\xff", " 5", "5", "a", byte(7))
	var script atomic.Pointer[func(s *frames, stream uint32)]
	r := start(f, single([]string{rawHTTP2(f, func(s *frames, stream uint32, _ int) {
		(*script.Load())(s, stream)
	})}, "maxRetries: 1", quickRetry, noBreaker,
		"timeout: 1s", "retryBudget: {ratio: 1}"))
	f.Fuzz(func(t *testing.T, status, text, pushback, timeout, attempts string, how byte) {
		for _, s := range []*string{&status, &text, &pushback, &timeout, &attempts} {
			*s = (*s)[:min(len(*s), 100)]
		}
		end := []string{"grpc-status", status, "grpc-message", text, "grpc-retry-pushback-ms", pushback,
			"abate-retries-made", attempts}
		answer := func(s *frames, stream uint32) {
			switch how & 3 {
			case 0:
				trailersOnly(s, stream, end...)
			case 1:
				s.write(headersFrame, endHeaders, stream, block(grpcHead...))
				s.write(headersFrame, endHeaders|endStream, stream, block(end...))
			case 2:
				s.write(headersFrame, endHeaders, stream, block(grpcHead...))
				s.write(dataFrame, 0, stream, message(text))
				s.write(headersFrame, endHeaders|endStream, stream, block(end...))
			default:
				s.write(headersFrame, endHeaders|endStream, stream, block(append([]string{":status", "503"}, end...)...))
			}
		}
		script.Store(&answer)
		c := &h2raw{client: dial(t, r.addr)}
		defer c.Close()
		c.begin(65535)
		c.request(1, 0, ":method", "POST", ":scheme", "http", ":authority", "s.test", ":path", "/a.B/C", "content-type",
			"application/grpc", "te", "trailers",
			"x-idempotency-key", "k", "grpc-timeout", timeout, "grpc-previous-rpc-attempts", attempts)
		c.frame(0, 1, 1, message("x"))
		c.frames(func(kind, flags byte, stream uint32, _ []byte) bool {
			return stream == 1 && (kind == resetFrame || kind <= headersFrame && flags&endStream != 0)
		})
	})
}

// Whatever is sent to a health check, it gets a status.
func FuzzHealthRequest(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 3, 10, 1, 's'})
	f.Add([]byte{0, 0, 0, 0, 12, 8, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8, 13})
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 0, 2, 10, 255})
	r := start(f, single([]string{"http://127.0.0.1:1"}))
	f.Fuzz(func(t *testing.T, body []byte) {
		req := httptest.NewRequest("POST", "http://admin/grpc.health.v1.Health/Check", bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/grpc")
		req.ProtoMajor = 2
		w := httptest.NewRecorder()
		r.admin.ServeHTTP(w, req)
		if w.Code != 200 || w.Header().Get(http.TrailerPrefix+"Grpc-Status") == "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	})
}
