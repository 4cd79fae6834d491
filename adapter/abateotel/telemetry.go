package abateotel

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/abate-go/abate"
)

// scope is who made the spans and metrics.
const scope = "github.com/abate-go/abate/adapter/abateotel"

// Config says where spans and metrics go. The zero Config takes what the program has set globally, also if it sets it
// later.
type Config struct {
	// TracerProvider makes the spans. Nil means the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics. Nil means the global one.
	MeterProvider metric.MeterProvider
	// Propagator writes the trace into the headers of each attempt. Nil means the global one, which writes nothing
	// until the program has set one.
	Propagator propagation.TextMapPropagator
}

// Telemetry makes spans and metrics of what guards do. It is safe for concurrent use. Make one for a program, with New.
type Telemetry struct {
	tracer      trace.Tracer
	propagator  propagation.TextMapPropagator
	instruments instruments
	gauges      gauges
	methods     map[string]struct{} // that spans may be named after

	mu        sync.RWMutex
	observers map[string]*observer
	guards    map[string]gauged
}

// New makes the instruments. It fails when the MeterProvider refuses one, which the SDK does for a name or unit that it
// does not like; the error then names all of them. The methods that spans may be named after can be given in the
// environment, in OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS, as for any instrumentation of HTTP.
func New(c Config) (*Telemetry, error) {
	c.TracerProvider = cmp.Or(c.TracerProvider, otel.GetTracerProvider())
	c.MeterProvider = cmp.Or(c.MeterProvider, otel.GetMeterProvider())
	c.Propagator = cmp.Or(c.Propagator, otel.GetTextMapPropagator())
	t := &Telemetry{
		tracer:     c.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: c.Propagator,
		methods:    knownMethods(),
		observers:  make(map[string]*observer),
		guards:     make(map[string]gauged),
	}
	meter := c.MeterProvider.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL))
	err := errors.Join(t.instruments.make(meter), t.gauges.make(meter))
	if err == nil {
		_, err = meter.RegisterCallback(t.collect, t.gauges.all...)
	}
	if err != nil {
		return nil, fmt.Errorf("abateotel: the meter provider refuses instruments: %w", err)
	}
	return t, nil
}

// Adjust makes the policy of a service report to the metrics what its guard does: telemetry.Adjust is an argument for
// policyfile.Load, or is called on a policy before abate.New. An observer that is already set is called too, after the
// metrics. Policies of the same service get observers that are equal, so that a reload which changes nothing is seen as
// one; adjusting a policy twice counts once. Each service has series of its own, so names must not come from strangers
// without a bound. Spans do not need it.
func (t *Telemetry) Adjust(service string, p *abate.Policy) {
	o := t.observer(service)
	p.Observer = abate.Observers(o, p.Observer)
}

// observer returns the one of a service, made when it is needed first.
func (t *Telemetry) observer(service string) *observer {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.observers[service]
	if o == nil {
		o = newObserver(&t.instruments, service)
		t.observers[service] = o
	}
	return o
}
