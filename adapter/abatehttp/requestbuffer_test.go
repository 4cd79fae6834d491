package abatehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/retry"
)

// late is a body that comes after some time.
type late struct {
	delay   time.Duration
	content string
}

func (l *late) Read(p []byte) (int, error) {
	if l.content == "" {
		return 0, io.EOF
	}
	<-time.After(l.delay)
	n := copy(p, l.content)
	l.content = l.content[n:]
	return n, nil
}

// deaf is a body that hangs until released, also when it is closed.
type deaf struct{ release chan struct{} }

func (d deaf) Read([]byte) (int, error) { <-d.release; return 0, io.EOF }
func (d deaf) Close() error             { return nil }

// echoing answers with the request's body.
func echoing(req *http.Request) (*http.Response, error) {
	content, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	return answer(req, 200, nil, string(content)), nil
}

// never is a base that must not be reached.
func never(t *testing.T) roundTrip {
	return func(*http.Request) (*http.Response, error) {
		t.Error("it was sent")
		return nil, io.EOF
	}
}

// stuck is a base that never answers.
func stuck(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

func TestHangingRequestBodyEndsWithTheCall(t *testing.T) {
	timed, both := eager(), eager()
	timed.Timeout = time.Second
	both.Timeout, both.AttemptTimeout = time.Second, 300*time.Millisecond
	for name, c := range map[string]struct {
		policy abate.Policy
		leaves bool
		want   error
	}{
		"the caller leaves":         {eager(), true, context.Canceled},
		"the call's time is up":     {timed, false, abate.ErrDeadline},
		"an attempt's never begins": {both, false, abate.ErrDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, events := watched(c.policy)
				transport := abatehttp.NewTransport(never(t), guard(t, p))
				r, w := io.Pipe()
				body := deaf{make(chan struct{})}
				for _, body := range []io.ReadCloser{r, body} {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if c.leaves {
						time.AfterFunc(time.Second, cancel)
					}
					begin := time.Now()
					_, err := transport.RoundTrip(put(t, "http://payments.test", body).WithContext(ctx))
					if !errors.Is(err, c.want) || time.Since(begin) != time.Second {
						t.Errorf("error %v after %v", err, time.Since(begin))
					}
				}
				if _, err := w.Write([]byte("a")); err == nil {
					t.Error("the caller's body is open")
				}
				close(body.release) // the goroutine that reads it must go now: synctest looks
				for _, e := range events.all(core.AttemptEnded) {
					if e.Class != abate.Ignored {
						t.Errorf("it is held against the server as %v", e.Class)
					}
				}
			})
		})
	}
}

// The time of the call covers the reading of the body, that of an attempt begins when it is there.
func TestOnlyTheCallsTimeCoversTheReadingOfTheBody(t *testing.T) {
	call, attempt := eager(), eager()
	call.MaxRetries, attempt.MaxRetries = 1, 1
	call.Timeout = time.Second
	attempt.AttemptTimeout = time.Second
	for name, c := range map[string]struct {
		policy abate.Policy
		want   time.Duration
		left   string
	}{"timeout": {call, time.Second, "100"}, "attemptTimeout": {attempt, 2900 * time.Millisecond, "1000"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var left []string
				base := roundTrip(func(req *http.Request) (*http.Response, error) {
					left = append(left, req.Header.Get("X-Envoy-Expected-Rq-Timeout-Ms"))
					return stuck(req)
				})
				begin := time.Now()
				body := io.NopCloser(&late{900 * time.Millisecond, "content"})
				_, err := abatehttp.NewTransport(base, guard(t, c.policy)).RoundTrip(put(t, "http://payments.test", body))
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != c.want {
					t.Errorf("error %v after %v, want %v", err, time.Since(begin), c.want)
				}
				if left[0] != c.left || len(left) == 2 && left[1] != "1000" {
					t.Errorf("time left %v", left)
				}
			})
		})
	}
}

func TestRefusedCallsDoNotReadTheirBody(t *testing.T) {
	broken := eager()
	broken.CircuitBreaker.FailureThreshold = 1
	full := eager()
	full.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}
	for name, c := range map[string]struct {
		policy abate.Policy
		want   error
	}{"open breaker": {broken, abate.ErrCircuitOpen}, "full bulkhead": {full, abate.ErrBulkheadFull}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				transport := abatehttp.NewTransport(roundTrip(func(req *http.Request) (*http.Response, error) {
					if name == "open breaker" {
						return nil, errors.New("connection torn")
					}
					return stuck(req)
				}), guard(t, c.policy))
				done := make(chan struct{})
				go func() {
					defer close(done)
					transport.RoundTrip(newRequest(t, "GET", "http://payments.test", nil).WithContext(ctx))
				}()
				synctest.Wait()
				body := &closing{Reader: iotest.ErrReader(errors.New("the body was read"))}
				if _, err := transport.RoundTrip(put(t, "http://payments.test", body)); !errors.Is(err, c.want) ||
					!body.closed.Load() {
					t.Errorf("error %v, body closed %v", err, body.closed.Load())
				}
				cancel()
				<-done
			})
		})
	}
}

func TestReadingTheBodyHoldsAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := eager()
		p.Bulkhead = bulkhead.Config{MaxConcurrentCalls: 1, NoQueue: true}
		transport := abatehttp.NewTransport(roundTrip(echoing), guard(t, p))
		done := make(chan struct{})
		go func() {
			defer close(done)
			if resp, err := transport.RoundTrip(
				put(t, "http://payments.test", io.NopCloser(&late{time.Second, "content"}))); err != nil || resp.StatusCode != 200 {
				t.Errorf("%v, error %v", resp, err)
			}
		}()
		synctest.Wait()
		if _, err := transport.RoundTrip(put(t, "http://payments.test", nil)); !errors.Is(err, abate.ErrBulkheadFull) {
			t.Errorf("error %v", err)
		}
		<-done
	})
}

func TestHugeBufferLimitIsNoLimit(t *testing.T) {
	for _, length := range []int64{-1, 7} {
		transport := abatehttp.NewTransport(roundTrip(echoing), guard(t, eager()))
		transport.MaxBufferedBody = math.MaxInt64
		req := put(t, "http://payments.test", io.NopCloser(strings.NewReader("content")))
		req.ContentLength = length
		if status, content := mustDo(t, &http.Client{Transport: transport}, req); status != 200 || content != "content" {
			t.Errorf("%d %q", status, content)
		}
	}
}

func TestContentLengthAloneTakesNoMemory(t *testing.T) {
	transport := abatehttp.NewTransport(never(t), guard(t, eager()))
	transport.MaxBufferedBody = math.MaxInt64
	req := put(t, "http://payments.test", io.NopCloser(strings.NewReader("content")))
	req.ContentLength = math.MaxInt64
	if _, err := transport.RoundTrip(req); err == nil {
		t.Error("no error")
	}
}

func TestBodyThatLiesAboutItsLengthIsNotSent(t *testing.T) {
	p, events := watched(eager())
	transport := abatehttp.NewTransport(never(t), guard(t, p))
	for _, length := range []int64{3, 100} {
		body := &closing{Reader: strings.NewReader("short")}
		req := put(t, "http://payments.test", body)
		req.ContentLength = length
		_, err := transport.RoundTrip(req)
		if want := fmt.Sprintf("the request says ContentLength %d, but its body has 5 bytes", length); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if !body.closed.Load() {
			t.Error("the caller's body is open")
		}
	}
	for _, e := range events.all(core.AttemptEnded) {
		if e.Class != abate.Ignored {
			t.Errorf("it is held against the server as %v", e.Class)
		}
	}
}

func TestBodyThatCannotBeReadGetsNoFallback(t *testing.T) {
	broken := errors.New("camera unplugged")
	for name, body := range map[string]io.ReadCloser{
		"read":   io.NopCloser(iotest.ErrReader(broken)),
		"closed": badCloser{strings.NewReader("x"), broken},
	} {
		_, err := abatehttp.NewTransport(never(t), guard(t, degrading())).RoundTrip(put(t, "http://payments.test", body))
		if !errors.Is(err, broken) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

type badCloser struct {
	io.Reader
	err error
}

func (b badCloser) Close() error { return b.err }

func TestNoHedgeIsSentBeforeItsBodyIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		delay   time.Duration // until the body is there
		class   abate.Class   // of the hedge
		sent    int
	}{
		"still being read":  {"content", 1500 * time.Millisecond, abate.Success, 2}, // it waits until the body is there
		"too long to hold":  {strings.Repeat("a", 100<<10), 0, abate.Ignored, 1},
		"there and waiting": {"content", 500 * time.Millisecond, abate.Success, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, events := watched(hedging(time.Second))
				sent := make(chan string, 9)
				base := roundTrip(func(req *http.Request) (*http.Response, error) {
					n := req.Header.Get("X-Envoy-Attempt-Count")
					sent <- n
					if n == "1" {
						select {
						case <-time.After(time.Minute):
						case <-req.Context().Done():
							return nil, req.Context().Err()
						}
					}
					return echoing(req)
				})
				body := io.NopCloser(&late{c.delay, c.content})
				status, got := mustDo(t, &http.Client{Transport: abatehttp.NewTransport(base, guard(t, p))},
					put(t, "http://payments.test", body))
				if status != 200 || got != c.content || len(sent) != c.sent {
					t.Errorf("%d with %d bytes after %d copies, want %d", status, len(got), len(sent), c.sent)
				}
				for _, e := range events.all(core.AttemptEnded) {
					if e.Attempt == 2 && e.Class != c.class {
						t.Errorf("the hedge counts as %v: %v", e.Class, e.Err)
					}
				}
			})
		})
	}
}

// The trailer's values are not there before the body has been read.
func TestRequestTrailerComesWithEveryAttempt(t *testing.T) {
	for name, p := range map[string]abate.Policy{"retries": {}, "retries and hedges": hedging(time.Hour)} {
		for _, rewinds := range []bool{false, true} {
			p.Retry = abate.Retry{MaxRetries: 3, Backoff: retry.NoBackoff}
			sums := make(chan string, 9)
			b := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				sums <- r.Trailer.Get("X-Sum")
				w.WriteHeader(503)
			})
			client, _ := newClient(t, guard(t, p))
			req := put(t, b.URL, nil)
			req.Trailer = http.Header{"X-Sum": nil}
			body := func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader("content"), atEnd(func() {
					req.Trailer.Set("X-Sum", "42")
				}))), nil
			}
			req.Body, _ = body()
			if rewinds {
				req.GetBody = body
			}
			mustDo(t, client, req)
			for range 4 {
				if sum := <-sums; sum != "42" {
					t.Errorf("%s, GetBody %v: trailer %q", name, rewinds, sum)
				}
			}
		}
	}
}

// atEnd is an empty reader that does something.
type atEnd func()

func (f atEnd) Read([]byte) (int, error) { f(); return 0, io.EOF }
