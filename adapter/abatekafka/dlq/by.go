package dlq

import "context"

// byKey is the context's key of who acts.
type byKey struct{}

// As has the audit name by, and not Config.By, as whoever does what is done under the context: for programs that act
// for several people.
func As(ctx context.Context, by string) context.Context { return context.WithValue(ctx, byKey{}, by) }

// by is who acts under a context.
func (d *Desk) by(ctx context.Context) string {
	if by, ok := ctx.Value(byKey{}).(string); ok && by != "" {
		return by
	}
	return d.config.By
}
