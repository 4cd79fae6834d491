package abatesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/pacing"
)

// counter counts events of a guard.
type counter struct{ hidden, attempts, opened atomic.Int32 }

func (c *counter) Observe(e abate.Event) {
	switch e.Kind {
	case core.HiddenRetry:
		c.hidden.Add(1)
	case core.AttemptBegan:
		c.attempts.Add(1)
	case core.BreakerChanged:
		if e.To.String() == "open" {
			c.opened.Add(1)
		}
	}
}

// connections makes a guard for connections and counts what it does.
func connections(t testing.TB, change func(*abate.Policy)) (*abate.Guard, *counter) {
	t.Helper()
	c := new(counter)
	p := abate.ConnectionPolicy()
	p.Rand, p.Observer = func() uint64 { return 1 << 63 }, c
	if change != nil {
		change(&p)
	}
	g, err := abate.New("db", p)
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

// full is a driver that shows everything.
func full(ends map[string][]error) *witness {
	return &witness{shape: shapes["all"], stmts: stmtShapes["all"], ends: ends}
}

func pool(t testing.TB, w *witness, g *abate.Guard) *sql.DB {
	t.Helper()
	db := abatesql.OpenDB(w, g)
	t.Cleanup(func() { db.Close() })
	return db
}

func TestAWrongPasswordIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(nil)
		w.dials = func(context.Context, int) error { return coded("28P01") }
		g, seen := connections(t, nil)
		db := pool(t, w, g)
		err := db.PingContext(t.Context())
		if err != error(coded("28P01")) || w.opened() != 1 {
			t.Fatalf("%d connections asked for, error %v", w.opened(), err)
		}
		for began := time.Now(); time.Since(began) < time.Minute; {
			_ = db.PingContext(t.Context())
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.opened(); n > 90 || seen.opened.Load() == 0 {
			t.Errorf("%d connections asked for in a minute, the circuit has opened %d times", n, seen.opened.Load())
		}
	})
}

func TestAServerThatStartsIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(nil)
		w.dials = func(_ context.Context, n int) error {
			if n < 3 {
				return coded("57P03")
			}
			return nil
		}
		g, _ := connections(t, nil)
		if err := pool(t, w, g).PingContext(t.Context()); err != nil || w.opened() != 3 {
			t.Errorf("%d connections asked for, error %v", w.opened(), err)
		}
	})
}

func TestABadConnectionThatNeverWasDoesNotMultiplyAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(nil)
		w.dials = func(context.Context, int) error { return driver.ErrBadConn }
		g, seen := connections(t, func(p *abate.Policy) { p.CircuitBreaker.Disabled = true })
		err := pool(t, w, g).PingContext(t.Context())
		if errors.Is(err, driver.ErrBadConn) || !errors.Is(err, abate.ErrAttemptsExhausted) ||
			!strings.Contains(err.Error(), driver.ErrBadConn.Error()) {
			t.Errorf("error %v", err)
		}
		if w.opened() != 3 || seen.hidden.Load() != 0 {
			t.Errorf("%d attempts, %d hidden", w.opened(), seen.hidden.Load())
		}
	})
}

func TestWhatDatabaseSQLRepeatsIsDrawnFromTheBudget(t *testing.T) {
	for _, method := range []string{
		"ExecContext", "QueryContext", "PrepareContext", "Stmt.ExecContext", "Stmt.QueryContext", "BeginTx",
	} {
		w := full(map[string][]error{method: {driver.ErrBadConn, nil}})
		g, seen := connections(t, func(p *abate.Policy) { p.Pacing.Disabled = true })
		db := pool(t, w, g)
		before := g.State().Budget
		if err := use(t.Context(), db, method); err != nil && err != sql.ErrNoRows {
			t.Errorf("%s: %v", method, err)
		}
		if seen.hidden.Load() != 1 || w.opened() != 2 {
			t.Errorf("%s: %d hidden retries and %d connections, want 1 and 2", method, seen.hidden.Load(), w.opened())
		}
		if after := g.State().Budget; after > before-0.5 {
			t.Errorf("%s: the budget went from %v to %v", method, before, after)
		}
	}
}

// use does what needs a method of the driver.
func use(ctx context.Context, db *sql.DB, method string) error {
	switch method {
	case "ExecContext":
		_, err := db.ExecContext(ctx, "insert")
		return err
	case "QueryContext":
		return db.QueryRowContext(ctx, "select").Scan(new(int))
	case "BeginTx":
		tx, err := db.BeginTx(ctx, nil)
		if err == nil {
			err = tx.Rollback()
		}
		return err
	}
	s, err := db.PrepareContext(ctx, "select")
	if err != nil {
		return err
	}
	defer s.Close()
	if method == "Stmt.QueryContext" {
		err = s.QueryRowContext(ctx).Scan(new(int))
	} else {
		_, err = s.ExecContext(ctx)
	}
	return err
}

func TestInATransactionNothingIsRepeatedAndNothingCounted(t *testing.T) {
	w := full(map[string][]error{"ExecContext": {driver.ErrBadConn}, "Commit": {driver.ErrBadConn}})
	g, seen := connections(t, nil)
	db := pool(t, w, g)
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "insert"); err != driver.ErrBadConn {
		t.Errorf("error %v", err)
	}
	if err := tx.Commit(); err != driver.ErrBadConn {
		t.Errorf("commit: %v", err)
	}
	if seen.hidden.Load() != 0 {
		t.Errorf("%d hidden retries", seen.hidden.Load())
	}
	if strings.Count(w.told(), "ExecContext") != 1 {
		t.Errorf("asked:\n%s", w.told())
	}
}

func TestAConnectionWhoseServerHasGoneIsNotKept(t *testing.T) {
	for _, test := range []struct {
		name   string
		err    error
		opts   *sql.TxOptions
		method string
		kept   bool
	}{
		{"read-only after a failover", coded("25006"), nil, "ExecContext", false},
		{"read-only, prepared before the failover", coded("25006"), nil, "Stmt.ExecContext", false},
		{"read-only in a transaction", coded("25006"), new(sql.TxOptions), "ExecContext", false},
		{"read-only in a transaction that wanted it", coded("25006"), &sql.TxOptions{ReadOnly: true}, "ExecContext", true},
		{"shutting down in a transaction that only reads", coded("57P01"), &sql.TxOptions{ReadOnly: true},
			"ExecContext", false},
		{"shutting down", coded("57P01"), nil, "QueryContext", false},
		{"shutting down at the commit", coded("57P01"), new(sql.TxOptions), "Commit", false},
		{"crashed", coded("57P02"), nil, "QueryContext", false},
		{"broken", coded("08006"), nil, "ExecContext", false},
		{"closed", io.ErrUnexpectedEOF, nil, "QueryContext", false},
		{"a duplicate", coded("23505"), nil, "ExecContext", true},
		{"too many", coded("53300"), nil, "QueryContext", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := full(map[string][]error{test.method: {test.err}})
			g, _ := connections(t, nil)
			db := pool(t, w, g)
			err := useIn(t.Context(), db, test.opts, test.method)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v", err)
			}
			if idle := db.Stats().Idle; (idle == 1) != test.kept {
				t.Errorf("%d idle connections after %v", idle, test.err)
			}
		})
	}
}

// useIn is use, in a transaction if there are options for one.
func useIn(ctx context.Context, db *sql.DB, opts *sql.TxOptions, method string) error {
	if opts == nil {
		return use(ctx, db, method)
	}
	tx, err := db.BeginTx(ctx, opts)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "update")
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func TestRawUsersReachTheDriversConnection(t *testing.T) {
	g, _ := connections(t, nil)
	db := pool(t, full(nil), g)
	c, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Raw(func(dc any) error {
		if _, its := abatesql.Unwrap(dc).(*witnessConn); !its {
			t.Errorf("unwrapped to %T", abatesql.Unwrap(dc))
		}
		return nil
	})
	if err != nil || abatesql.Unwrap(7) != 7 {
		t.Errorf("%v, %v", err, abatesql.Unwrap(7))
	}
}

func TestAConnectorWithoutABaseSaysSo(t *testing.T) {
	_, err := new(abatesql.Connector).Connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no Base") {
		t.Errorf("error %v", err)
	}
	if d := new(abatesql.Connector).Driver(); d != nil {
		t.Errorf("driver %v", d)
	}
}

// moment is how many connections a pool has then.
type moment struct {
	after    time.Duration // the one before
	from, to int32
}

// fill asks a pool for 20 connections at once, of which none is given back.
func fill(t *testing.T, db *sql.DB, moments []moment) {
	t.Helper()
	var got atomic.Int32
	for range 20 {
		go func() {
			if c, err := db.Conn(context.Background()); err == nil {
				got.Add(1)
				defer c.Close()
				<-t.Context().Done()
			}
		}()
	}
	for _, at := range moments {
		time.Sleep(at.after)
		synctest.Wait()
		if n := got.Load(); n < at.from || n > at.to {
			t.Errorf("after another %v: %d connections, want %d to %d", at.after, n, at.from, at.to)
		}
	}
}

// patient has a pace by number, and callers who wait for it.
func patient(p *abate.Policy) {
	p.Pacing = pacing.Config{PerSecond: 10, RampUp: 30 * time.Second, RampUpFrom: 0.05, MaxWait: time.Minute,
		Jitter: 0.001}
}

func TestAPoolFillsAtThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := connections(t, patient)
		fill(t, pool(t, full(nil), g), []moment{{0, 1, 1}, {950 * time.Millisecond, 10, 10}, {time.Second, 20, 20}})
	})
}

func TestAfterAnOutageAPoolRefillsSlowlyAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(nil)
		w.dials = func(_ context.Context, n int) error {
			if n <= 3 {
				return coded("57P03")
			}
			return nil
		}
		g, seen := connections(t, patient)
		db := pool(t, w, g)
		if err := db.PingContext(t.Context()); err == nil || seen.opened.Load() != 1 {
			t.Fatalf("the circuit has opened %d times, error %v", seen.opened.Load(), err)
		}
		time.Sleep(2 * time.Second)
		if err := db.PingContext(t.Context()); err != nil { // the probe
			t.Fatal(err)
		}
		fill(t, db, []moment{{0, 1, 1}, {900 * time.Millisecond, 2, 2}, {3100 * time.Millisecond, 4, 6},
			{6 * time.Second, 18, 20}, {2 * time.Second, 20, 20}})
	})
}

func TestACallerWhoLeavesLeavesNoConnection(t *testing.T) {
	before := runtime.NumGoroutine()
	w := full(nil)
	dialling := make(chan struct{}, 1)
	w.dials = func(ctx context.Context, _ int) error {
		dialling <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	g, seen := connections(t, func(p *abate.Policy) { p.Pacing.Disabled = true })
	db := pool(t, w, g)
	for range 50 {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- db.PingContext(ctx) }()
		<-dialling
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("left, and got %v", err)
		}
	}
	db.Close()
	if n := db.Stats().OpenConnections; n != 0 || seen.opened.Load() != 0 {
		t.Errorf("%d connections are open, the circuit has opened %d times", n, seen.opened.Load())
	}
	if !settles(func() bool { return runtime.NumGoroutine() <= before }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}

// settles waits for something that other goroutines do in a moment.
func settles(done func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 4000 {
		if done() {
			return true
		}
		<-tick.C
	}
	return false
}

// silent is a driver that does nothing and notes nothing.
type silent struct{ driver.Conn }

func (silent) Connect(context.Context) (driver.Conn, error) { return silent{}, nil }
func (silent) Driver() driver.Driver                        { return nil }
func (silent) Close() error                                 { return nil }
func (silent) Commit() error                                { return nil }
func (silent) Rollback() error                              { return nil }
func (silent) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return silent{}, nil
}
func (silent) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), nil
}

func TestAnOpenConnectionCostsNoAllocation(t *testing.T) {
	ctx := context.Background()
	g, _ := connections(t, nil)
	allocations := func(db *sql.DB) (exec, tx float64) {
		defer db.Close()
		exec = testing.AllocsPerRun(1000, func() { _, _ = db.ExecContext(ctx, "update") })
		tx = testing.AllocsPerRun(1000, func() {
			if tx, err := db.BeginTx(ctx, nil); err == nil {
				_ = tx.Commit()
			}
		})
		return exec, tx
	}
	exec, tx := allocations(abatesql.OpenDB(silent{}, g))
	if plainExec, plainTx := allocations(sql.OpenDB(silent{})); exec > plainExec || tx > plainTx {
		t.Errorf("a statement allocates %v times, %v without us; a transaction %v, %v without us", exec, plainExec,
			tx, plainTx)
	}
}

func TestWhoIsRefusedByThePaceGetsAConnectionThatBecomesFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, told := connections(t, func(p *abate.Policy) { p.Pacing.PerSecond, p.Pacing.RampUp = 0.01, 0 })
		db := pool(t, full(nil), g)
		defer db.Close()
		held, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*time.Millisecond, func() { held.Close() })
		if _, err := db.ExecContext(t.Context(), "UPDATE"); err != nil {
			t.Errorf("a connection became free after 10ms, and yet: %v", err)
		}
		if n := told.attempts.Load(); n != 1 {
			t.Errorf("%d connections were opened, one was free", n)
		}
	})
}

func TestWhoIsRefusedByThePaceAndFindsNothingFreeIsToldSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, _ := connections(t, func(p *abate.Policy) { p.Pacing.PerSecond, p.Pacing.RampUp = 0.01, 0 })
		db := pool(t, full(nil), g)
		defer db.Close()
		held, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		began := time.Now()
		_, err = db.ExecContext(t.Context(), "UPDATE")
		if !errors.Is(err, abate.ErrRateLimited) || !strings.Contains(err.Error(), "turn of the next attempt") {
			t.Errorf("error %v, want the guard's", err)
		}
		// the clock of the bubble: a pause for each of three tries
		if took := time.Since(began); took != 60*time.Millisecond {
			t.Errorf("told after %v", took)
		}
		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err = db.ExecContext(ctx, "UPDATE"); err == nil || time.Since(began) > 5*time.Millisecond {
			t.Errorf("whoever leaves is kept: %v after %v", err, time.Since(began))
		}
	})
}

func TestAWrongPasswordInsideABadConnectionIsNotTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := full(nil)
		w.dials = func(context.Context, int) error { return errors.Join(driver.ErrBadConn, coded("28P01")) }
		g, _ := connections(t, nil)
		err := pool(t, w, g).PingContext(t.Context())
		if w.opened() != 1 || errors.Is(err, driver.ErrBadConn) || !errors.Is(err, coded("28P01")) {
			t.Errorf("%d connections asked for, error %v", w.opened(), err)
		}
	})
}
