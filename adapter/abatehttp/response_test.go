package abatehttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/retry"
)

// patient is eager with time limits that never come true.
func patient() abate.Policy {
	p := eager()
	p.Timeout, p.AttemptTimeout = time.Hour, time.Hour
	return p
}

func TestLastAnswerIsReturnedWithoutAnError(t *testing.T) {
	b := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		fmt.Fprintf(w, "answer %d", n)
	})
	for _, p := range []abate.Policy{eager(), patient()} {
		b.requests.Store(0)
		client, _ := newClient(t, guard(t, p))
		if status, body := mustDo(t, client, newRequest(t, "GET", b.URL, nil)); status != 503 || body != "answer 4" {
			t.Errorf("%d %q", status, body)
		}
	}
}

func TestAttemptTimeoutCoversTheBody(t *testing.T) {
	b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	p := eager()
	p.AttemptTimeout = 500 * time.Millisecond // the answer has to begin within it on a busy machine too
	client, _ := newClient(t, guard(t, p))
	resp, err := client.Get(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "begin" || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, error %v", body, err)
	}
}

func TestLongAnswerIsNotCutOff(t *testing.T) {
	const size = 8 << 20
	b := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) })
	client, _ := newClient(t, guard(t, patient()))
	if _, body := mustDo(t, client, newRequest(t, "GET", b.URL, nil)); len(body) != size {
		t.Errorf("%d bytes", len(body))
	}
}

// sentWith sends a request through a stub and returns the response and the context of its only attempt.
func sentWith(t *testing.T, p abate.Policy, status int, body io.ReadCloser) (*http.Response, context.Context) {
	t.Helper()
	var ctx context.Context
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		ctx = req.Context()
		return &http.Response{StatusCode: status, Body: body, Header: http.Header{}, Request: req}, nil
	})
	resp, err := abatehttp.NewTransport(base, guard(t, p)).RoundTrip(newRequest(t, "GET", "http://payments.test", nil))
	if err != nil {
		t.Fatal(err)
	}
	return resp, ctx
}

func TestAttemptContextLivesAsLongAsTheBody(t *testing.T) {
	for name, use := range map[string]func(io.ReadCloser){
		"closed":             func(b io.ReadCloser) { b.Close() },
		"read to its end":    func(b io.ReadCloser) { io.Copy(io.Discard, b) },
		"read till it fails": func(b io.ReadCloser) { io.Copy(io.Discard, b) },
	} {
		t.Run(name, func(t *testing.T) {
			var content io.Reader = strings.NewReader("hello")
			if name == "read till it fails" {
				content = io.MultiReader(content, errReader{})
			}
			inner := &closing{Reader: content}
			resp, ctx := sentWith(t, patient(), 200, inner)
			if ctx.Done(); ctx.Err() != nil {
				t.Error("the context ended before the body was used")
			}
			if use(resp.Body); ctx.Err() == nil {
				t.Error("the context goes on")
			}
			if resp.Body.Close(); !inner.closed.Load() {
				t.Error("the base's body is open")
			}
		})
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAttemptContextEndsAtOnceWithoutABody(t *testing.T) {
	for _, body := range []io.ReadCloser{http.NoBody, nil} {
		resp, ctx := sentWith(t, patient(), 200, body)
		if resp.Body != http.NoBody || ctx.Err() == nil {
			t.Errorf("body %v, context %v", resp.Body, ctx.Err())
		}
	}
	for _, status := range []int{204, 304} { // whose empty body has another type in HTTP/2
		if _, ctx := sentWith(t, patient(), status, io.NopCloser(strings.NewReader(""))); ctx.Err() == nil {
			t.Errorf("%d: the context goes on", status)
		}
	}
}

func TestBodyIsTheBasesOwnWithoutATimeLimit(t *testing.T) {
	body := &closing{Reader: strings.NewReader("hello")}
	if resp, _ := sentWith(t, eager(), 200, body); resp.Body != io.ReadCloser(body) {
		t.Errorf("body is a %T", resp.Body)
	}
}

func TestResponseNamesTheCallersRequest(t *testing.T) {
	b := serve(t, always(200))
	_, transport := newClient(t, guard(t, patient()))
	req := newRequest(t, "GET", b.URL, nil)
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.Request != req {
		t.Errorf("request %p, want %p, error %v", resp.Request, req, err)
	}
	resp.Body.Close()
}

// duplex is one end of a connection in memory, either direction of which can be closed, so that testing/synctest can
// have it wait.
type duplex struct {
	net.Conn
	in  *io.PipeReader
	out *io.PipeWriter
}

func (d duplex) Read(p []byte) (int, error)  { return d.in.Read(p) }
func (d duplex) Write(p []byte) (int, error) { return d.out.Write(p) }
func (d duplex) CloseWrite() error           { return d.out.Close() }
func (d duplex) Close() error                { d.in.Close(); return d.out.Close() }

func TestUpgradedConnectionOutlivesTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eager()
		p.AttemptTimeout = time.Second
		var attempt context.Context
		inner := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			there, out := io.Pipe()
			in, back := io.Pipe()
			go func() {
				requests := bufio.NewReader(there)
				listen(requests)
				io.WriteString(back, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
				io.Copy(back, requests)
				back.Close()
			}()
			return duplex{in: in, out: out}, nil
		}}
		transport := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
			attempt = req.Context()
			return inner.RoundTrip(req)
		}), guard(t, p))
		req := newRequest(t, "GET", "http://payments.test", nil)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", "echo")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		conn, ok := resp.Body.(interface {
			io.ReadWriteCloser
			CloseWrite() error
		})
		if !ok {
			t.Fatalf("body is a %T", resp.Body)
		}
		<-attempt.Done()
		io.WriteString(conn, "ping")
		conn.CloseWrite()
		if echo, err := io.ReadAll(conn); string(echo) != "ping" || err != nil {
			t.Errorf("%q, error %v", echo, err)
		}
		conn.Close()
	})
}

// speak serves each connection of a raw listener with handle, which gets the number of the connection, from 1.
func speak(t *testing.T, handle func(n int, conn net.Conn, requests *bufio.Reader)) string {
	t.Helper()
	checkGoroutines(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(n, conn, bufio.NewReader(conn))
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// listen reads one request.
func listen(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err == nil {
		io.Copy(io.Discard, req.Body)
	}
	return err == nil
}

func TestBrokenAnswersAreRetried(t *testing.T) {
	for name, first := range map[string]string{
		"closes without a word":   "",
		"ends inside its header":  "HTTP/1.1 200 OK\r\nContent-Le",
		"speaks something else":   "SSH-2.0-OpenSSH_9.6\r\n",
		"shorter than its length": "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1000\r\n\r\nshort",
		"longer than its length": "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\nConnection: " +
			"close\r\n\r\nmuch longer",
		"absurd length": "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9223372036854775807\r\n\r\n",
		"two lengths":   "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"broken chunks": "HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab",
		"Retry-After that overflows": "HTTP/1.1 503 Service Unavailable\r\nRetry-After: -1\r\nRetry-After: " +
			"soon\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			url := speak(t, func(n int, conn net.Conn, r *bufio.Reader) {
				if !listen(r) {
					return
				}
				if n == 1 {
					io.WriteString(conn, first)
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
			})
			client, _ := newClient(t, guard(t, patient()))
			if status, body := mustDo(t, client, newRequest(t, "GET", url, nil)); status != 200 || body != "fine" {
				t.Errorf("%d %q", status, body)
			}
		})
	}
}

func TestAnswerShorterThanItsLengthIsSeenByItsReader(t *testing.T) {
	url := speak(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		listen(r)
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
	})
	client, _ := newClient(t, guard(t, patient()))
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "short" || err != io.ErrUnexpectedEOF {
		t.Errorf("%q, error %v", body, err)
	}
}

func TestAnswerThatNeverEndsCannotHoldTheRetry(t *testing.T) {
	for name, endless := range map[string]func(http.ResponseWriter, *http.Request){
		"silent": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"drip": func(w http.ResponseWriter, r *http.Request) {
			for tick := time.NewTicker(time.Millisecond); r.Context().Err() == nil; <-tick.C {
				w.Write([]byte("."))
				w.(http.Flusher).Flush()
			}
		},
		"flood": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				w.Write(make([]byte, 32<<10))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
				if n > 1 {
					return
				}
				w.WriteHeader(503)
				w.(http.Flusher).Flush()
				endless(w, r) // until the client hangs up
			})
			client, _ := newClient(t, guard(t, eager()))
			if status, _ := mustDo(t, client, newRequest(t, "GET", b.URL, nil)); status != 200 {
				t.Errorf("status %d", status)
			}
		})
	}
}

// endless is a body that counts how much of it was read.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) { e.n += int64(len(p)); return len(p), nil }
func (e *endless) Close() error               { return nil }

func TestUnwantedAnswersAreReadOnlySoFar(t *testing.T) {
	for length, most := range map[int64]int64{-1: 300 << 10, 1 << 40: 0} {
		body := new(endless)
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Envoy-Attempt-Count") == "2" {
				return answer(req, 200, nil, ""), nil
			}
			return &http.Response{StatusCode: 503, Body: body, ContentLength: length}, nil
		})
		resp, err := abatehttp.NewTransport(base, guard(t, eager())).RoundTrip(
			newRequest(t, "GET", "http://payments.test", nil))
		if err != nil || resp.StatusCode != 200 || body.n > most {
			t.Errorf("length %d: %d bytes were read, error %v", length, body.n, err)
		}
	}
}

func TestServerThatHangsIsAFailure(t *testing.T) {
	b := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := abate.Policy{Retry: abate.Retry{MaxRetries: 1, Backoff: retry.NoBackoff}, AttemptTimeout: 10 * time.Millisecond}
	p, events := watched(p)
	client, _ := newClient(t, guard(t, p))
	_, err := client.Get(b.URL)
	if !errors.Is(err, abate.ErrAttemptsExhausted) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	for _, e := range events.all(core.AttemptEnded) {
		if e.Class != abate.Failure {
			t.Errorf("attempt %d counts as %v", e.Attempt, e.Class)
		}
	}
}
