package abate

import (
	"context"
)

// Connect waits for a dependency when a program starts.
func Connect[T any](ctx context.Context, name string, p Policy, fn func(context.Context) (T, error)) (T, error) {
	g, err := New(name, p)
	if err != nil {
		var none T
		return none, err
	}
	return Do(ctx, g, fn)
}
