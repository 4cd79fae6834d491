package bench_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
)

// idleDriver does nothing, as quickly as it can: what is left is what database/sql costs, and what is put around the
// driver.
type idleDriver struct{}

func (idleDriver) Connect(context.Context) (driver.Conn, error) { return idleDriver{}, nil }
func (idleDriver) Driver() driver.Driver                        { return nil }
func (idleDriver) Prepare(string) (driver.Stmt, error)          { return idleStmt{}, nil }
func (idleDriver) Close() error                                 { return nil }
func (idleDriver) Begin() (driver.Tx, error)                    { return idleDriver{}, nil }
func (idleDriver) Commit() error                                { return nil }
func (idleDriver) Rollback() error                              { return nil }
func (idleDriver) ResetSession(context.Context) error           { return nil }
func (idleDriver) IsValid() bool                                { return true }
func (idleDriver) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return idleDriver{}, nil
}
func (idleDriver) CheckNamedValue(*driver.NamedValue) error { return nil }
func (idleDriver) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}
func (idleDriver) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return idleRows{}, nil
}

type idleStmt struct{}

func (idleStmt) Close() error                               { return nil }
func (idleStmt) NumInput() int                              { return -1 }
func (idleStmt) Exec([]driver.Value) (driver.Result, error) { return driver.RowsAffected(1), nil }
func (idleStmt) Query([]driver.Value) (driver.Rows, error)  { return idleRows{}, nil }
func (idleStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

type idleRows struct{}

func (idleRows) Columns() []string         { return nil }
func (idleRows) Close() error              { return nil }
func (idleRows) Next([]driver.Value) error { return io.EOF }

// BenchmarkSQL is a statement on a pool whose connection is open, with and without a guarded connector.
func BenchmarkSQL(b *testing.B) {
	ctx := context.Background()
	for _, d := range sqlDrivers(b) {
		db := sql.OpenDB(d.connector)
		b.Cleanup(func() { db.Close() })
		prepared, err := db.PrepareContext(ctx, "UPDATE")
		if err != nil {
			b.Fatal(err)
		}
		calls := map[string]func() error{
			"exec":     func() error { _, err := db.ExecContext(ctx, "UPDATE", 1); return err },
			"prepared": func() error { _, err := prepared.ExecContext(ctx, 1); return err },
			"query": func() error {
				rows, err := db.QueryContext(ctx, "SELECT", 1)
				if err != nil {
					return err
				}
				return rows.Close()
			},
			"tx": func() error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				return tx.Commit()
			},
		}
		for call, op := range calls {
			seq(b, "call="+call+"/impl="+d.impl, shared(op))
		}
	}
}

// BenchmarkSQLDriver is only what database/sql asks of the driver for one statement: the difference between its two
// rows is what the guarded connector adds, with less noise than in BenchmarkSQL.
func BenchmarkSQLDriver(b *testing.B) {
	ctx, args := context.Background(), []driver.NamedValue{{Ordinal: 1, Value: int64(1)}}
	for _, d := range sqlDrivers(b) {
		conn, err := d.connector.Connect(ctx)
		if err != nil {
			b.Fatal(err)
		}
		reset, checker, execer, validator := conn.(driver.SessionResetter), conn.(driver.NamedValueChecker),
			conn.(driver.ExecerContext), conn.(driver.Validator)
		seq(b, "impl="+d.impl, shared(func() error {
			if err := reset.ResetSession(ctx); err != nil {
				return err
			}
			if err := checker.CheckNamedValue(&args[0]); err != nil {
				return err
			}
			_, err := execer.ExecContext(ctx, "UPDATE", args)
			if !validator.IsValid() {
				return driver.ErrBadConn
			}
			return err
		}))
	}
}

type sqlDriver struct {
	impl      string
	connector driver.Connector
}

func sqlDrivers(b *testing.B) []sqlDriver {
	g, err := abate.New("db", abate.ConnectionPolicy())
	if err != nil {
		b.Fatal(err)
	}
	return []sqlDriver{{"plain", idleDriver{}}, {"abate", &abatesql.Connector{Base: idleDriver{}, Guard: g}}}
}
