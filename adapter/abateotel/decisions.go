package abateotel

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
)

// Decisions returns a context under which guarded calls write what their policies decide into the span that ctx has, as
// events: see the package comment. It is for calls whose span somebody else makes, such as an instrumentation of gRPC
// or SQL. If that span records nothing it is ctx itself.
func Decisions(ctx context.Context) context.Context {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return ctx
	}
	return abate.WithObserver(ctx, &decisions{span: span})
}

// decisions writes into a span what guards decide about the calls under it.
type decisions struct {
	span trace.Span
	// own reports whether the span was made for one guarded call, and gets its attributes and its status from that.
	own bool
	// guard is whose call it is, if it is an own one. It is known when the call begins, before there are copies that
	// run at the same time.
	guard string
	sent  atomic.Int32 // attempts
	over  bool         // the call has reported how it ended
}

// Observe writes one event.
func (d *decisions) Observe(e abate.Event) {
	if e.Kind == core.CallBegan && d.own && d.guard == "" {
		d.guard = e.Guard
		d.span.SetName(callName + e.Guard)
		d.span.SetAttributes(guardKey.String(e.Guard))
	}
	mine := d.guard == e.Guard // a call inside the call, under another guard, only adds events
	switch e.Kind {
	case core.AttemptBegan:
		d.count(mine, e.Attempt)
	case core.CallQueued:
		d.write(&e, queuedEvent)
	case core.RetryScheduled:
		d.retry(&e)
	case core.HedgeSent:
		d.count(mine, e.Attempt)
		d.write(&e, hedgeEvent, attemptKey.Int(e.Attempt))
	case core.HedgeDenied:
		d.write(&e, deniedEvent, reasonKey.String(reasons[reasonOf(e.Reason)].name))
	case core.CallEnded:
		if e.Reason != nil {
			d.write(&e, stopEvent, reasonKey.String(reasons[reasonOf(e.Reason)].name), attemptsKey.Int(e.Attempt))
		}
		if mine {
			d.finish(&e)
		}
	}
}

func (d *decisions) count(mine bool, attempt int) {
	if mine {
		d.sent.Store(int32(attempt))
	}
}

func (d *decisions) retry(e *abate.Event) {
	why := semconv.ErrorTypeKey.String(e.Class.String())
	if e.Err != nil {
		why = semconv.ErrorTypeKey.String(errorType(e.Err))
	}
	d.write(e, retryEvent, attemptKey.Int(e.Attempt), delayKey.Float64(e.Delay.Seconds()), why)
}

func (d *decisions) write(e *abate.Event, name string, what ...attribute.KeyValue) {
	d.span.AddEvent(name, trace.WithAttributes(append(what, guardKey.String(e.Guard))...))
}

// finish says on the span how its call ended. A call whose retry succeeded is no error.
func (d *decisions) finish(e *abate.Event) {
	d.over = true
	outcome, errorType := ended(e)
	d.span.SetAttributes(attemptsKey.Int(e.Attempt), outcomeKey.String(outcomeName(outcome)))
	if e.Reason != nil {
		d.span.SetAttributes(reasonKey.String(reasons[reasonOf(e.Reason)].name))
	}
	if errorType != "" {
		d.span.SetAttributes(semconv.ErrorTypeKey.String(errorType))
		d.span.SetStatus(codes.Error, text(e.Err))
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
