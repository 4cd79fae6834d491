package abatesql_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// witness is a driver that notes everything it is asked, and ends each kind of call as it was told.
type witness struct {
	mu    sync.Mutex
	asked []string
	ends  map[string][]error                     // by method, in turn
	shape func(*witnessConn) driver.Conn         // which of the optional interfaces a connection shows
	stmts func(*witnessStmt) driver.Stmt         // and a statement
	dials func(ctx context.Context, n int) error // how the nth connection ends, from 1
	conns int
}

func (w *witness) Connect(ctx context.Context) (driver.Conn, error) {
	w.mu.Lock()
	w.conns++
	n := w.conns
	w.mu.Unlock()
	w.note("connect")
	if w.dials != nil {
		if err := w.dials(ctx, n); err != nil {
			return nil, err
		}
	}
	return w.shape(&witnessConn{w}), nil
}
func (w *witness) Driver() driver.Driver { return nil }
func (w *witness) Close() error          { w.note("close connector"); return nil }

// opened is how many connections were asked for.
func (w *witness) opened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns
}

func (w *witness) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, fmt.Sprintf(format, args...))
}

// end notes a call and takes its end.
func (w *witness) end(method, format string, args ...any) error {
	w.note(method+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	ends := w.ends[method]
	if len(ends) == 0 {
		return nil
	}
	w.ends[method] = ends[1:]
	return ends[0]
}

// told is what was asked, one a line.
func (w *witness) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.asked, "\n")
}

// witnessConn has every method that database/sql knows. What is seen of it is in a shape.
type witnessConn struct{ w *witness }

type noRows struct{}

func (noRows) Columns() []string         { return []string{"n"} }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

func (c *witnessConn) Prepare(query string) (driver.Stmt, error) {
	err := c.w.end("Prepare", " %s", query)
	return c.w.stmts(&witnessStmt{c.w}), err
}
func (c *witnessConn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	err := c.w.end("PrepareContext", " %s", query)
	return c.w.stmts(&witnessStmt{c.w}), err
}
func (c *witnessConn) Close() error { return c.w.end("Close", "") }
func (c *witnessConn) Begin() (driver.Tx, error) {
	return &witnessTx{c.w}, c.w.end("Begin", "")
}
func (c *witnessConn) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return &witnessTx{c.w}, c.w.end("BeginTx", " %+v", opts)
}
func (c *witnessConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), c.w.end("ExecContext", " %s %v", query, args)
}
func (c *witnessConn) Exec(query string, args []driver.Value) (driver.Result, error) {
	return driver.RowsAffected(1), c.w.end("Exec", " %s %v", query, args)
}
func (c *witnessConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, c.w.end("QueryContext", " %s %v", query, args)
}
func (c *witnessConn) Query(query string, args []driver.Value) (driver.Rows, error) {
	return noRows{}, c.w.end("Query", " %s %v", query, args)
}
func (c *witnessConn) Ping(context.Context) error         { return c.w.end("Ping", "") }
func (c *witnessConn) ResetSession(context.Context) error { return c.w.end("ResetSession", "") }
func (c *witnessConn) IsValid() bool                      { return c.w.end("IsValid", "") == nil }
func (c *witnessConn) CheckNamedValue(v *driver.NamedValue) error {
	return check(c.w, "conn.CheckNamedValue", v)
}

// check takes what has a money, refuses what is forbidden and leaves the rest to database/sql.
func check(w *witness, who string, v *driver.NamedValue) error {
	w.note("%s %v", who, v.Value)
	switch m := v.Value.(type) {
	case money:
		v.Value = int64(m.cents)
		return nil
	case forbidden:
		return errors.New("forbidden")
	}
	return driver.ErrSkip
}

type (
	money     struct{ cents int }
	forbidden struct{}
)

type witnessTx struct{ w *witness }

func (t *witnessTx) Commit() error   { return t.w.end("Commit", "") }
func (t *witnessTx) Rollback() error { return t.w.end("Rollback", "") }

// witnessStmt has every method of a statement.
type witnessStmt struct{ w *witness }

func (s *witnessStmt) Close() error  { return s.w.end("Stmt.Close", "") }
func (s *witnessStmt) NumInput() int { return -1 }
func (s *witnessStmt) Exec(args []driver.Value) (driver.Result, error) {
	return driver.RowsAffected(1), s.w.end("Stmt.Exec", " %v", args)
}
func (s *witnessStmt) Query(args []driver.Value) (driver.Rows, error) {
	return noRows{}, s.w.end("Stmt.Query", " %v", args)
}
func (s *witnessStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), s.w.end("Stmt.ExecContext", " %v", args)
}
func (s *witnessStmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return noRows{}, s.w.end("Stmt.QueryContext", " %v", args)
}
func (s *witnessStmt) CheckNamedValue(v *driver.NamedValue) error {
	return check(s.w, "stmt.CheckNamedValue", v)
}
func (s *witnessStmt) ColumnConverter(i int) driver.ValueConverter { return cents{s.w, i} }

// cents is a column that takes money.
type cents struct {
	w *witness
	i int
}

func (c cents) ConvertValue(v any) (driver.Value, error) {
	c.w.note("column %d %v", c.i, v)
	if m, ok := v.(money); ok {
		return int64(m.cents), nil
	}
	return driver.DefaultParameterConverter.ConvertValue(v)
}
