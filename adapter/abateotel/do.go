package abateotel

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/abate-go/abate"
)

const (
	callName    = "call "
	attemptName = "attempt "
)

// Do is abate.Do with a span for the call, in which the policy's decisions are events, and one for each attempt, which
// fn finds in its context. An error that is marked with abate.Ignore, and a cancelled attempt, leave their span without
// an error. If nobody records the trace, it costs one span that is not recorded, and no more.
func Do[T any](ctx context.Context, t *Telemetry, g *abate.Guard, fn func(context.Context) (T, error)) (T, error) {
	return under(ctx, t, g, abate.Do[T], fn)
}

// DoHedged is abate.DoHedged with the spans of Do. Copies that run at the same time have spans side by side.
func DoHedged[T any](ctx context.Context, t *Telemetry, g *abate.Guard, fn func(context.Context) (T, error)) (
	T, error) {
	return under(ctx, t, g, abate.DoHedged[T], fn)
}

func under[T any](ctx context.Context, t *Telemetry, g *abate.Guard,
	do func(context.Context, *abate.Guard, func(context.Context) (T, error)) (T, error),
	fn func(context.Context) (T, error)) (T, error) {
	ctx, span := t.tracer.Start(ctx, callName+g.Name())
	defer span.End()
	if !span.IsRecording() {
		return do(ctx, g, fn)
	}
	f := function[T]{telemetry: t, guard: g, fn: fn}
	returned := false
	defer unfinished(span, &returned)
	v, err := do(abate.WithObserver(ctx, &decisions{span: span, own: true}), g, f.attempt)
	returned = true
	return v, err
}

// function is one whose attempts have spans.
type function[T any] struct {
	telemetry *Telemetry
	guard     *abate.Guard
	fn        func(context.Context) (T, error)
	sent      atomic.Int64
}

func (f *function[T]) attempt(ctx context.Context) (T, error) {
	name := f.guard.Name()
	ctx, span := f.telemetry.tracer.Start(ctx, attemptName+name,
		trace.WithAttributes(guardKey.String(name), attemptKey.Int64(f.sent.Add(1))))
	defer span.End()
	returned := false
	defer unfinished(span, &returned)
	v, err := f.fn(ctx)
	returned = true
	if err != nil {
		if o := f.guard.Judge(err); o.Class == abate.Failure || o.Class == abate.Overload {
			failed(span, o.Err)
		}
	}
	return v, err
}

// unfinished marks the span of a function that has not returned.
func unfinished(span trace.Span, returned *bool) {
	if !*returned {
		span.SetStatus(codes.Error, "the function panicked or ended its goroutine")
	}
}

// failed says on the span of an attempt that it failed. A cancelled one is nobody's failure.
func failed(span trace.Span, err error) {
	kind := errorType(err)
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	if kind != canceled {
		span.SetStatus(codes.Error, err.Error())
	}
}
