package abatepgx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/connfail"
)

// Guard has every connection of a pool that is made from config opened under g, within the attemptTimeout of its
// policy. Call it once, after everything else is set and before pgxpool.NewWithConfig.
//
// It puts itself around config.BeforeConnect, which goes on working: inside the guard, so that while the circuit is
// open nobody fetches a password. The tracer of the connections goes on working too, whichever interfaces it
// implements; what a connection's Config shows as its Tracer is ours, around it. A nil guard lets every opening pass.
//
// An opening costs a few allocations more, a query on an open connection two calls of a tracer that does nothing.
func Guard(config *pgxpool.Config, g *abate.Guard) {
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		admission, err := core.AdmitOne(ctx, g)
		if err != nil {
			return err
		}
		o := &opening{guard: g, admission: admission}
		if before != nil {
			if err := before(admission.Context(), c); err != nil {
				return o.end(err)
			}
		}
		o.trace(c)
		return nil
	}
}

// opening is one connection on its way. pgx hands nothing from BeforeConnect to the end of the opening but the
// connection's own config: so the way leads through its tracer.
type opening struct {
	*multitracer.Tracer // the user's, in all its interfaces
	guard               *abate.Guard
	admission           *core.Admission // nil once the connection is open, or is not to be
}

var (
	_ pgx.QueryTracer    = (*opening)(nil)
	_ pgx.BatchTracer    = (*opening)(nil)
	_ pgx.CopyFromTracer = (*opening)(nil)
	_ pgx.PrepareTracer  = (*opening)(nil)
	_ pgx.ConnectTracer  = (*opening)(nil)
)

// trace puts o around the tracer of the connection.
func (o *opening) trace(c *pgx.ConnConfig) {
	if c.Tracer == nil {
		o.Tracer = multitracer.New()
	} else {
		o.Tracer = multitracer.New(c.Tracer)
	}
	c.Tracer = o
}

// end reports how the opening ended, and returns err without its mark.
func (o *opening) end(err error) error {
	admission := o.admission
	o.admission = nil
	return admission.Done(connfail.Mark(o.guard, err))
}

// TraceConnectStart gives the opening the context of its admission, which has its time limit and stems from the same
// context of the pool. Who opens another connection with the config of one that is open is no concern of the guard.
func (o *opening) TraceConnectStart(ctx context.Context, data pgx.TraceConnectStartData) context.Context {
	if o.admission != nil {
		ctx = o.admission.Context()
	}
	return o.Tracer.TraceConnectStart(ctx, data)
}

// TraceConnectEnd ends the opening.
func (o *opening) TraceConnectEnd(ctx context.Context, data pgx.TraceConnectEndData) {
	o.Tracer.TraceConnectEnd(ctx, data)
	if o.admission != nil {
		_ = o.end(data.Err) // pgx returns it
	}
}
