package abatehttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
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
	if last := events.all(core.AttemptEnded)[1]; last.Class != abate.Ignored {
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
	g := guard(t, abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}})
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

// counting is a body that counts how often it is closed.
type counting struct {
	io.Reader
	closed atomic.Int64
}

func (c *counting) Close() error {
	c.closed.Add(1)
	return nil
}

func TestBodyIsClosedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		content io.Reader
		method  string
		rewinds bool
	}{
		"buffered":           {strings.NewReader("x"), "GET", false},
		"broken":             {iotest.ErrReader(io.ErrUnexpectedEOF), "GET", false},
		"too long to buffer": {strings.NewReader(strings.Repeat("a", 100<<10)), "GET", false},
		"sent once":          {strings.NewReader("x"), "POST", false},
		"rewinding":          {strings.NewReader("x"), "GET", true},
	} {
		body := &counting{Reader: c.content}
		req := newRequest(t, c.method, "http://payments.test", body)
		if c.rewinds {
			req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x")), nil }
		}
		base := roundTrip(func(req *http.Request) (*http.Response, error) {
			io.Copy(io.Discard, req.Body)
			req.Body.Close()
			return answer(req, 503, nil, ""), nil
		})
		if resp, err := abatehttp.NewTransport(base, guard(t, eager())).RoundTrip(req); err == nil {
			resp.Body.Close()
		}
		if n := body.closed.Load(); n != 1 {
			t.Errorf("%s: the body was closed %d times", name, n)
		}
	}
}

func TestBrokenUploadIsNotHeldAgainstTheServer(t *testing.T) {
	broken := errors.New("camera unplugged")
	for name, c := range map[string]struct {
		before  int // bytes that come
		rewinds bool
	}{
		"while it is buffered": {before: 0},
		"while it is sent":     {before: 100 << 10},
		"although it rewinds":  {before: 100 << 10, rewinds: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
			p, events := watched(eager())
			client, _ := newClient(t, guard(t, p))
			body := &closing{Reader: io.MultiReader(bytes.NewReader(make([]byte, c.before)), iotest.ErrReader(broken))}
			req := put(t, b.URL, body)
			if c.rewinds {
				req.GetBody = func() (io.ReadCloser, error) { return body, nil }
			}
			if _, err := client.Do(req); !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
			ended := events.all(core.AttemptEnded)
			if len(ended) != 1 || ended[0].Class != abate.Ignored {
				t.Errorf("attempts: %+v", ended)
			}
			if !settles(body.closed.Load) {
				t.Error("the caller's body is open")
			}
		})
	}
}

func TestBrokenCopyOfABodyIsNotHeldAgainstTheServer(t *testing.T) {
	broken := errors.New("camera unplugged")
	b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(503)
	})
	p, events := watched(eager())
	client, _ := newClient(t, guard(t, p))
	req := put(t, b.URL, &closing{Reader: strings.NewReader("content")})
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(iotest.ErrReader(broken)), nil }
	if _, err := client.Do(req); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if ended := events.all(core.AttemptEnded); len(ended) != 2 || ended[1].Class != abate.Ignored {
		t.Errorf("attempts: %+v", ended)
	}
}

// Net/http sends a short body in one write with its header, if it can see that reading the body will not block.
func TestBodiesInMemoryReachTheBaseAsTheyAre(t *testing.T) {
	for name, content := range map[string]io.Reader{
		"string": strings.NewReader("x"), "bytes": bytes.NewReader([]byte("x")), "buffer": bytes.NewBufferString("x"),
		"empty": strings.NewReader(""),
	} {
		req := newRequest(t, "PUT", "http://payments.test", content)
		req.Header.Set("Idempotency-Key", "k1")
		want := fmt.Sprintf("%T", req.Body)
		base := roundTrip(func(sent *http.Request) (*http.Response, error) {
			if got := fmt.Sprintf("%T", sent.Body); got != want {
				t.Errorf("%s: body is a %s, want %s", name, got, want)
			}
			return answer(sent, 503, nil, ""), nil
		})
		resp, err := abatehttp.NewTransport(base, guard(t, eager())).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
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
	if e := events.all(core.AttemptEnded)[0]; e.Class != abate.Failure {
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
	if _, err := abatehttp.NewTransport(base, guard(t, p)).RoundTrip(
		newRequest(t, "POST", "http://payments.test", r)); err == nil {
		t.Error("no error")
	}
	if e := events.all(core.AttemptEnded)[0]; e.Class != abate.Failure {
		t.Errorf("the attempt counts as %v: %v", e.Class, e.Err)
	}
}
