package abatesql

import (
	"context"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/connfail"
)

// readKey is the key of a context under which Read keeps its guard.
type readKey struct{}

// Read calls fn under a guard for statements, which is another than that of the connections: fn reads from the database
// all that it needs, and may be called again. It is abate.Do for whatever stands on a sql.DB, GORM and sqlx too, and
// knows what the errors of databases mean: what the database answered (no rows, a syntax error, a constraint, an error
// of Scan) goes back at once and counts for nothing; a connection that broke, a server that is starting or full, a
// deadlock are failures and tried again, on another connection if need be. A Classify in the guard's policy goes
// before, and so do marks on what fn returns.
//
// Only the caller knows that a repeat is harmless; nobody reads the SQL. fn must not use a transaction or a sql.Conn
// that was begun outside of it: what was done there would not be repeated with it. A transaction that fn begins and
// ends is repeated as a whole. What fn returns should be complete: a *sql.Rows can be read to its end, until ctx ends,
// but what fails meanwhile is not tried again and not seen by the guard.
//
// What database/sql repeats by itself meanwhile is drawn from the budget of g. One context is allocated.
func Read[T any](ctx context.Context, g *abate.Guard, fn func(ctx context.Context) (T, error)) (T, error) {
	return abate.Do(context.WithValue(ctx, readKey{}, g), g, func(ctx context.Context) (T, error) {
		v, err := fn(ctx)
		return v, connfail.MarkStatement(g, err)
	})
}
