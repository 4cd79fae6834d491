package abateotel_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateotel"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/retry"
)

var errDown = errors.New("down")

// fixture is telemetry with the SDK below it, all in memory.
type fixture struct {
	*abateotel.Telemetry
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
	tracer trace.Tracer
}

// telemetry records what the sampler wants; nil records everything.
func telemetry(t testing.TB, sampler sdktrace.Sampler) fixture {
	t.Helper()
	if sampler == nil {
		sampler = sdktrace.AlwaysSample()
	}
	f := fixture{spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(f.spans), sdktrace.WithSampler(sampler))
	f.tracer = traces.Tracer("test")
	made, err := abateotel.New(abateotel.Config{
		TracerProvider: traces, MeterProvider: metric.NewMeterProvider(metric.WithReader(f.reader)),
		Propagator: propagation.TraceContext{},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Telemetry = made
	return f
}

func guard(t testing.TB, name string, p abate.Policy) *abate.Guard {
	t.Helper()
	g, err := abate.New(name, alone(p))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// eager is a policy of n retries at once, without budget or breaker.
func eager(n int) abate.Policy {
	return abate.Policy{Retry: abate.Retry{MaxRetries: n, Backoff: retry.NoBackoff}}
}

// span is one that has ended, easy to compare.
type span struct {
	sdktrace.ReadOnlySpan
	attributes map[string]string
}

// named returns the spans with a name that have ended, in the order of their beginning.
func (f fixture) named(t testing.TB, name string, n int) []span {
	t.Helper()
	var found []span
	for _, s := range f.spans.Started() {
		if s.Name() == name && !s.EndTime().IsZero() {
			found = append(found, span{s, values(s.Attributes())})
		}
	}
	if len(found) != n {
		t.Fatalf("%d spans %q have ended, want %d; all: %v", len(found), name, n, f.names())
	}
	return found
}

func (f fixture) names() (names []string) {
	for _, s := range f.spans.Started() {
		names = append(names, s.Name())
	}
	return names
}

func values(list []attribute.KeyValue) map[string]string {
	m := make(map[string]string)
	for _, kv := range list {
		m[string(kv.Key)] = kv.Value.Emit()
	}
	return m
}

// want checks attributes; an empty one must not be there.
func (s span) want(t testing.TB, attributes map[string]string) {
	t.Helper()
	for name, want := range attributes {
		if got := s.attributes[name]; got != want {
			t.Errorf("%s: %s is %q, want %q; all: %v", s.Name(), name, got, want, s.attributes)
		}
	}
}

// events lists a span's events, such as "abate.hedge.sent abate.attempt=2", without the guard.
func (s span) events() (all []string) {
	for _, e := range s.Events() {
		line := e.Name
		for _, kv := range e.Attributes {
			if kv.Key != "abate.guard" {
				line += " " + string(kv.Key) + "=" + kv.Value.Emit()
			}
		}
		all = append(all, line)
	}
	return all
}

// metrics is what was collected: the value of each series, as in `abate.client.retries{abate.guard=s}`. Of a histogram
// it is the count, and under the same name with "#" the sum.
type metrics map[string]float64

func (f fixture) collect(t testing.TB) metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := f.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	m := metrics{}
	for _, s := range all.ScopeMetrics {
		for _, one := range s.Metrics {
			m.add(t, one)
		}
	}
	return m
}

func (m metrics) add(t testing.TB, one metricdata.Metrics) {
	t.Helper()
	series := func(set attribute.Set) string {
		var parts []string
		for _, kv := range set.ToSlice() {
			parts = append(parts, string(kv.Key)+"="+kv.Value.Emit())
		}
		return one.Name + "{" + strings.Join(parts, ",") + "}"
	}
	switch data := one.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			m[series(p.Attributes)] = float64(p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			m[series(p.Attributes)] = p.Value
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			m[series(p.Attributes)] = float64(p.Count)
			m[series(p.Attributes)+"#"] = p.Sum
		}
	default:
		t.Errorf("%s has data of type %T", one.Name, data)
	}
}

func (m metrics) want(t testing.TB, series map[string]float64) {
	t.Helper()
	for name, want := range series {
		if got, ok := m[name]; !ok || got != want {
			t.Errorf("%s is %v (there: %v), want %v; all: %v", name, got, ok, want, m)
		}
	}
}

// stub is a base transport that does as it is told.
type stub func(*http.Request) (*http.Response, error)

func (s stub) RoundTrip(req *http.Request) (*http.Response, error) { return s(req) }

// answer is a response to req with a body that can be read.
func answer(req *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), Request: req}
}

// guarded stands for an abatehttp.Transport: it drives the guard, and numbers the attempts in a header unless it omits
// that.
type guarded struct {
	base  http.RoundTripper
	guard *abate.Guard
	omit  bool
}

func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, release, err := core.Run[*http.Response](req.Context(), g.guard, &operation{g, req})
	release.Done()
	if resp != nil {
		return resp, nil
	}
	return nil, err
}

type operation struct {
	*guarded
	request *http.Request
}

func (o *operation) Attempt(ctx context.Context, s core.Sending) (*http.Response, error) {
	again := o.request.Clone(ctx)
	if !o.omit {
		again.Header.Set("X-Envoy-Attempt-Count", strconv.Itoa(s.Number))
	}
	return o.base.RoundTrip(again)
}

func (o *operation) Classify(resp *http.Response, err error) abate.Outcome {
	switch {
	case err != nil:
		return abate.Outcome{Class: abate.Failure, Err: err}
	case resp.StatusCode == 503:
		return abate.Outcome{Class: abate.Overload, Err: errDown}
	}
	return abate.Outcome{}
}

func (o *operation) Discard(resp *http.Response) {
	if resp != nil {
		resp.Body.Close()
	}
}

func (o *operation) MayHedge() bool { return true }

// stack is a client's transport with everything in it.
func (f fixture) stack(g *abate.Guard, base http.RoundTripper) http.RoundTripper {
	return f.Calls(&guarded{base: f.Attempts(base), guard: g})
}

func request(t testing.TB, target string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// read reads an answer to its end and closes it.
func read(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// alone declines in words what a policy that retries or hedges gets if it says nothing: budget and circuit breaker.
func alone(p abate.Policy) abate.Policy {
	if p.Budget == nil && p.RetryBudget == (budget.Config{}) {
		p.RetryBudget.Disabled = true
	}
	if p.CircuitBreaker == (breaker.Config{}) {
		p.CircuitBreaker.Disabled = true
	}
	return p
}
