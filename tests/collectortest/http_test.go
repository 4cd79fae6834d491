package collectortest_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/retry"
)

// service is a real server that fails as often as it is told to, and remembers the traces that it was told of.
type service struct {
	*httptest.Server
	fail atomic.Int32
	mu   sync.Mutex
	told []string
}

func serve(t *testing.T, answer http.HandlerFunc) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.told = append(s.told, req.Header.Get("Traceparent"))
		s.mu.Unlock()
		if s.fail.Add(-1) >= 0 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		answer(w, req)
	}))
	t.Cleanup(s.Close)
	return s
}

// client is one whose transport is the whole stack.
func (s sdk) client(t *testing.T, p abate.Policy) *http.Client {
	t.Helper()
	s.Adjust("payment-service", &p)
	g, err := abate.New("payment-service", p)
	if err != nil {
		t.Fatal(err)
	}
	s.Add(g)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: s.Calls(&abatehttp.Transport{Base: s.Attempts(base), Guard: g})}
}

func eager(n int) abate.Policy {
	p := abate.DefaultPolicy()
	p.Retry = abate.Retry{MaxRetries: n, Backoff: retry.NoBackoff}
	p.Timeout, p.AttemptTimeout = time.Minute, 30*time.Second
	return p
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func get(t *testing.T, client *http.Client, url string) (string, error) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func TestTheCollectorGetsEveryAttemptOfARetriedRequest(t *testing.T) {
	c, s := collect(t), serve(t, hello)
	sdk := c.sdk(t)
	s.fail.Store(2)
	if body, err := get(t, sdk.client(t, eager(3)), s.URL+"/charge?sig=secret"); body != "hello" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	sdk.shutdown(t)

	call := c.named(t, "call payment-service", 1)[0]
	if value(call.GetAttributes(), "abate.attempts") != "3" || value(call.GetAttributes(), "abate.outcome") != "success" ||
		len(call.GetEvents()) != 2 ||
		call.GetStatus().GetCode() != trace.Status_STATUS_CODE_UNSET {
		t.Errorf("the call: %v", call)
	}
	for i, attempt := range c.named(t, "GET", 3) {
		a := attempt.GetAttributes()
		if got, want := value(a, "http.request.resend_count"), []string{"", "1", "2"}[i]; got != want {
			t.Errorf("attempt %d: resend_count %q, want %q", i+1, got, want)
		}
		if got, want := value(a, "error.type"), []string{"503", "503", ""}[i]; got != want {
			t.Errorf("attempt %d: error.type %q, want %q", i+1, got, want)
		}
		if got, want := value(a, "url.full"), s.URL+"/charge?sig=REDACTED"; got != want {
			t.Errorf("attempt %d: url.full %q, want %q", i+1, got, want)
		}
		if attempt.GetKind() != trace.Span_SPAN_KIND_CLIENT ||
			string(attempt.GetParentSpanId()) != string(call.GetSpanId()) || s.told[i] != traceparent(attempt) {
			t.Errorf("attempt %d: the server was told %s: %v", i+1, s.told[i], attempt)
		}
		if attempt.GetStartTimeUnixNano() < call.GetStartTimeUnixNano() ||
			attempt.GetEndTimeUnixNano() > call.GetEndTimeUnixNano() {
			t.Errorf("attempt %d lies outside of its call", i+1)
		}
	}
}

func TestTheCollectorGetsTheMetrics(t *testing.T) {
	c, s := collect(t), serve(t, hello)
	sdk := c.sdk(t)
	client := sdk.client(t, eager(3))
	s.fail.Store(1)
	for range 2 {
		if _, err := get(t, client, s.URL); err != nil {
			t.Fatal(err)
		}
	}
	sdk.shutdown(t)
	sum := func(name, key, want string) (n int64) {
		for _, p := range c.metrics[name].GetSum().GetDataPoints() {
			if value(p.GetAttributes(), "abate.guard") == "payment-service" &&
				(key == "" || value(p.GetAttributes(), key) == want) {
				n += p.GetAsInt()
			}
		}
		return n
	}
	if n := sum("abate.client.attempts", "abate.outcome", "success"); n != 2 {
		t.Errorf("%d attempts succeeded, want 2", n)
	}
	if n := sum("abate.client.attempts", "abate.outcome", "overload"); n != 1 {
		t.Errorf("%d attempts met an overload, want 1", n)
	}
	if n := sum("abate.client.retries", "", ""); n != 1 {
		t.Errorf("%d retries, want 1", n)
	}
	if n := sum("abate.circuit_breaker.state", "abate.circuit_breaker.state", "closed"); n != 1 {
		t.Errorf("the circuit is not closed: %v", c.metrics["abate.circuit_breaker.state"])
	}
	if m := c.metrics["abate.client.call.duration"]; m.GetUnit() != "s" ||
		m.GetHistogram().GetDataPoints()[0].GetCount() != 2 {
		t.Errorf("durations: %v", m)
	}
	if !c.scopes["github.com/abate-go/abate/adapter/abateotel"] || len(c.scopes) != 1 {
		t.Errorf("scopes: %v", c.scopes)
	}
}

func TestARefusedAnswerSaysWhyOnTheCall(t *testing.T) {
	c, s := collect(t), serve(t, hello)
	sdk := c.sdk(t)
	s.fail.Store(9)
	resp, err := sdk.client(t, eager(1)).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	sdk.shutdown(t)
	call := c.named(t, "call payment-service", 1)[0]
	if resp.StatusCode != 503 || value(call.GetAttributes(), "abate.reason") != "attempts_exhausted" ||
		call.GetStatus().GetCode() != trace.Status_STATUS_CODE_ERROR {
		t.Errorf("the caller got %s and no error; the span: %v", resp.Status, call)
	}
}

func TestSpansOfAStreamEndWithTheStream(t *testing.T) {
	c := collect(t)
	more := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = io.WriteString(w, " last")
	})
	sdk := c.sdk(t)
	resp, err := sdk.client(t, eager(1)).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := sdk.traces.ForceFlush(t.Context()); err != nil {
		t.Error(err)
	}
	c.named(t, "GET", 0)
	begun := time.Now().UnixNano()
	close(more)
	if b, err := io.ReadAll(resp.Body); string(b) != "first last" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	resp.Body.Close()
	sdk.shutdown(t)
	for _, span := range []*trace.Span{c.named(t, "GET", 1)[0], c.named(t, "call payment-service", 1)[0]} {
		if int64(span.GetEndTimeUnixNano()) < begun || span.GetStatus().GetCode() != trace.Status_STATUS_CODE_UNSET {
			t.Errorf("%s ended before its stream, or badly: %v", span.GetName(), span)
		}
	}
}

// endedSpans is told of the attempts that have ended.
type endedSpans chan struct{}

func (e endedSpans) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.Name() == "GET" {
		e <- struct{}{}
	}
}
func (endedSpans) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (endedSpans) Shutdown(context.Context) error                  { return nil }
func (endedSpans) ForceFlush(context.Context) error                { return nil }

func TestTheHedgeThatLostIsCancelledAndNoError(t *testing.T) {
	c := collect(t)
	arrived := make(chan struct{}, 1)
	s := serve(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Envoy-Attempt-Count") == "1" { // which need not be the first to arrive
			arrived <- struct{}{}
			<-req.Context().Done()
			return
		}
		<-arrived // or the first copy might be given up before it is sent
		hello(w, req)
	})
	sdk := c.sdk(t)
	ended := make(endedSpans, 2)
	sdk.traces.RegisterSpanProcessor(ended)
	p := eager(0)
	p.Hedge = hedge.Config{Delay: 20 * time.Millisecond}
	if body, err := get(t, sdk.client(t, p), s.URL); body != "hello" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	for range 2 { // the loser's may end after the call
		<-ended
	}
	sdk.shutdown(t)
	copies := c.named(t, "GET", 2)
	if value(copies[0].GetAttributes(), "error.type") != "canceled" ||
		copies[0].GetStatus().GetCode() != trace.Status_STATUS_CODE_UNSET {
		t.Errorf("the loser: %v", copies[0])
	}
	if value(copies[1].GetAttributes(), "http.request.resend_count") != "1" ||
		value(copies[1].GetAttributes(), "http.response.status_code") == "" {
		t.Errorf("the winner: %v", copies[1])
	}
	if call := c.named(t, "call payment-service", 1)[0]; len(call.GetEvents()) != 1 ||
		call.GetEvents()[0].GetName() != "abate.hedge.sent" {
		t.Errorf("the call: %v", call)
	}
}

func TestACallerThatLeavesIsNoError(t *testing.T) {
	c := collect(t)
	arrived := make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, req *http.Request) {
		close(arrived)
		<-req.Context().Done()
	})
	sdk := c.sdk(t)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-arrived
		leave()
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sdk.client(t, eager(3)).Do(req); !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	sdk.shutdown(t)
	for _, span := range []*trace.Span{c.named(t, "GET", 1)[0], c.named(t, "call payment-service", 1)[0]} {
		if span.GetStatus().GetCode() != trace.Status_STATUS_CODE_UNSET {
			t.Errorf("%s: %v", span.GetName(), span)
		}
	}
}

// TestNothingIsLeftBehind: no goroutine, no connection and no span without an end, whatever became of the requests.
func TestNothingIsLeftBehind(t *testing.T) {
	const workers, rounds = 8, 50
	before := runtime.NumGoroutine()
	func() {
		c := collect(t)
		defer c.server.Stop()
		s := serve(t, hello)
		defer s.Close()
		sdk := c.sdk(t)
		p := eager(2)
		p.CircuitBreaker.Disabled = true
		client := sdk.client(t, p)
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				for i := range rounds {
					s.fail.Store(int32(i % 3))
					ctx, leave := context.WithCancel(context.Background())
					if (w+i)%7 == 0 {
						leave()
					}
					req, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader("body"))
					req.Header.Set("Idempotency-Key", "k")
					if resp, err := client.Do(req); err == nil {
						if i%2 == 0 {
							_, _ = io.Copy(io.Discard, resp.Body)
						}
						resp.Body.Close()
					}
					leave()
				}
			})
		}
		all.Wait()
		client.CloseIdleConnections()
		sdk.shutdown(t)
		c.named(t, "call payment-service", workers*rounds)
	}()
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d now:\n%s", before, runtime.NumGoroutine(), stacks[:runtime.Stack(stacks, true)])
		}
	}
}
