package abatesql

import (
	"context"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/connfail"
)

// conn is a driver's connection that looks at errors: it counts what database/sql repeats by itself, and is no longer
// valid once its server goes down or takes no writes any more. What the driver's connection can do is found out once.
//
// database/sql asks a connection what it can do. Most of it can be offered always, and done as database/sql would do it
// without. Two things cannot: a connection that takes statements without preparing them converts their arguments
// before. Hence the types executing, querying and direct.
type conn struct {
	base  driver.Conn
	guard *abate.Guard
	pool  *shared
	born  time.Duration

	execer    driver.ExecerContext
	queryer   driver.QueryerContext
	preparer  driver.ConnPrepareContext
	beginner  driver.ConnBeginTx
	checker   driver.NamedValueChecker
	resetter  driver.SessionResetter
	validator driver.Validator

	tx       driver.Tx // the one that is open
	readOnly bool      // it is
	severed  bool      // the connection is of no more use
	given    bool      // another conn has it now

	statements int // that are prepared on it
}

var (
	_ driver.Conn               = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
	_ driver.ExecerContext      = executing{}
	_ driver.QueryerContext     = querying{}
	_ driver.ExecerContext      = direct{}
	_ driver.QueryerContext     = direct{}
)

func wrap(base driver.Conn, of *Connector, born time.Duration) driver.Conn {
	c := &conn{base: base, guard: of.Guard, pool: &of.shared, born: born}
	c.pool.open.Add(1)
	c.execer, _ = base.(driver.ExecerContext)
	c.queryer, _ = base.(driver.QueryerContext)
	c.preparer, _ = base.(driver.ConnPrepareContext)
	c.beginner, _ = base.(driver.ConnBeginTx)
	c.checker, _ = base.(driver.NamedValueChecker)
	c.resetter, _ = base.(driver.SessionResetter)
	c.validator, _ = base.(driver.Validator)
	//lint:ignore SA1019 drivers of that age are still in use
	if old, ok := base.(driver.Execer); ok && c.execer == nil {
		c.execer = oldExecer{old}
	}
	//lint:ignore SA1019 drivers of that age are still in use
	if old, ok := base.(driver.Queryer); ok && c.queryer == nil {
		c.queryer = oldQueryer{old}
	}
	switch {
	case c.execer != nil && c.queryer != nil:
		return direct{c}
	case c.execer != nil:
		return executing{c}
	case c.queryer != nil:
		return querying{c}
	}
	return c
}

// Unwrap returns the driver's own connection of one that sql.Conn.Raw hands out, or driverConn itself if it is none of
// ours:
//
//	err := conn.Raw(func(c any) error { return use(abatesql.Unwrap(c).(*stdlib.Conn).Conn()) })
//
// What is done with it directly is not looked at.
func Unwrap(driverConn any) any {
	if c, ok := driverConn.(interface{ unwrap() driver.Conn }); ok {
		return c.unwrap()
	}
	return driverConn
}

func (c *conn) unwrap() driver.Conn { return c.base }

type (
	executing struct{ *conn }
	querying  struct{ *conn }
	direct    struct{ *conn }
)

func (c executing) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r, err := c.execer.ExecContext(ctx, query, args)
	if err != nil {
		c.failed(ctx, err)
	}
	return r, err
}

func (c querying) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r, err := c.queryer.QueryContext(ctx, query, args)
	if err != nil {
		c.failed(ctx, err)
	}
	return r, err
}

func (c direct) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return executing(c).ExecContext(ctx, query, args)
}

func (c direct) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return querying(c).QueryContext(ctx, query, args)
}

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		c.failed(ctx, err)
		return nil, err
	}
	return wrapStmt(s, c), nil
}

func (c *conn) prepare(ctx context.Context, query string) (driver.Stmt, error) {
	if c.preparer != nil {
		return c.preparer.PrepareContext(ctx, query)
	}
	s, err := c.base.Prepare(query)
	if err == nil && ctx.Err() != nil {
		_ = s.Close()
		return nil, ctx.Err()
	}
	return s, err
}

// Close closes the connection, unless another caller has it by now.
func (c *conn) Close() error {
	c.pool.open.Add(-1)
	if c.given {
		return nil
	}
	return c.base.Close()
}

// Ping is what database/sql does not repeat.
func (c *conn) Ping(ctx context.Context) error {
	pinger, ok := c.base.(driver.Pinger)
	if !ok {
		return nil
	}
	err := pinger.Ping(ctx)
	if err != nil {
		c.look(err)
	}
	return err
}

// CheckNamedValue skips what the driver leaves to database/sql.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if c.checker == nil {
		return driver.ErrSkip
	}
	return c.checker.CheckNamedValue(v)
}

// ResetSession is called before the connection is used again. Whatever is wrong with it, nothing was sent yet for the
// caller, so that what database/sql then repeats is no retry.
func (c *conn) ResetSession(ctx context.Context) error {
	if c.severed {
		return driver.ErrBadConn
	}
	if c.resetter == nil {
		return nil
	}
	return c.resetter.ResetSession(ctx)
}

// IsValid is asked before the connection goes back to the pool, which it does not if somebody waits for it.
func (c *conn) IsValid() bool {
	if c.given || c.severed || c.validator != nil && !c.validator.IsValid() {
		return false
	}
	c.given = c.pool.offer(c)
	return !c.given
}

// failed looks at an error of a statement. database/sql repeats what brings driver.ErrBadConn, except in a transaction.
// (And on a sql.Conn, which cannot be distinguished from the pool: that is counted without need.)
func (c *conn) failed(ctx context.Context, err error) {
	if err == driver.ErrSkip {
		return
	}
	if c.look(err); c.tx == nil && errors.Is(err, driver.ErrBadConn) {
		c.payer(ctx).CountHiddenRetries(1)
	}
}

// look finds out whether an error leaves the connection of any use.
func (c *conn) look(err error) {
	if errors.Is(err, driver.ErrBadConn) {
		c.severed = true
		return
	}
	rule, sign := connfail.Find(err)
	switch {
	case !rule.Severs:
	case !rule.OnlyWrites():
		c.severed = true
	case c.readOnly && sign == readOnlyTransaction:
	default:
		c.severed = c.severed || c.pool.recycler.GiveUp(core.Now(), c.born, rand.Uint64())
	}
}

// readOnlyTransaction is the SQLSTATE of a write in a transaction that takes none: the caller's own wish, or a server
// that has become a replica.
const readOnlyTransaction = "25006"

// payer is the guard that hidden retries are drawn from: that of Read, or else that of the connections.
func (c *conn) payer(ctx context.Context) *abate.Guard {
	if g, ok := ctx.Value(readKey{}).(*abate.Guard); ok {
		return g
	}
	return c.guard
}
