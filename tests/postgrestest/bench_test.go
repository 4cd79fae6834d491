package postgrestest_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/policy/idempotency"
)

// BenchmarkStore is to be compared with its RoundTrip, the least that any question to the server takes.
func BenchmarkStore(b *testing.B) {
	db := running(b).open(b)
	s := newStore(b, db, abatesql.Config{})
	ctx, runs := context.Background(), 0
	answer := idempotency.Response{Status: 201, Body: make([]byte, 1000)}
	for name, f := range map[string]func(key string) error{
		"RoundTrip": func(string) error {
			var n int
			return db.QueryRowContext(ctx, `SELECT 1`).Scan(&n)
		},
		"BeginAndComplete": func(key string) error {
			begun, err := s.Begin(ctx, key, idempotency.Fingerprint{}, time.Hour)
			if err != nil {
				return err
			}
			return s.Complete(ctx, key, begun.Token, answer, time.Hour)
		},
		"Running": func(string) error {
			_, err := s.Begin(ctx, "one", idempotency.Fingerprint{}, time.Hour)
			return err
		},
		"EmptyTransaction": func(string) error { return inTx(ctx, db, func(*sql.Tx) error { return nil }) },
		"Once": func(key string) error {
			return inTx(ctx, db, func(tx *sql.Tx) error {
				_, err := s.Once(ctx, tx, key, nothing)
				return err
			})
		},
	} {
		b.Run(name, func(b *testing.B) {
			runs++
			for i := 0; b.Loop(); i++ {
				if err := f(fmt.Sprint(name, runs, i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func inTx(ctx context.Context, db *sql.DB, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err = f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
