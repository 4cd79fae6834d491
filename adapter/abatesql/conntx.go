//lint:file-ignore SA1019 drivers that are older than contexts are still in use

package abatesql

import (
	"context"
	"database/sql/driver"
	"errors"
)

// txn is a conn as its open transaction: another view of the same memory, so that a transaction costs no allocation.
type txn conn

// Begin is for callers of the driver's interface that are older than contexts.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.begin(ctx, opts)
	if err != nil {
		c.failed(ctx, err)
		return nil, err
	}
	c.tx, c.readOnly = tx, opts.ReadOnly
	return (*txn)(c), nil
}

// begin does for a driver without BeginTx what database/sql would do.
func (c *conn) begin(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	switch {
	case c.beginner != nil:
		return c.beginner.BeginTx(ctx, opts)
	case opts.Isolation != 0:
		return nil, errors.New("sql: driver does not support non-default isolation level")
	case opts.ReadOnly:
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	tx, err := c.base.Begin()
	if err == nil && ctx.Err() != nil {
		_ = tx.Rollback()
		return nil, ctx.Err()
	}
	return tx, err
}

func (t *txn) Commit() error   { return t.end(driver.Tx.Commit) }
func (t *txn) Rollback() error { return t.end(driver.Tx.Rollback) }

// end ends the transaction. database/sql repeats no Commit.
func (t *txn) end(how func(driver.Tx) error) error {
	if t.tx == nil {
		return errors.New("abatesql: the transaction is over")
	}
	err := how(t.tx)
	if err != nil {
		(*conn)(t).look(err)
	}
	t.tx, t.readOnly = nil, false
	return err
}
