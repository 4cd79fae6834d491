package core

import (
	"context"

	"github.com/abate-go/abate/policy/shed"
)

type priorityKey struct{}

// WithPriority returns a context for work that matters as much as p says. Adapters tell the services that are called
// for that work, in Abate-Priority.
func WithPriority(ctx context.Context, p shed.Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, min(max(p, shed.Sheddable), shed.CriticalPlus))
}

// PriorityOf returns how much the work under ctx matters: what a server's adapter read in a request from a trusted peer
// or its gate's default is, or what WithPriority was told. False if nobody has said anything; then it is the usual one.
func PriorityOf(ctx context.Context) (shed.Priority, bool) {
	p, ok := ctx.Value(priorityKey{}).(shed.Priority)
	return p, ok
}
