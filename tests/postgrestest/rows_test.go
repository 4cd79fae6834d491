package postgrestest_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/abate-go/abate"
)

// A query's rows are read after Do has returned, also after the time limit of the attempt. pgx cancels a query whose
// context ends, and database/sql closes its rows.
func TestRowsThatDoReturnsAreReadToTheirEnd(t *testing.T) {
	const rows, limit = 1000, 5 * time.Second
	db := running(t).open(t)
	calls := map[string]func(context.Context, *abate.Guard, func(context.Context) (*sql.Rows, error)) (*sql.Rows, error){
		"Do": abate.Do[*sql.Rows], "DoHedged": abate.DoHedged[*sql.Rows],
	}
	for name, do := range calls {
		t.Run(name, func(t *testing.T) {
			p := abate.DefaultPolicy()
			p.AttemptTimeout = limit
			g, err := abate.New("orders-db", p)
			if err != nil {
				t.Fatal(err)
			}
			var attempt context.Context
			found, err := do(t.Context(), g, func(ctx context.Context) (*sql.Rows, error) {
				attempt = ctx
				// more than one read
				return db.QueryContext(ctx, `SELECT n, repeat('x', 1000) FROM generate_series(1, $1::int) AS n`, rows)
			})
			if err != nil {
				t.Fatal(err)
			}
			defer found.Close()
			if _, limited := attempt.Deadline(); limited {
				t.Error("the attempt is over, and its time limit is not")
			}
			n, row, wide := 0, 0, ""
			for found.Next() {
				if err := found.Scan(&row, &wide); err != nil {
					t.Fatal(err)
				}
				n++
			}
			if err := found.Err(); err != nil || n != rows {
				t.Errorf("%d of %d rows: %v", n, rows, err)
			}
		})
	}
}

// The caller's context is the way to end what Do has returned.
func TestRowsThatDoReturnsEndWithTheirCallersContext(t *testing.T) {
	db := running(t).open(t)
	p := abate.DefaultPolicy()
	p.AttemptTimeout = time.Hour
	g, err := abate.New("orders-db", p)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found, err := abate.Do(ctx, g, func(ctx context.Context) (*sql.Rows, error) {
		return db.QueryContext(ctx, `SELECT n, repeat('x', 1000) FROM generate_series(1, 1000000) AS n`)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	if !found.Next() {
		t.Fatal(found.Err())
	}
	cancel()
	for found.Next() {
	}
	if found.Err() == nil {
		t.Error("a million rows, and their caller had left")
	}
	eventually(t, "the connection back in its pool", func() bool { return db.Stats().InUse == 0 })
}
