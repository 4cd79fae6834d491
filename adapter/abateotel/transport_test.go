package abateotel_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
)

func TestEachAttemptHasASpanThatSaysHowOftenTheRequestWasSentBefore(t *testing.T) {
	f := telemetry(t, nil)
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen = append(seen, req.Header.Get("Traceparent"))
		if len(seen) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	ctx, root := f.tracer.Start(t.Context(), "root")
	client := &http.Client{Transport: f.stack(guard(t, "payment-service", eager(3)), server.Client().Transport)}
	req := request(t, server.URL+"/charge?order=7").WithContext(ctx)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, resp); got != "hello" {
		t.Errorf("read %q", got)
	}
	root.End()

	call := f.named(t, "call payment-service", 1)[0]
	call.want(t, map[string]string{"abate.guard": "payment-service", "abate.attempts": "3", "abate.outcome": "success",
		"error.type": "", "abate.reason": "",
		"http.request.method": "GET", "http.response.status_code": "200"})
	if call.Status().Code != codes.Unset || call.SpanKind() != trace.SpanKindInternal ||
		call.Parent().SpanID() != root.SpanContext().SpanID() {
		t.Errorf("status %v, kind %v, parent %v", call.Status(), call.SpanKind(), call.Parent())
	}
	want := []string{"abate.retry.scheduled abate.attempt=1 abate.retry.delay=0 error.type=*errors.errorString",
		"abate.retry.scheduled abate.attempt=2 abate.retry.delay=0 error.type=*errors.errorString"}
	if got := call.events(); !slices.Equal(got, want) {
		t.Errorf("events %q\n  want %q", got, want)
	}
	for i, attempt := range f.named(t, "GET", 3) {
		status := []string{"503", "503", "200"}[i]
		attempt.want(t, map[string]string{"http.request.resend_count": []string{"", "1", "2"}[i],
			"http.response.status_code": status,
			"error.type":                []string{"503", "503", ""}[i], "http.request.method": "GET",
			"server.address": "127.0.0.1", "network.protocol.version": "1.1",
			"server.port": server.URL[strings.LastIndexByte(server.URL, ':')+1:], "url.full": server.URL + "/charge?order=7"})
		if attempt.SpanKind() != trace.SpanKindClient || attempt.Parent().SpanID() != call.SpanContext().SpanID() ||
			(attempt.Status().Code == codes.Error) != (i < 2) {
			t.Errorf("kind %v, parent %v, status %v", attempt.SpanKind(), attempt.Parent(), attempt.Status())
		}
		c := attempt.SpanContext()
		if want := "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-01"; seen[i] != want {
			t.Errorf("the server was told %q, want %q", seen[i], want)
		}
	}
}

func TestACallThatThePolicyStopsSaysWhy(t *testing.T) {
	broke := eager(3)
	broke.RetryBudget = budget.Config{Kind: budget.Tokens, MaxTokens: 1, CostPerRetry: 1}
	for reason, c := range map[string]struct {
		policy   abate.Policy
		prepare  func(*abate.Guard)
		attempts string
		outcome  string
	}{
		"circuit_open":       {abate.Policy{CircuitBreaker: breaker.Config{Mode: breaker.ForcedOpen}}, nil, "0", "refused"},
		"budget_exhausted":   {broke, nil, "2", "overload"},
		"attempts_exhausted": {eager(1), nil, "2", "overload"},
		"bulkhead_full": {abate.Policy{Bulkhead: bulkhead.Config{
			MaxConcurrentCalls: 1, NoQueue: true,
		}}, func(g *abate.Guard) {
			g.Begin(new(core.Call), 0, core.NoDeadline)
		}, "0", "refused"},
	} {
		t.Run(reason, func(t *testing.T) {
			f, g := telemetry(t, nil), guard(t, "s", c.policy)
			if c.prepare != nil {
				c.prepare(g)
			}
			resp, err := f.stack(g, stub(func(req *http.Request) (*http.Response, error) {
				return answer(req, 503, ""), nil
			})).RoundTrip(request(t, "http://a/"))
			if err == nil {
				read(t, resp)
			}
			call := f.named(t, "call s", 1)[0]
			call.want(t, map[string]string{
				"abate.reason": reason, "error.type": reason, "abate.attempts": c.attempts, "abate.outcome": c.outcome,
			})
			if got, want := call.events(),
				"abate.call.stopped abate.reason="+reason+" abate.attempts="+c.attempts; got[len(got)-1] != want {
				t.Errorf("events %q, want the last to be %q", got, want)
			}
			if call.Status().Code != codes.Error || !strings.HasPrefix(call.Status().Description, "s: ") {
				t.Errorf("status %v", call.Status())
			}
		})
	}
}

func TestWhatNobodyWaitsForIsNoError(t *testing.T) {
	f := telemetry(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	_, err := f.stack(guard(t, "s", eager(3)), stub(func(req *http.Request) (*http.Response, error) {
		leave()
		return nil, req.Context().Err()
	})).RoundTrip(request(t, "http://a/").WithContext(ctx))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
	attempt, call := f.named(t, "GET", 1)[0], f.named(t, "call s", 1)[0]
	attempt.want(t, map[string]string{"error.type": "canceled", "http.response.status_code": ""})
	call.want(t, map[string]string{"error.type": "", "abate.outcome": "ignored"})
	for _, s := range []span{attempt, call} {
		if s.Status().Code != codes.Unset {
			t.Errorf("%s: status %v", s.Name(), s.Status())
		}
	}
}

func TestHedgedCopiesHaveSpansSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := telemetry(t, nil)
		p := abate.Policy{Hedge: hedge.Config{Delay: 10 * time.Millisecond}}
		resp, err := f.stack(guard(t, "s", p), stub(func(req *http.Request) (*http.Response, error) {
			if req.Header.Get("X-Envoy-Attempt-Count") == "1" {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			time.Sleep(5 * time.Millisecond)
			return answer(req, 200, "quick"), nil
		})).RoundTrip(request(t, "http://a/"))
		if err != nil || read(t, resp) != "quick" {
			t.Fatalf("got %v, %v", resp, err)
		}
		call, copies := f.named(t, "call s", 1)[0], f.named(t, "GET", 2)
		call.want(t, map[string]string{"abate.attempts": "2", "abate.outcome": "success", "error.type": ""})
		if got := call.events(); !slices.Equal(got, []string{"abate.hedge.sent abate.attempt=2"}) {
			t.Errorf("events %q", got)
		}
		copies[0].want(t, map[string]string{"http.request.resend_count": "", "error.type": "canceled"})
		copies[1].want(t, map[string]string{
			"http.request.resend_count": "1", "error.type": "", "http.response.status_code": "200",
		})
		if copies[0].Status().Code != codes.Unset {
			t.Errorf("the loser has status %v", copies[0].Status())
		}
		if lasted := copies[0].EndTime().Sub(copies[0].StartTime()); lasted != 15*time.Millisecond ||
			!copies[1].StartTime().Before(copies[0].EndTime()) {
			t.Errorf("the first copy lasted %v", lasted)
		}
	})
}

func TestADeniedHedgeSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := telemetry(t, nil)
		p := abate.Policy{Hedge: hedge.Config{Delay: time.Millisecond}, RetryBudget: budget.Config{
			Kind: budget.Tokens, MaxTokens: 1, CostPerRetry: 1,
		}}
		g := guard(t, "s", p)
		g.CountHiddenRetries(1)
		resp, err := f.stack(g, stub(func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return answer(req, 200, ""), nil
		})).RoundTrip(request(t, "http://a/"))
		if err != nil {
			t.Fatal(err)
		}
		read(t, resp)
		if got := f.named(t, "call s", 1)[0].events(); !slices.Equal(got, []string{
			"abate.hedge.denied abate.reason=budget_exhausted",
		}) {
			t.Errorf("events %q", got)
		}
	})
}

func TestACallThatWaitsForAPermitSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := telemetry(t, nil)
		g := guard(t, "s", abate.Policy{Bulkhead: bulkhead.Config{MaxConcurrentCalls: 1, MaxQueue: 1, MaxWait: time.Minute}})
		client := f.stack(g, stub(func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return answer(req, 200, ""), nil
		}))
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if resp, err := client.RoundTrip(request(t, "http://a/")); err == nil {
					read(t, resp)
				}
			})
		}
		both.Wait()
		calls := f.named(t, "call s", 2)
		if got := slices.Concat(calls[0].events(), calls[1].events()); !slices.Equal(got, []string{"abate.call.queued"}) {
			t.Errorf("events %q", got)
		}
	})
}

func TestSpansLastUntilTheAnswerIsRead(t *testing.T) {
	broken := errors.New("the line broke")
	for name, c := range map[string]struct {
		use    func(resp *http.Response)
		status codes.Code
		kind   string
	}{
		"read to its end": {func(resp *http.Response) { _, _ = io.Copy(io.Discard, resp.Body) }, codes.Unset, ""},
		"closed":          {func(resp *http.Response) { resp.Body.Close() }, codes.Unset, ""},
		"closed twice":    {func(resp *http.Response) { resp.Body.Close(); resp.Body.Close() }, codes.Unset, ""},
		"read after the close": {func(resp *http.Response) {
			resp.Body.Close()
			_, _ = resp.Body.Read(make([]byte, 1))
		}, codes.Unset, ""},
		"broken off": {func(resp *http.Response) { _, _ = io.ReadAll(resp.Body) }, codes.Error, "*errors.errorString"},
		"cancelled":  {func(resp *http.Response) { _, _ = io.ReadAll(resp.Body) }, codes.Unset, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			f := telemetry(t, nil)
			resp, err := f.stack(guard(t, "s", eager(0)), stub(func(req *http.Request) (*http.Response, error) {
				resp := answer(req, 200, "stream")
				switch name {
				case "broken off":
					resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("str"), errReader{broken}))
				case "cancelled":
					resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("str"), errReader{context.Canceled}))
				case "read after the close":
					resp.Body = io.NopCloser(errReader{broken})
				}
				return resp, nil
			})).RoundTrip(request(t, "http://a/"))
			if err != nil {
				t.Fatal(err)
			}
			f.named(t, "GET", 0)
			f.named(t, "call s", 0)
			c.use(resp)
			for _, s := range []span{f.named(t, "GET", 1)[0], f.named(t, "call s", 1)[0]} {
				s.want(t, map[string]string{"error.type": c.kind})
				if s.Status().Code != c.status {
					t.Errorf("%s: status %v, want %v", s.Name(), s.Status(), c.status)
				}
			}
		})
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// contested is a body whose Read ends when it is being closed, with an error, before Close has returned.
type contested struct{ closing, read chan struct{} }

func (c contested) Read([]byte) (int, error) {
	<-c.closing
	return 0, errDown
}

func (c contested) Close() error {
	close(c.closing)
	<-c.read
	return nil
}

func TestABodyMayBeClosedWhileItIsRead(t *testing.T) {
	f := telemetry(t, nil)
	b := contested{make(chan struct{}), make(chan struct{})}
	resp, err := f.Attempts(stub(func(req *http.Request) (*http.Response, error) {
		resp := answer(req, 200, "")
		resp.Body = b
		return resp, nil
	})).RoundTrip(request(t, "http://a/"))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(b.read)
		_, _ = resp.Body.Read(make([]byte, 1))
	}()
	resp.Body.Close()
	if s := f.named(t, "GET", 1)[0]; s.Status().Code != codes.Unset || s.attributes["error.type"] != "" {
		t.Errorf("status %v, %v: a body that its owner closes is no error", s.Status(), s.attributes)
	}
}

func TestAnAnswerWithoutABodyEndsItsSpansAtOnce(t *testing.T) {
	own := struct{ io.ReadWriteCloser }{}
	for name, c := range map[string]struct {
		method string
		status int
		body   io.ReadCloser
	}{
		"HEAD": {"HEAD", 200, io.NopCloser(strings.NewReader(""))}, "204": {"GET", 204, io.NopCloser(strings.NewReader(""))},
		"304": {"GET", 304, io.NopCloser(strings.NewReader(""))}, "no body": {"GET", 200, http.NoBody},
		"nil": {"GET", 200, nil},
		"101": {"GET", 101, own},
	} {
		t.Run(name, func(t *testing.T) {
			f := telemetry(t, nil)
			req := request(t, "http://a/")
			req.Method = c.method
			resp, err := f.Calls(f.Attempts(stub(func(req *http.Request) (*http.Response, error) {
				resp := answer(req, c.status, "")
				resp.Body = c.body
				return resp, nil
			}))).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			f.named(t, c.method, 1)
			f.named(t, "call", 1)
			if resp.Body != c.body {
				t.Errorf("the body became %T", resp.Body)
			}
		})
	}
}

func TestABrokenBaseEndsItsSpans(t *testing.T) {
	for name, c := range map[string]struct {
		base   stub
		status codes.Code
	}{
		"an error":  {func(*http.Request) (*http.Response, error) { return nil, errDown }, codes.Error},
		"both":      {func(req *http.Request) (*http.Response, error) { return answer(req, 200, ""), errDown }, codes.Error},
		"neither":   {func(*http.Request) (*http.Response, error) { return nil, nil }, codes.Unset},
		"it panics": {func(*http.Request) (*http.Response, error) { panic(errDown) }, codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			f := telemetry(t, nil)
			func() {
				defer func() {
					if r := recover(); r != nil && r != any(errDown) {
						panic(r)
					}
				}()
				_, _ = f.Calls(f.Attempts(c.base)).RoundTrip(request(t, "http://a/"))
			}()
			for _, s := range []span{f.named(t, "GET", 1)[0], f.named(t, "call", 1)[0]} {
				if s.Status().Code != c.status {
					t.Errorf("%s: status %v, want %v", s.Name(), s.Status(), c.status)
				}
			}
		})
	}
}

func TestTheCallersRequestIsNotChanged(t *testing.T) {
	f := telemetry(t, nil)
	req := request(t, "http://a/")
	req.Header.Set("A", "1")
	var sent *http.Request
	resp, err := f.Calls(f.Attempts(stub(func(r *http.Request) (*http.Response, error) {
		sent = r
		return answer(r, 200, ""), nil
	}))).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if sent.Header.Get("Traceparent") == "" || sent.Header.Get("A") != "1" || len(req.Header) != 1 {
		t.Errorf("sent %v, the original has %v now", sent.Header, req.Header)
	}
	if resp.Request != req {
		t.Error("the answer names the copy, with the contexts of the spans")
	}
	bare := request(t, "http://a/")
	bare.Header = nil
	if _, err := f.Attempts(stub(func(r *http.Request) (*http.Response, error) {
		return answer(r, 200, ""), nil
	})).RoundTrip(bare); err != nil || bare.Header != nil {
		t.Errorf("a request without a header: %v, %v", bare.Header, err)
	}
}

// TestWhatIsNotSampledStaysOneTrace: attempts must not begin traces of their own when nobody records the call.
func TestWhatIsNotSampledStaysOneTrace(t *testing.T) {
	f := telemetry(t, sdktrace.ParentBased(sdktrace.NeverSample()))
	var traces, flags []string
	resp, err := f.stack(guard(t, "s", eager(2)), stub(func(req *http.Request) (*http.Response, error) {
		parts := strings.Split(req.Header.Get("Traceparent"), "-")
		traces, flags = append(traces, parts[1]), append(flags, parts[3])
		if len(traces) < 3 {
			return nil, errDown
		}
		return answer(req, 200, "hello"), nil
	})).RoundTrip(request(t, "http://a/"))
	if err != nil || read(t, resp) != "hello" {
		t.Fatal(resp, err)
	}
	if len(f.spans.Started()) != 0 {
		t.Errorf("recorded: %v", f.names())
	}
	if len(traces) != 3 || traces[0] != traces[2] || !slices.Equal(flags, []string{"00", "00", "00"}) {
		t.Errorf("traces %v, flags %v", traces, flags)
	}
}

func TestANumberThatCannotBeIsNoResend(t *testing.T) {
	f := telemetry(t, nil)
	attempts := f.Attempts(stub(func(*http.Request) (*http.Response, error) { return nil, errDown }))
	for _, c := range []struct {
		header []string
		want   string
	}{
		{nil, ""}, {[]string{}, ""}, {[]string{"1"}, ""}, {[]string{"0"}, ""}, {[]string{"-2"}, ""}, {[]string{"two"}, ""},
		{[]string{""}, ""},
		{[]string{"2", "2"}, ""}, {[]string{"99999999999999999999"}, ""}, {[]string{"2"}, "1"}, {[]string{"33"}, "32"},
	} {
		f.spans.Reset()
		req := request(t, "http://a/")
		req.Header["X-Envoy-Attempt-Count"] = c.header
		_, _ = attempts.RoundTrip(req)
		f.named(t, "GET", 1)[0].want(t, map[string]string{"http.request.resend_count": c.want})
	}
}

func TestWithoutTheHeaderTheCallKnowsTheNumber(t *testing.T) {
	for name, inbound := range map[string]string{"no header": "", "one from further out": "7"} {
		t.Run(name, func(t *testing.T) {
			f := telemetry(t, nil)
			n := 0
			req := request(t, "http://a/")
			if inbound != "" {
				req.Header.Set("X-Envoy-Attempt-Count", inbound)
			}
			resp, err := f.Calls(&guarded{guard: guard(t, "s", eager(2)), omit: true,
				base: f.Attempts(stub(func(req *http.Request) (*http.Response, error) {
					if n++; n < 3 {
						return nil, errDown
					}
					return answer(req, 200, ""), nil
				}))}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			read(t, resp)
			for i, attempt := range f.named(t, "GET", 3) {
				attempt.want(t, map[string]string{"http.request.resend_count": []string{"", "1", "2"}[i]})
			}
		})
	}
}

type closer struct {
	stub
	closed int
}

func (c *closer) CloseIdleConnections() { c.closed++ }

func TestIdleConnectionsOfTheBaseAreClosed(t *testing.T) {
	f, base := telemetry(t, nil), &closer{}
	(&http.Client{Transport: f.Calls(f.Attempts(base))}).CloseIdleConnections()
	if base.closed != 1 {
		t.Errorf("closed %d times", base.closed)
	}
	(&http.Client{Transport: f.Calls(stub(nil))}).CloseIdleConnections() // has none
}

func TestWithoutABaseItIsTheDefaultTransport(t *testing.T) {
	f := telemetry(t, nil)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client := &http.Client{Transport: f.Calls(f.Attempts(nil))}
	resp, err := client.Get(server.URL + "/x")
	if err != nil {
		t.Fatal(err)
	}
	read(t, resp)
	client.CloseIdleConnections()
	f.named(t, "GET", 1)[0].want(t, map[string]string{"error.type": "404"})
	if resp, err := f.Calls(nil).RoundTrip(request(t, "http://127.0.0.1:1/refused")); err == nil {
		resp.Body.Close()
		t.Error("nobody listens, and somebody answered")
	}
	f.named(t, "call", 2)[1].want(t, map[string]string{"error.type": "connection_refused"})
}
