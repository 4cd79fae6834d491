package collectortest_test

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metricservice "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traceservice "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/abate-go/abate/adapter/abateotel"
)

// collector is an OTLP receiver: both services of the protocol, over gRPC.
type collector struct {
	traceservice.UnimplementedTraceServiceServer
	server *grpc.Server
	addr   string

	mu      sync.Mutex
	spans   []*trace.Span
	scopes  map[string]bool
	metrics map[string]*metrics.Metric // the last export's
}

// metricReceiver is a type of its own, because both services have a method Export.
type metricReceiver struct {
	metricservice.UnimplementedMetricsServiceServer
	*collector
}

func collect(t *testing.T) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{server: grpc.NewServer(), addr: listener.Addr().String(), scopes: map[string]bool{},
		metrics: map[string]*metrics.Metric{}}
	traceservice.RegisterTraceServiceServer(c.server, c)
	metricservice.RegisterMetricsServiceServer(c.server, metricReceiver{collector: c})
	served := make(chan error, 1)
	go func() { served <- c.server.Serve(listener) }()
	t.Cleanup(func() {
		c.server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

// Export takes spans.
func (c *collector) Export(_ context.Context, req *traceservice.ExportTraceServiceRequest) (
	*traceservice.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		for _, s := range r.GetScopeSpans() {
			c.scopes[s.GetScope().GetName()] = true
			c.spans = append(c.spans, s.GetSpans()...)
		}
	}
	return &traceservice.ExportTraceServiceResponse{}, nil
}

// Export takes metrics.
func (c metricReceiver) Export(_ context.Context, req *metricservice.ExportMetricsServiceRequest) (
	*metricservice.ExportMetricsServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range req.GetResourceMetrics() {
		for _, s := range r.GetScopeMetrics() {
			c.scopes[s.GetScope().GetName()] = true
			for _, m := range s.GetMetrics() {
				c.metrics[m.GetName()] = m
			}
		}
	}
	return &metricservice.ExportMetricsServiceResponse{}, nil
}

// sdk is what a program sets up: batches of spans and periodic metrics, sent to the collector.
type sdk struct {
	*abateotel.Telemetry
	traces *sdktrace.TracerProvider
	meters *metric.MeterProvider
}

func (c *collector) sdk(t *testing.T) sdk {
	t.Helper()
	ctx := t.Context()
	spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(c.addr), otlptracegrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	points, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(c.addr), otlpmetricgrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	s := sdk{traces: sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans)),
		meters: metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(points)))}
	s.Telemetry, err = abateotel.New(abateotel.Config{
		TracerProvider: s.traces, MeterProvider: s.meters, Propagator: propagation.TraceContext{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shutdown sends what is left, and ends the SDK's goroutines.
func (s sdk) shutdown(t *testing.T) {
	t.Helper()
	if err := s.traces.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := s.meters.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// named returns the spans with a name, by the time of their beginning.
func (c *collector) named(t *testing.T, name string, n int) []*trace.Span {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []*trace.Span
	for _, s := range c.spans {
		if s.GetName() != name {
			continue
		}
		at := len(found)
		for at > 0 && found[at-1].GetStartTimeUnixNano() > s.GetStartTimeUnixNano() {
			at--
		}
		found = append(found[:at], append([]*trace.Span{s}, found[at:]...)...)
	}
	if len(found) != n {
		t.Fatalf("%d spans %q came, want %d; all: %v", len(found), name, n, c.spans)
	}
	return found
}

// value returns an attribute as text, empty if it is not there.
func value(list []*common.KeyValue, key string) string {
	for _, kv := range list {
		if kv.GetKey() != key {
			continue
		}
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			return v.StringValue
		case *common.AnyValue_IntValue:
			return string(rune('0' + v.IntValue%10)) // these tests look at small numbers only
		}
	}
	return ""
}

// traceparent is what a server should have been told of a span.
func traceparent(s *trace.Span) string {
	return "00-" + hex.EncodeToString(s.GetTraceId()) + "-" + hex.EncodeToString(s.GetSpanId()) + "-01"
}
