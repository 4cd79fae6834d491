package abatehttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/bulkhead"
)

// put is a request that may be repeated, with a body whose kind net/http does not know.
func put(t *testing.T, url string, body io.ReadCloser) *http.Request {
	req := newRequest(t, "PUT", url, body)
	req.Header.Set("Idempotency-Key", "k1")
	return req
}

// collect answers 503 and remembers each body it got.
func collect(bodies chan<- string) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
		w.WriteHeader(503)
	}
}

func TestBodyIsReplayedThroughGetBody(t *testing.T) {
	bodies := make(chan string, 9)
	b := serve(t, collect(bodies))
	client, _ := newClient(t, guard(t, eager()))
	const content = "forty-two"
	first := &closing{Reader: strings.NewReader(content)}
	req := put(t, b.URL, first)
	var copies atomic.Int64
	req.ContentLength = int64(len(content))
	req.GetBody = func() (io.ReadCloser, error) {
		copies.Add(1)
		return io.NopCloser(strings.NewReader(content)), nil
	}
	if status, _ := mustDo(t, client, req); status != 503 {
		t.Errorf("status %d", status)
	}
	for range 4 {
		if got := <-bodies; got != content {
			t.Errorf("the server got %q", got)
		}
	}
	if copies.Load() != 3 {
		t.Errorf("GetBody was called %d times, want once per retry", copies.Load())
	}
	if !first.closed.Load() {
		t.Error("the caller's body is open")
	}
}

func TestGetBodyThatFailsEndsTheCall(t *testing.T) {
	b := serve(t, always(503))
	p, events := watched(eager())
	client, _ := newClient(t, guard(t, p))
	req := put(t, b.URL, io.NopCloser(strings.NewReader("x")))
	lost := errors.New("file is gone")
	req.GetBody = func() (io.ReadCloser, error) { return nil, lost }
	if _, err := client.Do(req); !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
	if last := events.all(abate.AttemptEnded)[1]; last.Class != abate.Ignored {
		t.Errorf("it is held against the server as %v", last.Class)
	}
}

func TestShortBodyOfUnknownKindIsBuffered(t *testing.T) {
	for _, length := range []int64{-1, 0, 64 << 10} {
		bodies := make(chan string, 9)
		b := serve(t, collect(bodies))
		client, _ := newClient(t, guard(t, eager()))
		content := strings.Repeat("a", 64<<10)
		body := &closing{Reader: iotest.OneByteReader(strings.NewReader(content))}
		req := put(t, b.URL, body)
		req.ContentLength = length
		mustDo(t, client, req)
		for range 4 {
			if got := <-bodies; got != content {
				t.Errorf("length %d: the server got %d bytes", length, len(got))
			}
		}
		if !body.closed.Load() {
			t.Error("the caller's body is open")
		}
	}
}

func TestEmptyBodyOfUnknownKindIsBuffered(t *testing.T) {
	b := serve(t, always(503))
	client, _ := newClient(t, guard(t, eager()))
	mustDo(t, client, put(t, b.URL, &closing{Reader: strings.NewReader("")}))
	if b.requests.Load() != 4 {
		t.Errorf("%d requests", b.requests.Load())
	}
}

func TestLongBodyOfUnknownLengthIsSentOnceAndWhole(t *testing.T) {
	bodies := make(chan string, 9)
	b := serve(t, collect(bodies))
	client, _ := newClient(t, guard(t, eager()))
	content := strings.Repeat("ab", 32<<10) + "c"
	body := &closing{Reader: strings.NewReader(content)}
	status, _ := mustDo(t, client, put(t, b.URL, body))
	if got := <-bodies; got != content || status != 503 || b.requests.Load() != 1 {
		t.Errorf("the server got %d bytes in %d requests", len(got), b.requests.Load())
	}
	if !settles(body.closed.Load) {
		t.Error("the caller's body is open")
	}
}

// held gives half of its bytes and the other half only when released.
type held struct {
	left    int
	half    int
	release chan struct{}
}

func (h *held) Read(p []byte) (int, error) {
	if h.left == h.half {
		<-h.release
	}
	if h.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), h.left)
	if h.left > h.half {
		n = min(n, h.left-h.half)
	}
	h.left -= n
	return n, nil
}

func TestLongStreamIsNotHeldInMemory(t *testing.T) {
	const size = 64 << 20
	for _, length := range []int64{-1, size} {
		body := &held{left: size, half: size - 128<<10, release: make(chan struct{})}
		var received atomic.Int64
		b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			r.Body.Read(make([]byte, 1))
			close(body.release) // the first byte is here, and the body is not finished
			n, _ := io.Copy(io.Discard, r.Body)
			received.Store(n + 1)
			w.WriteHeader(503)
		})
		client, _ := newClient(t, guard(t, eager()))
		req := put(t, b.URL, io.NopCloser(body))
		req.ContentLength = length
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		status, _ := mustDo(t, client, req)
		runtime.ReadMemStats(&after)
		if status != 503 || b.requests.Load() != 1 || received.Load() != size {
			t.Errorf("status %d, %d requests, %d bytes", status, b.requests.Load(), received.Load())
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
			t.Errorf("%d bytes were allocated", used)
		}
	}
}

func TestBodyIsNotBufferedWhenNothingIsRepeated(t *testing.T) {
	noRetries := eager()
	noRetries.MaxRetries = 0
	for name, c := range map[string]struct {
		policy abate.Policy
		limit  int64
		key    string
	}{
		"no key":     {policy: eager()},
		"no retries": {policy: noRetries, key: "k1"},
		"limit -1":   {policy: eager(), limit: -1, key: "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				r.Body.Read(make([]byte, 1))
				close(seen)
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(503)
			})
			client, transport := newClient(t, guard(t, c.policy))
			transport.MaxBufferedBody = c.limit
			r, w := io.Pipe()
			go func() {
				w.Write([]byte("a"))
				<-seen // the second byte is written only after the first has arrived
				w.Write([]byte("b"))
				w.Close()
			}()
			req := newRequest(t, "POST", b.URL, r)
			if c.key != "" {
				req.Header.Set("Idempotency-Key", c.key)
			}
			mustDo(t, client, req)
			if b.requests.Load() != 1 {
				t.Errorf("%d requests", b.requests.Load())
			}
		})
	}
}

func TestBodyIsClosedWhenTheCallIsRefused(t *testing.T) {
	g := guard(t, abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1}})
	entered, leave := make(chan struct{}), make(chan struct{})
	transport := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
		close(entered)
		<-leave
		return answer(req, 200, nil, ""), nil
	}), g)
	done := make(chan struct{})
	go func() {
		defer close(done)
		transport.RoundTrip(newRequest(t, "GET", "http://payments.test", nil))
	}()
	<-entered
	body := &closing{Reader: strings.NewReader("x")}
	_, err := transport.RoundTrip(newRequest(t, "POST", "http://payments.test", body))
	if !errors.Is(err, abate.ErrBulkheadFull) || !body.closed.Load() {
		t.Errorf("error %v, body closed %v", err, body.closed.Load())
	}
	close(leave)
	<-done
}

func TestHangingRequestBodyEndsWithTheCall(t *testing.T) {
	never := roundTrip(func(*http.Request) (*http.Response, error) {
		t.Error("it was sent")
		return nil, io.EOF
	})
	t.Run("the caller leaves", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		go func() { w.Write([]byte("a")); cancel() }()
		_, err := abatehttp.NewTransport(never, guard(t, eager())).RoundTrip(put(t, "http://payments.test", r).WithContext(ctx))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("the time is up", func(t *testing.T) {
		p := eager()
		p.Timeout = time.Millisecond
		r, w := io.Pipe()
		_, err := abatehttp.NewTransport(never, guard(t, p)).RoundTrip(put(t, "http://payments.test", r))
		if !errors.Is(err, abate.ErrDeadline) {
			t.Errorf("error %v", err)
		}
		if _, err := w.Write([]byte("a")); err == nil {
			t.Error("the caller's body is open")
		}
	})
}

func TestBrokenUploadIsNotHeldAgainstTheServer(t *testing.T) {
	broken := errors.New("camera unplugged")
	for _, before := range []int{0, 100 << 10} { // broken while it is buffered, and while it is sent
		b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		p, events := watched(eager())
		client, _ := newClient(t, guard(t, p))
		body := &closing{Reader: io.MultiReader(bytes.NewReader(make([]byte, before)), iotest.ErrReader(broken))}
		if _, err := client.Do(put(t, b.URL, body)); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		for _, e := range events.all(abate.AttemptEnded) {
			if e.Class != abate.Ignored {
				t.Errorf("the attempt counts as %v", e.Class)
			}
		}
		if !body.closed.Load() {
			t.Error("the caller's body is open")
		}
	}
}

func TestResetDuringAnUploadIsTheServersFailure(t *testing.T) {
	b := serve(t, func(_ int, _ http.ResponseWriter, r *http.Request) {
		r.Body.Read(make([]byte, 1))
		panic(http.ErrAbortHandler)
	})
	p, events := watched(eager())
	client, _ := newClient(t, guard(t, p))
	r, w := io.Pipe()
	go func() {
		for _, err := w.Write(make([]byte, 1000)); err == nil; _, err = w.Write(make([]byte, 1000)) {
		}
	}()
	if _, err := client.Do(newRequest(t, "POST", b.URL, r)); err == nil {
		t.Error("no error")
	}
	if e := events.all(abate.AttemptEnded)[0]; e.Class != abate.Failure {
		t.Errorf("the attempt counts as %v: %v", e.Class, e.Err)
	}
}

func TestReadingABodyThatTheBaseHasClosedIsNotTheCallersFault(t *testing.T) {
	p, events := watched(eager())
	base := roundTrip(func(req *http.Request) (*http.Response, error) {
		req.Body.Close() // the connection is torn; the writer notices by this read
		_, err := req.Body.Read(make([]byte, 1))
		return nil, err
	})
	r, _ := io.Pipe()
	if _, err := abatehttp.NewTransport(base, guard(t, p)).RoundTrip(newRequest(t, "POST", "http://payments.test", r)); err == nil {
		t.Error("no error")
	}
	if e := events.all(abate.AttemptEnded)[0]; e.Class != abate.Failure {
		t.Errorf("the attempt counts as %v: %v", e.Class, e.Err)
	}
}

func TestBodyThatLiesAboutItsLengthIsNotSent(t *testing.T) {
	b := serve(t, func(int, http.ResponseWriter, *http.Request) { t.Error("it reached the server") })
	p, events := watched(eager())
	client, _ := newClient(t, guard(t, p))
	for _, length := range []int64{3, 100} {
		req := put(t, b.URL, io.NopCloser(strings.NewReader("short")))
		req.ContentLength = length
		_, err := client.Do(req)
		if want := fmt.Sprintf("the request says ContentLength %d, but its body has 5 bytes", length); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if began := events.all(abate.CallBegan); len(began) != 0 {
		t.Errorf("calls: %+v", began)
	}
}
