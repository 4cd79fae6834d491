package abateotel

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// observer counts the events of one service. The attributes are put together once, so that an event costs what the
// meter costs.
type observer struct {
	to          *instruments
	calls       atomic.Int64 // begun, and not ended
	inAir       atomic.Int64 // attempts
	guard       attribute.KeyValue
	now         metric.MeasurementOption // the guard, and nothing else, as have:
	plain       []metric.AddOption
	delay       []metric.RecordOption
	attempts    [len(classes)][]metric.AddOption
	transitions [len(states)][]metric.AddOption
	denials     [len(reasons)]atomic.Pointer[[]metric.AddOption]                      // made when needed first, as are:
	durations   [callOutcomes][len(reasons) + 1]atomic.Pointer[[]metric.RecordOption] // the last is for no reason
}

func newObserver(to *instruments, service string) *observer {
	o := &observer{to: to, guard: guardKey.String(service)}
	o.now = o.attributes()
	o.plain, o.delay = []metric.AddOption{o.now}, []metric.RecordOption{o.now}
	for i, class := range classes {
		o.attempts[i] = []metric.AddOption{o.attributes(outcomeKey.String(class.String()))}
	}
	for _, state := range states {
		o.transitions[state&3] = []metric.AddOption{o.attributes(stateName(state))}
	}
	return o
}

// attributes are those of one series.
func (o *observer) attributes(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, o.guard)...))
}

// Observe counts one event.
func (o *observer) Observe(e abate.Event) {
	ctx := context.Background()
	switch e.Kind {
	case core.CallBegan:
		o.calls.Add(1)
	case core.AttemptBegan:
		o.inAir.Add(1)
		if e.Attempt > 1 {
			o.to.retries.Add(ctx, 1, o.plain...)
		}
	case core.AttemptEnded:
		o.inAir.Add(-1)
		o.to.attempts.Add(ctx, 1, o.attempts[e.Class&3]...)
	case core.RetryScheduled:
		o.to.delay.Record(ctx, e.Delay.Seconds(), o.delay...)
	case core.HedgeSent:
		o.inAir.Add(1)
		o.to.hedges.Add(ctx, 1, o.plain...)
	case core.HedgeDenied:
		o.to.denials.Add(ctx, 1, o.denied(reasonOf(e.Reason))...)
	case core.HiddenRetry:
		o.to.hidden.Add(ctx, 1, o.plain...)
	case core.CallEnded:
		o.calls.Add(-1)
		o.to.duration.Record(ctx, e.Latency.Seconds(), o.duration(&e)...)
	case core.BreakerChanged:
		o.to.transitions.Add(ctx, 1, o.transitions[e.To&3]...)
	case core.FallbackUsed:
		o.to.fallbacks.Add(ctx, 1, o.plain...)
	case core.PolicyChanged:
		o.to.changes.Add(ctx, 1, o.plain...)
	}
}

// denied are the attributes of a hedge that was denied. Whoever comes at the same moment makes the same ones.
func (o *observer) denied(reason int) []metric.AddOption {
	slot := &o.denials[reason]
	made := slot.Load()
	if made == nil {
		made = &[]metric.AddOption{o.attributes(reasonKey.String(reasons[reason].name))}
		slot.Store(made)
	}
	return *made
}

// duration are the attributes of a call that ended.
func (o *observer) duration(e *abate.Event) []metric.RecordOption {
	outcome, errorType := ended(e)
	reason := len(reasons)
	if e.Reason != nil {
		reason = reasonOf(e.Reason)
	}
	slot := &o.durations[outcome][reason]
	made := slot.Load()
	if made == nil {
		all := []attribute.KeyValue{outcomeKey.String(outcomeName(outcome))}
		if errorType != "" {
			all = append(all, semconv.ErrorTypeKey.String(errorType))
		}
		made = &[]metric.RecordOption{o.attributes(all...)}
		slot.Store(made)
	}
	return *made
}
