package abateotel_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateotel"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
)

// providers are the kinds of SDK whose cost is measured. None of them exports.
var providers = []struct {
	name   string
	config func() abateotel.Config
}{
	{"no-op", func() abateotel.Config {
		return abateotel.Config{TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
			Propagator: propagation.TraceContext{}}
	}},
	{"not sampled", func() abateotel.Config { return withSDK(sdktrace.NeverSample()) }},
	{"recorded", func() abateotel.Config { return withSDK(sdktrace.AlwaysSample()) }},
}

func withSDK(s sdktrace.Sampler) abateotel.Config {
	return abateotel.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(s)),
		MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())),
		Propagator:    propagation.TraceContext{}}
}

func made(t testing.TB, c abateotel.Config) *abateotel.Telemetry {
	t.Helper()
	m, err := abateotel.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// events are one of each kind.
var events = []abate.Event{
	{Kind: core.CallBegan},
	{Kind: core.CallQueued},
	{Kind: core.AttemptBegan, Attempt: 2},
	{Kind: core.AttemptEnded, Attempt: 1, Class: abate.Failure, Latency: time.Millisecond, Err: errDown},
	{Kind: core.RetryScheduled, Attempt: 1, Retries: 1, Delay: time.Second},
	{Kind: core.HedgeSent, Attempt: 3},
	{Kind: core.HedgeDenied, Reason: abate.ErrBudgetExhausted},
	{Kind: core.HiddenRetry},
	{Kind: core.CallEnded, Attempt: 3, Retries: 1, Reason: abate.ErrOverloaded, Class: abate.Overload},
	{Kind: core.BreakerChanged, To: breaker.Open},
	{Kind: core.FallbackUsed},
	{Kind: core.PolicyChanged},
}

func TestCountingAllocatesNothing(t *testing.T) {
	if raceDetector { // its pools lose what is put back, at random
		return
	}
	for _, provider := range providers {
		var p abate.Policy
		made(t, provider.config()).Adjust("s", &p)
		for _, e := range events {
			if n := testing.AllocsPerRun(100, func() { p.Observer.Observe(e) }); n != 0 {
				t.Errorf("%s: %v allocates %v times", provider.name, e.Kind, n)
			}
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, provider := range providers {
		if provider.name == "not sampled" {
			continue
		}
		var p abate.Policy
		made(b, provider.config()).Adjust("s", &p)
		for _, e := range events {
			b.Run(provider.name+"/"+e.Kind.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					p.Observer.Observe(e)
				}
			})
		}
	}
}

// BenchmarkCall is a guarded call that succeeds at once, without the metrics and with them.
func BenchmarkCall(b *testing.B) {
	for _, provider := range append(providers[:1:1], providers[2]) {
		p := abate.DefaultPolicy()
		made(b, provider.config()).Adjust("s", &p)
		benchmarkCall(b, provider.name, p)
	}
	benchmarkCall(b, "without", abate.DefaultPolicy())
}

func benchmarkCall(b *testing.B, name string, p abate.Policy) {
	g, ctx := guard(b, "s", p), context.Background()
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = abate.Do(ctx, g, func(context.Context) (int, error) { return 0, nil })
		}
	})
}

// BenchmarkDo is one call of one attempt with its two spans.
func BenchmarkDo(b *testing.B) {
	for _, provider := range providers {
		m, g, ctx := made(b, provider.config()), guard(b, "s", abate.DefaultPolicy()), context.Background()
		b.Run(provider.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = abateotel.Do(ctx, m, g, func(context.Context) (int, error) { return 0, nil })
			}
		})
	}
}

// BenchmarkTransport is one request without a network: the attempt alone, and the whole stack without what stands for
// abatehttp.
func BenchmarkTransport(b *testing.B) {
	base := stub(func(req *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: req}, nil
	})
	req := request(b, "http://payments.internal:8080/charge?order=7")
	for _, provider := range providers {
		m := made(b, provider.config())
		for name, transport := range map[string]http.RoundTripper{"attempt": m.Attempts(base), "call": m.Calls(base)} {
			b.Run(provider.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, _ = transport.RoundTrip(req)
				}
			})
		}
	}
}
