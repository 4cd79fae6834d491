package abatepgx_test

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// everything is a tracer with all interfaces that pgx knows.
type everything struct {
	mu  sync.Mutex
	saw map[string]int
}

type traceKey struct{}

var (
	_ pgx.QueryTracer       = (*everything)(nil)
	_ pgx.BatchTracer       = (*everything)(nil)
	_ pgx.CopyFromTracer    = (*everything)(nil)
	_ pgx.PrepareTracer     = (*everything)(nil)
	_ pgx.ConnectTracer     = (*everything)(nil)
	_ pgxpool.AcquireTracer = (*everything)(nil)
	_ pgxpool.ReleaseTracer = (*everything)(nil)
)

func (e *everything) see(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.saw == nil {
		e.saw = make(map[string]int)
	}
	e.saw[what]++
}

func (e *everything) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	e.see("query")
	return ctx
}
func (e *everything) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {
	e.see("query end")
}
func (e *everything) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	e.see("batch")
	return ctx
}
func (e *everything) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	e.see("batch query")
}
func (e *everything) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {
	e.see("batch end")
}
func (e *everything) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn,
	_ pgx.TraceCopyFromStartData) context.Context {
	e.see("copy")
	return ctx
}
func (e *everything) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {
	e.see("copy end")
}
func (e *everything) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	e.see("prepare")
	return ctx
}
func (e *everything) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {
	e.see("prepare end")
}

// TraceAcquireStart marks the caller's context, which pgxpool hands on to the opening.
func (e *everything) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool,
	_ pgxpool.TraceAcquireStartData) context.Context {
	e.see("acquire")
	return context.WithValue(ctx, traceKey{}, "caller")
}
func (e *everything) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {
	e.see("acquire end")
}
func (e *everything) TraceRelease(*pgxpool.Pool, pgxpool.TraceReleaseData) { e.see("release") }

func (e *everything) TraceConnectStart(ctx context.Context, _ pgx.TraceConnectStartData) context.Context {
	if ctx.Value(traceKey{}) == "caller" {
		e.see("connect in the caller's context")
	}
	return context.WithValue(ctx, traceKey{}, "connect")
}
func (e *everything) TraceConnectEnd(ctx context.Context, _ pgx.TraceConnectEndData) {
	if ctx.Value(traceKey{}) == "connect" {
		e.see("connect end in its own")
	}
}
