package abatesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
)

// Rows that Do returns are read by its caller, for as long as that takes: attemptTimeout is for the query.
func TestRowsThatAGuardedFunctionReturnsCanBeReadToTheirEnd(t *testing.T) {
	thousand := make([][]driver.Value, 1000)
	for i := range thousand {
		thousand[i] = []driver.Value{int64(i), nil, nil, nil, nil}
	}
	g, err := abate.New("orders-db", abate.Policy{AttemptTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for name, query := range map[string]func(context.Context, *sql.DB) (*sql.Rows, error){
		"Do": func(ctx context.Context, db *sql.DB) (*sql.Rows, error) {
			return abate.Do(ctx, g, func(ctx context.Context) (*sql.Rows, error) { return db.QueryContext(ctx, "select") })
		},
		"Read": func(ctx context.Context, db *sql.DB) (*sql.Rows, error) {
			return abatesql.Read(ctx, g, func(ctx context.Context) (*sql.Rows, error) { return db.QueryContext(ctx, "select") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := sql.OpenDB(&fake{answers: []reply{{rows: thousand}}})
				defer db.Close()
				ctx, cancel := context.WithCancel(t.Context())
				read := func(most int) (n int, err error) {
					rows, err := query(ctx, db)
					if err != nil {
						t.Fatal(err)
					}
					defer rows.Close()
					for n < most && rows.Next() {
						if n++; n%100 == 1 {
							time.Sleep(time.Second) // whoever reads has work to do; the time is virtual
							runtime.GC()
						}
					}
					return n, rows.Err()
				}
				if n, err := read(2000); n != 1000 || err != nil {
					t.Errorf("%d of 1000 rows: %v", n, err)
				}
				rows, err := query(ctx, db)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				rows.Next()
				cancel() // the caller's own end holds
				synctest.Wait()
				if rows.Next() || rows.Err() != context.Canceled {
					t.Error("read on after its caller has left:", rows.Err())
				}
			})
		})
	}
}
