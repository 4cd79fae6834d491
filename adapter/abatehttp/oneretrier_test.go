package abatehttp_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
)

// wires records what requests look like on the wire, and hangs up on every second one of a connection.
func wires(t *testing.T, seen *atomic.Int32) (url string, text func() []string) {
	var mu sync.Mutex
	var all []string
	url = speak(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		for n := 1; n <= 2; n++ {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			dump, _ := httputil.DumpRequest(req, true)
			seen.Add(1)
			mu.Lock()
			all = append(all, string(dump))
			mu.Unlock()
			if n == 1 {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
				if req.Method != "HEAD" {
					io.WriteString(conn, "ok")
				}
			}
		}
	})
	return url, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestNothingIsSentAgainUnasked(t *testing.T) {
	for _, strict := range []bool{false, true} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT"} {
			var seen atomic.Int32
			url, _ := wires(t, &seen)
			client, transport := newClient(t, guard(t, abate.Policy{}))
			transport.NoHiddenRetries = strict
			send := func() (reused bool, err error) {
				req := newRequest(t, method, url, nil)
				if method == "PUT" {
					req = newRequest(t, method, url, strings.NewReader("body"))
					req.Header.Set("Idempotency-Key", "k")
				}
				trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = reused || info.Reused }}
				resp, err := client.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
				if err == nil {
					io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				return reused, err
			}
			fresh := int32(0) // connections: on a busy machine net/http may drop one that it could use again
			reused, err := send()
			for ; !reused && err == nil; reused, err = send() {
				fresh++
			}
			if fresh == 0 {
				t.Fatal(method, err)
			}
			if strict && (err == nil || seen.Load() != fresh+1 || transport.HiddenRetries() != 0) {
				t.Errorf("%s: %v, and the server saw %d requests", method, err, seen.Load())
			}
			if strict && method != "PUT" && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: %v", method, err)
			}
			if !strict && (err != nil || seen.Load() != fresh+2) {
				t.Errorf("%s: %v, and the server saw %d requests: net/http has changed", method, err, seen.Load())
			}
			client.CloseIdleConnections()
		}
	}
}

// TestWhatIsSentOnceLooksTheSame: on the wire a request is what it was.
func TestWhatIsSentOnceLooksTheSame(t *testing.T) {
	look := func(method string, strict bool) string {
		var seen atomic.Int32
		url, text := wires(t, &seen)
		client, transport := newClient(t, guard(t, abate.Policy{}))
		transport.NoHiddenRetries = strict
		req := newRequest(t, method, url, nil)
		req.Host = "payments.test"
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(method, err)
		}
		resp.Body.Close()
		client.CloseIdleConnections()
		return strings.Join(text(), "\n")
	}
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE", "POST", "DELETE"} {
		if strict, plain := look(method, true), look(method, false); strict != plain || plain == "" {
			t.Errorf("%s:\n%s\nwithout:\n%s", method, strict, plain)
		}
	}
}

func TestSentOnceOverHTTP2(t *testing.T) {
	var lengths []int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		lengths = append(lengths, int64(len(body)), int64(r.ProtoMajor))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	transport := abatehttp.NewTransport(server.Client().Transport, guard(t, abate.Policy{}))
	transport.NoHiddenRetries = true
	client := &http.Client{Transport: transport}
	for range 2 {
		if status, _ := mustDo(t, client, newRequest(t, "GET", server.URL, nil)); status != 200 {
			t.Error(status)
		}
	}
	if len(lengths) != 4 || lengths[0] != 0 || lengths[1] != 2 {
		t.Errorf("bodies and protocols: %v", lengths)
	}
}

func TestATransportBelowMayRetryAndItsAnswerArrives(t *testing.T) {
	b := serve(t, always(503))
	client, inner := newClient(t, guard(t, eager()))
	outer := abatehttp.NewTransport(inner, guard(t, eager()))
	outer.NoHiddenRetries = true
	resp, err := outer.RoundTrip(newRequest(t, "GET", b.URL, nil))
	if err != nil || resp.StatusCode != 503 || b.requests.Load() != 4 {
		t.Fatalf("%d requests, error %v; want 4 and a 503", b.requests.Load(), err)
	}
	resp.Body.Close()
	client.CloseIdleConnections()
}
