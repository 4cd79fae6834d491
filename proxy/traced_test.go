package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/abate-go/abate/proxy"
	"github.com/abate-go/abate/proxy/tracing"
)

// spanSeen is a span as OTLP in JSON has it.
type spanSeen struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	StartTimeUnixNano, EndTimeUnixNano  string
	Flags                               int
	Attributes                          []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	Status struct {
		Message string
		Code    int
	}
}

// says is the value of an attribute, "" without it.
func (s *spanSeen) says(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// want compares attributes; "" is none.
func (s *spanSeen) want(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := s.says(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s of %q is %q, want %q", pairs[i], s.Name, got, pairs[i+1])
		}
	}
}

// collector takes the spans of a proxy.
type collector struct {
	mu    sync.Mutex
	spans []*spanSeen
}

func (c *collector) RoundTrip(req *http.Request) (*http.Response, error) {
	var batch struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []*spanSeen }
		}
	}
	if err := json.NewDecoder(req.Body).Decode(&batch); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range batch.ResourceSpans {
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("")), Request: req}, nil
}

// record has a proxy send its spans to c.
func (c *collector) record(s tracing.Sampler) func(*proxy.Config) {
	return func(config *proxy.Config) {
		config.Tracing = tracing.Settings{Endpoint: "http://collector.test/v1/traces", JSON: true, Transport: c, Sampler: s}
	}
}

var (
	allCalls = tracing.Sampler{Ratio: 1, Parent: true}
	noCalls  = tracing.Sampler{Parent: true}
)

// ofAll ends the proxy and returns its spans: those of calls, and those of attempts in their order.
func (c *collector) ofAll(t *testing.T, r *running) (calls, attempts []*spanSeen) {
	t.Helper()
	r.shutdown()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Kind == 2 {
			calls = append(calls, s)
		} else {
			attempts = append(attempts, s)
		}
	}
	begun := func(a, b *spanSeen) int { return strings.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) }
	slices.SortStableFunc(calls, begun) // on a busy machine the first may be the last to be noted
	slices.SortStableFunc(attempts, begun)
	return calls, attempts
}

const (
	traceID  = "0af7651916cd43dd8448eb211c80319c"
	parentID = "b7ad6b7169203331"
	above    = "00-" + traceID + "-" + parentID + "-01"
)

// failFirst fails n times.
func failFirst(n int) func(net.Conn, string) {
	var mu sync.Mutex
	return func(c net.Conn, _ string) {
		mu.Lock()
		defer mu.Unlock()
		if n--; n >= 0 {
			io.WriteString(c, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
			return
		}
		io.WriteString(c, ok("fine"))
	}
}

// parents are what a service was told, as trace id, span id and flags.
func parents(s *server) (all []string) {
	for _, req := range s.seen() {
		all = append(all, field(req, "traceparent"))
	}
	return all
}

func TestACallAndEachAttemptHaveSpansInTheTraceOfTheCaller(t *testing.T) {
	c, s := new(collector), upstream(t, failFirst(2))
	r := start(t, single([]string{s.url}, quickRetry), c.record(allCalls))
	r.dial().send("GET /a?secret=1 HTTP/1.1\r\nHost: x.test:81\r\nTraceparent: " + above +
		"\r\nTracestate: v=1\r\n\r\n").answer()
	told := parents(s)
	if state := field(s.seen()[0], "tracestate"); state != "v=1" {
		t.Errorf("tracestate is %q", state)
	}
	calls, attempts := c.ofAll(t, r)
	if len(calls) != 1 || len(attempts) != 3 {
		t.Fatalf("%d calls, %d attempts", len(calls), len(attempts))
	}
	call := calls[0]
	if call.TraceID != traceID || call.ParentSpanID != parentID || call.Name != "GET /" || call.Status.Code != 0 {
		t.Errorf("%+v", call)
	}
	call.want(t, "http.request.method", "GET", "http.response.status_code", "200", "abate.guard", "s",
		"abate.attempts", "3", "url.path", "/a", "server.address", "x.test", "server.port", "81",
		"client.address", "127.0.0.1", "error.type", "",
		"http.route", "/", "network.protocol.version", "1.1", "abate.reason", "")
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	for i, a := range attempts {
		if a.TraceID != traceID || a.ParentSpanID != call.SpanID || a.Name != "GET" ||
			a.StartTimeUnixNano < call.StartTimeUnixNano || a.EndTimeUnixNano > call.EndTimeUnixNano {
			t.Errorf("%+v", a)
		}
		if want := "00-" + traceID + "-" + a.SpanID + "-01"; told[i] != want {
			t.Errorf("the service was told %s, want %s", told[i], want)
		}
		again, status, failure, code := fmt.Sprint(i), "503", "503", 2
		if i == 0 {
			again = ""
		}
		if i == 2 {
			status, failure, code = "200", "", 0
		}
		a.want(t, "http.request.resend_count", again, "http.response.status_code", status, "error.type", failure,
			"server.address", host, "server.port", port, "url.full", s.url+"/a", "abate.endpoint", s.url, "abate.guard", "s",
			"abate.attempt", fmt.Sprint(i+1))
		if a.Status.Code != code {
			t.Errorf("attempt %d has the status %d", i+1, a.Status.Code)
		}
	}
}

func TestWhatIsNotRecordedIsPassedOn(t *testing.T) {
	unsampled := "00-" + traceID + "-" + parentID + "-00"
	later := "cc-" + traceID + "-" + parentID + "-00-more"
	for _, tt := range []struct {
		name   string
		record bool
		sent   []string
		want   string // a pattern's beginning and end
		end    string
	}{
		{"a proxy that records nothing", false, []string{above}, above, ""},
		{"nor reads it", false, []string{"what"}, "what", ""},
		{"the one above records nothing", true, []string{unsampled}, unsampled, ""},
		{"in a version that is not known", true, []string{later}, later, ""},
		{"a new trace", true, nil, "00-", "-02"},
		{"a new one for what cannot be read", true, []string{"what"}, "00-", "-02"},
		{"and for two of them", true, []string{above, above}, "00-", "-02"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, s := new(collector), upstream(t, failFirst(0))
			var change []func(*proxy.Config)
			if tt.record {
				change = append(change, c.record(noCalls))
			}
			r := start(t, single([]string{s.url}), change...)
			req := "GET /a HTTP/1.1\r\nHost: x.test\r\nTracestate: v=1\r\n"
			for _, v := range tt.sent {
				req += "Traceparent: " + v + "\r\n"
			}
			r.dial().send(req + "\r\n").answer()
			got := parents(s)[0]
			if !strings.HasPrefix(got, tt.want) || !strings.HasSuffix(got, tt.end) || tt.end != "" && len(got) != len(above) {
				t.Errorf("the service was told %q", got)
			}
			if n := strings.Count(strings.ToLower(s.seen()[0]), "traceparent"); n != 1 {
				t.Errorf("%d traceparents", n)
			}
			if state := field(s.seen()[0], "tracestate"); (state == "v=1") != (tt.end == "") {
				t.Errorf("the tracestate is %q", state)
			}
			if calls, attempts := c.ofAll(t, r); len(calls)+len(attempts) != 0 {
				t.Error("spans were sent")
			}
		})
	}
}

// At a gate there is a span of what it refuses too, and only a trusted peer decides what is recorded.
func TestAGateRecordsWhatItLetsPassAndWhatItRefuses(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		c, up := new(collector), upstream(t, failFirst(0))
		keys := []string{noShed, "rateLimit: {limit: 1/1h, burst: 1}"}
		if trusted {
			keys = append(keys, trustLoop)
		}
		r := protect(t, guardOf(up.url, keys...), c.record(noCalls))
		for range 2 {
			r.dial().send("GET /a HTTP/1.1\r\nHost: x.test\r\nTraceparent: " + above + "\r\n\r\n").answer()
		}
		calls, attempts := c.ofAll(t, r)
		if !trusted {
			if len(calls)+len(attempts) != 0 {
				t.Errorf("a stranger has %d spans recorded", len(calls)+len(attempts))
			}
			continue
		}
		if len(calls) != 2 || len(attempts) != 1 {
			t.Fatalf("%d calls, %d attempts", len(calls), len(attempts))
		}
		calls[0].want(t, "abate.gate", "s", "abate.guard", "", "http.response.status_code", "200", "abate.attempts", "1")
		calls[1].want(t, "abate.gate", "s", "http.response.status_code", "429", "abate.reason", "rate_limited",
			"abate.attempts", "0")
		attempts[0].want(t, "abate.gate", "s", "http.response.status_code", "200")
	}
}

// Who sends requests from outside must not have them recorded.
func TestAStrangerContinuesATraceAndDoesNotDecide(t *testing.T) {
	for trusted, spans := range map[string]int{"127.0.0.0/8": 2, "10.0.0.0/8": 0} {
		c, s := new(collector), upstream(t, failFirst(0))
		r := start(t, single([]string{s.url}), c.record(noCalls), func(c *proxy.Config) {
			c.Gateway, c.TrustedPeers = true, []netip.Prefix{netip.MustParsePrefix(trusted)}
		})
		r.dial().send("GET /a HTTP/1.1\r\nHost: x.test\r\nTraceparent: " + above + "\r\n\r\n").answer()
		told := parents(s)[0]
		if want := "00-" + traceID + "-" + parentID + "-00"; spans == 0 && told != want {
			t.Errorf("told %s, want %s", told, want)
		}
		calls, attempts := c.ofAll(t, r)
		if len(calls)+len(attempts) != spans {
			t.Errorf("%d spans with peers in %s trusted, want %d", len(calls)+len(attempts), trusted, spans)
		}
	}
}

func TestSpansSayWhyACallFailed(t *testing.T) {
	for _, tt := range []struct {
		name, policy string
		serve        func(net.Conn, string)
		call         []string
		attempt      []string
		failed       bool
	}{
		{"the budget is empty", "retryBudget: {ratio: 0.0001, reserve: 0}", failFirst(9),
			[]string{"http.response.status_code", "503", "abate.reason", "budget_exhausted", "error.type", "503"},
			[]string{"error.type", "503"}, true},
		{"no answer", "", func(c net.Conn, _ string) { c.Close() },
			[]string{"http.response.status_code", "502", "abate.reason", "upstream_error"},
			[]string{"http.response.status_code", ""}, true},
		{"no HTTP", "", func(c net.Conn, _ string) { io.WriteString(c, "what\r\n\r\n") },
			[]string{"http.response.status_code", "502"}, []string{"error.type", "malformed_answer"}, true},
		{"too slow", "attemptTimeout: 30ms", func(net.Conn, string) {},
			[]string{"http.response.status_code", "504"}, []string{"error.type", "timeout"}, true},
		{"a client's mistake", "", func(c net.Conn, _ string) {
			io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
		}, []string{"http.response.status_code", "404", "error.type", ""}, []string{"error.type", "404"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, s := new(collector), upstream(t, tt.serve)
			keys := []string{"maxRetries: 0"}
			if tt.policy != "" {
				keys = []string{tt.policy, "maxRetries: 0"}
			}
			if strings.HasPrefix(tt.policy, "retryBudget") {
				keys = []string{tt.policy, quickRetry}
			}
			r := start(t, single([]string{s.url}, keys...), c.record(allCalls))
			r.get("/a")
			calls, attempts := c.ofAll(t, r)
			if len(calls) != 1 || len(attempts) != 1 {
				t.Fatalf("%d calls, %d attempts", len(calls), len(attempts))
			}
			calls[0].want(t, tt.call...)
			attempts[0].want(t, tt.attempt...)
			if failed := calls[0].Status.Code == 2; failed != tt.failed || attempts[0].Status.Code != 2 {
				t.Errorf("the call has failed: %v", failed)
			}
		})
	}
}

func TestBothCopiesOfAHedgedCallHaveSpans(t *testing.T) {
	first := make(chan struct{})
	var once sync.Once
	c, s := new(collector), upstream(t, func(nc net.Conn, _ string) {
		slow := false
		if once.Do(func() { slow = true }); slow {
			<-first
			return
		}
		io.WriteString(nc, ok("fine"))
	})
	r := start(t, single([]string{s.url}, "hedge: {delay: 5ms}", "retryBudget: {ratio: 1}"), c.record(allCalls))
	r.get("/a")
	close(first)
	eventually(t, "the copy that has lost ends", func() bool {
		return strings.Contains(r.adminGet("/metrics"), "\nabate_trace_spans_queued 3\n")
	})
	calls, attempts := c.ofAll(t, r)
	if len(calls) != 1 || len(attempts) != 2 {
		t.Fatalf("%d calls, %d attempts", len(calls), len(attempts))
	}
	attempts[0].want(t, "abate.attempt", "1", "abate.hedge", "", "error.type", "canceled")
	attempts[1].want(t, "abate.attempt", "2", "abate.hedge", "true", "http.response.status_code", "200",
		"http.request.resend_count", "1")
	if attempts[0].Status.Code != 0 || attempts[0].ParentSpanID != calls[0].SpanID {
		t.Errorf("the copy that has lost: %+v", attempts[0])
	}
}

func TestSpansOfGRPCCallsHaveItsCodes(t *testing.T) {
	c, s := new(collector), serveGRPC(t, failingFirst(1, unavailable("busy")))
	r := start(t, single([]string{s.url}, quickRetry, "retryBudget: {ratio: 1}"), c.record(allCalls))
	if got := call(t, dialGRPC(t, r.addr), "/shop.Payment/Get", "hello",
		append(keyed, "traceparent", above)...); got.code != codes.OK {
		t.Fatal(got.code)
	}
	calls, attempts := c.ofAll(t, r)
	if len(calls) != 1 || len(attempts) != 2 {
		t.Fatalf("%d calls, %d attempts", len(calls), len(attempts))
	}
	if calls[0].Name != "shop.Payment/Get" || calls[0].TraceID != traceID || calls[0].ParentSpanID != parentID {
		t.Errorf("%+v", calls[0])
	}
	calls[0].want(t, "rpc.system", "grpc", "rpc.service", "shop.Payment", "rpc.method", "Get", "rpc.grpc.status_code", "0",
		"network.protocol.version", "2")
	attempts[0].want(t, "rpc.grpc.status_code", "14", "error.type", "UNAVAILABLE")
	attempts[1].want(t, "rpc.grpc.status_code", "0", "error.type", "", "http.request.resend_count", "1",
		"network.protocol.version", "2")
	if attempts[0].Status.Message != "busy" {
		t.Errorf("%+v", attempts[0].Status)
	}
}

// The access log says where a request came from, in which trace, and what the service itself has answered.
func TestTheAccessLogHasTheTraceTheClientAndTheServicesOwnStatus(t *testing.T) {
	for _, record := range []bool{false, true} {
		s, log := upstream(t, failFirst(9)), new(lockedBuffer)
		c := new(collector)
		r := start(t, single([]string{s.url}, "maxRetries: 0", "fallback: {status: 200, body: sorry}"),
			func(config *proxy.Config) {
				config.AccessLog, config.LogAll = slog.New(slog.NewTextHandler(log, nil)), true
				if record {
					c.record(allCalls)(config)
				}
			})
		r.dial().send("GET /a HTTP/1.1\r\nHost: x.test\r\nTraceparent: " + above + "\r\n\r\n").answer()
		r.shutdown()
		for _, want := range []string{" status=200 ", " client=127.0.0.1 ", " traceId=" + traceID + " ",
			" upstreamStatus=503 ", " endpoint=" + s.url + " ", " attempts=1 ", " tookMs="} {
			if !strings.Contains(log.String()+" ", want) {
				t.Errorf("lacks %q: %s", want, log)
			}
		}
	}
}
