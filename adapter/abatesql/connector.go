package abatesql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/connfail"
)

// Connector opens the connections of a database/sql pool under a guard: every one of them and all of it, from the dial
// to the end of the authentication. It is for sql.OpenDB; OpenDB does that. It is safe for concurrent use if Base is;
// do not change it once it is used.
type Connector struct {
	// Base is the driver's own connector. Required.
	Base driver.Connector
	// Guard decides when a connection may be opened, how long an attempt may take and whether there is another. Make it
	// once, from abate.ConnectionPolicy(). A nil one lets every opening pass.
	Guard *abate.Guard

	shared shared
}

var (
	_ driver.Connector = (*Connector)(nil)
	_ io.Closer        = (*Connector)(nil)
)

// OpenDB returns a pool whose connections are opened under the guard. Like sql.OpenDB it opens none itself.
func OpenDB(base driver.Connector, g *abate.Guard) *sql.DB {
	return sql.OpenDB(&Connector{Base: base, Guard: g})
}

// Connect opens one connection. The error is the driver's own when another attempt could not fix it, else an
// *abate.Error with it or, if the guard sent nothing, without. It is driver.ErrBadConn too for a connection whose token
// would come too late (see crowded), and never else: database/sql would call Connect again at once.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	if c.Base == nil {
		return nil, errNoBase
	}
	for ctx.Err() == nil {
		if conn, err := c.connect(ctx); conn != nil || err != nil {
			return conn, err
		}
	}
	return nil, ctx.Err()
}

// connect opens a connection, or takes one that becomes free meanwhile. It returns nothing if that one was bad.
func (c *Connector) connect(ctx context.Context) (driver.Conn, error) {
	waiting, leave := context.WithCancel(ctx)
	defer leave()
	w := c.shared.join(leave)
	defer c.shared.quit(w)
	if c.scarce() {
		if freed := w.wait(ctx, grace); freed != nil {
			return c.renew(ctx, freed), nil
		}
	}
	base, err := c.open(waiting, w)
	if err == nil {
		c.shared.recycler.Opened()
		return wrap(base, c, core.Now()), nil
	}
	if c.full(err) { // somebody will finish with one
		if freed := w.wait(ctx, c.Guard.Describe().Pacing.MaxWait); freed != nil {
			return c.renew(ctx, freed), nil
		}
	}
	c.shared.quit(w)
	if freed := w.got(); freed != nil {
		return c.renew(ctx, freed), nil
	}
	return nil, c.lookAgain(ctx, err)
}

// open opens a connection under the guard.
func (c *Connector) open(ctx context.Context, w *waiter) (driver.Conn, error) {
	base, err := abate.Do(ctx, c.Guard, func(ctx context.Context) (base driver.Conn, err error) {
		if c.shared.take(w) {
			return nil, abate.Ignore(context.Canceled)
		}
		opened := false
		defer func() {
			if !opened {
				c.shared.dials(w, false)
			}
		}()
		base, err = c.Base.Connect(ctx)
		opened = err == nil
		return base, connfail.Mark(c.Guard, err)
	})
	if errors.Is(err, driver.ErrBadConn) { // not before it is judged: it may wrap what the server said
		err = unopened{err}
	}
	return base, err
}

// scarce reports whether the guard has seen an opening fail of late, and there are connections that may become free.
func (c *Connector) scarce() bool {
	return c.shared.open.Load() > 0 && c.Guard.State().Pacing.AtOnce > 0
}

// full reports whether the server has no connection left for a pool that has some.
func (c *Connector) full(err error) bool {
	return c.scarce() && connfail.Classify(err).Class == abate.Overload
}

var errNoBase = errors.New("abatesql: the Connector has no Base; it is the driver's connector, such as " +
	"stdlib.GetConnector(config) of pgx")

// Driver returns the driver's own driver.
func (c *Connector) Driver() driver.Driver {
	if c.Base == nil {
		return nil
	}
	return c.Base.Driver()
}

// Close closes the driver's connector if that wants to be closed; sql.DB calls it.
func (c *Connector) Close() error {
	if closer, ok := c.Base.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// untilNextLook is how long whoever is refused by the pace waits before the pool looks again whether a connection has
// become free: longer than most statements take, and shorter than anybody notices. database/sql tries three times, and
// looks at the first two.
const untilNextLook = 20 * time.Millisecond

// lookAgain makes the pool look for a free connection once more if the pace is all that stands against a new one:
// database/sql gives what becomes free only to those who wait for it, and not to those who wait in Connect.
func (c *Connector) lookAgain(ctx context.Context, err error) error {
	var refusal *abate.Error
	if !c.Guard.Describe().Pacing.Paces() || !errors.As(err, &refusal) ||
		refusal.Reason != abate.ErrRateLimited || refusal.Attempts > 0 {
		return err
	}
	pause := time.NewTimer(untilNextLook)
	defer pause.Stop()
	select {
	case <-pause.C:
		return crowded{err}
	case <-ctx.Done():
		return err
	}
}

// crowded is a refusal after which database/sql looks into its pool again: it does that for driver.ErrBadConn.
type crowded struct{ error }

func (c crowded) Is(target error) bool { return target == driver.ErrBadConn }
func (c crowded) Unwrap() error        { return c.error }

// unopened is a driver.ErrBadConn that came instead of a connection. It is not to be recognised as one: a connection
// that there is not cannot be a bad one.
type unopened struct{ err error }

func (u unopened) Error() string { return u.err.Error() }
func (u unopened) Is(target error) bool {
	return target != driver.ErrBadConn && errors.Is(u.err, target)
}
func (u unopened) As(target any) bool { return errors.As(u.err, target) }
