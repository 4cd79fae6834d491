package abatesql_test

import (
	"context"
	"database/sql"

	"github.com/abate-go/abate/adapter/abatesql"
)

// A consumer books a payment once, however often its message is delivered.
func ExampleStore_Once() {
	consume := func(ctx context.Context, db *sql.DB, store *abatesql.Store, messageID string, cents int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		_, err = store.Once(ctx, tx, messageID, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `UPDATE accounts SET balance = balance + $1`, cents)
			return err
		})
		if err != nil {
			return err // deliver it again
		}
		return tx.Commit() // then acknowledge
	}
	_ = consume
}
