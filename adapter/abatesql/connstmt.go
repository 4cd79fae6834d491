//lint:file-ignore SA1019 drivers that are older than contexts are still in use

package abatesql

import (
	"context"
	"database/sql/driver"
	"errors"
)

// stmt is a driver's prepared statement that looks at errors. Without it a statement that was prepared before a
// failover would keep its connection to the old primary for ever.
type stmt struct {
	conn    *conn
	base    driver.Stmt
	exec    driver.StmtExecContext
	query   driver.StmtQueryContext
	checker driver.NamedValueChecker
}

// converting is a statement that knows the types of its columns.
type converting struct {
	*stmt
	converter driver.ColumnConverter
}

func (c converting) ColumnConverter(i int) driver.ValueConverter {
	return c.converter.ColumnConverter(i)
}

var (
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
	_ driver.ColumnConverter   = converting{}
)

func wrapStmt(base driver.Stmt, c *conn) driver.Stmt {
	c.statements++
	s := &stmt{conn: c, base: base, checker: c.checker}
	s.exec, _ = base.(driver.StmtExecContext)
	s.query, _ = base.(driver.StmtQueryContext)
	if own, ok := base.(driver.NamedValueChecker); ok { // its own goes before that of its connection
		s.checker = own
	}
	if cc, ok := base.(driver.ColumnConverter); ok {
		return converting{s, cc}
	}
	return s
}

func (s *stmt) Close() error {
	s.conn.statements--
	return s.base.Close()
}

func (s *stmt) NumInput() int { return s.base.NumInput() }

// Exec is for callers of the driver's interface that are older than contexts.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) { return s.base.Exec(args) }

// Query is for the same.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) { return s.base.Query(args) }

func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if s.checker == nil {
		return driver.ErrSkip
	}
	return s.checker.CheckNamedValue(v)
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	if s.exec != nil {
		r, err = s.exec.ExecContext(ctx, args)
	} else {
		r, err = older(ctx, args, s.base.Exec)
	}
	if err != nil {
		s.conn.failed(ctx, err)
	}
	return r, err
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (r driver.Rows, err error) {
	if s.query != nil {
		r, err = s.query.QueryContext(ctx, args)
	} else {
		r, err = older(ctx, args, s.base.Query)
	}
	if err != nil {
		s.conn.failed(ctx, err)
	}
	return r, err
}

// older calls what is older than contexts and names, as database/sql would.
func older[T any](ctx context.Context, args []driver.NamedValue, call func([]driver.Value) (T, error)) (T, error) {
	var none T
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return none, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = a.Value
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	return call(values)
}

type oldExecer struct{ driver.Execer }

func (o oldExecer) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return older(ctx, args, func(values []driver.Value) (driver.Result, error) { return o.Exec(query, values) })
}

type oldQueryer struct{ driver.Queryer }

func (o oldQueryer) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return older(ctx, args, func(values []driver.Value) (driver.Rows, error) { return o.Query(query, values) })
}
