package postgrestest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// is reports whether err has a SQLSTATE of the server's, which its text shows to whoever reads it.
func is(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code && strings.Contains(err.Error(), code)
}

// among is a DSN for several servers: the driver takes the first that will do.
func among(first, second server, extra ...string) string {
	_, host, _ := strings.Cut(second.DSN(), "@")
	host, _, _ = strings.Cut(host, "/")
	return strings.Replace(first.DSN(extra...), "/postgres?", ","+host+"/postgres?", 1)
}

// knocks asks 5000 times, and returns how often the server has heard of it.
func knocks(t *testing.T, db *sql.DB, d *dials) int32 {
	t.Helper()
	before := d.n.Load()
	for range 5000 {
		if db.PingContext(t.Context()) == nil {
			t.Fatal("somebody has opened the door")
		}
	}
	return d.n.Load() - before
}

func TestAReplicaTakesNoWritesUntilItIsPromoted(t *testing.T) {
	primary := running(t)
	name := fmt.Sprint("promoted_", tables.Add(1))
	do(t, primary.open(t), `CREATE TABLE `+name+` (n int)`)
	standby := primary.Standby(t)
	// gaps of the pace as they are on average
	db, d, g := guarded(t, standby.DSN(), func(p *abate.Policy) { p.Rand = func() uint64 { return 1 << 63 } })
	write := func() error { _, err := db.ExecContext(t.Context(), `INSERT INTO `+name+` VALUES (1)`); return err }
	for range 12 {
		if err := write(); !is(err, "25006") {
			t.Fatalf("error %v", err)
		}
		if n := db.Stats().OpenConnections; n > 1 { // one may be: it is given up when the pool has opened another
			t.Fatalf("%d connections are kept to a server that takes no writes", n)
		}
	}
	if n := d.n.Load(); n > 6 {
		t.Errorf("12 writes that were refused cost %d connections", n)
	}
	if n := count(t, db, `SELECT count(*) FROM `+name); n != 0 || db.Stats().OpenConnections != 1 {
		t.Errorf("%d rows; a connection that has only read is not kept: %d", n, db.Stats().OpenConnections)
	}
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = tx.ExecContext(t.Context(), `INSERT INTO `+name+` VALUES (1)`); !is(err, "25006") ||
		tx.Rollback() != nil || db.Stats().OpenConnections != 1 {
		t.Errorf("a transaction that was to read: %v, %d connections", err, db.Stats().OpenConnections)
	}
	standby.Promote(t)
	eventually(t, "a write", func() bool { return write() == nil })
	before := d.n.Load()
	for range 20 {
		if err := write(); err != nil {
			t.Error(err)
		}
	}
	if d.n.Load() != before || g.State().Breaker.State.String() != "closed" {
		t.Errorf("%d connections for writes on one that is open; the circuit is %s", d.n.Load()-before,
			g.State().Breaker.State)
	}
}

func TestAfterAFailoverThePoolWritesToThePromotedReplica(t *testing.T) {
	primary := running(t)
	t.Cleanup(func() { _ = primary.Start() })
	name := fmt.Sprint("failed_over_", tables.Add(1))
	do(t, primary.open(t), `CREATE TABLE `+name+` (n int)`)
	standby := server{primary.Standby(t)}
	db, d, _ := guarded(t, among(primary, standby, "target_session_attrs=read-write"), func(p *abate.Policy) {
		unpaced(p)
		p.CircuitBreaker.MaxWaitDurationInOpenState = 300 * time.Millisecond
	})
	write := func() error { _, err := db.ExecContext(t.Context(), `INSERT INTO `+name+` VALUES (1)`); return err }
	if err := write(); err != nil {
		t.Fatal(err)
	}
	primary.Crash()
	eventually(t, "an error that tells of both servers", func() bool {
		err := db.PingContext(t.Context())
		return err != nil && strings.Contains(err.Error(), "connection refused") &&
			strings.Contains(err.Error(), "read only connection")
	})
	eventually(t, "an open circuit", func() bool { return errors.Is(db.PingContext(t.Context()), abate.ErrCircuitOpen) })
	if n := knocks(t, db, d); n > 30 {
		t.Errorf("5000 callers knocked %d times", n)
	}
	standby.Promote(t)
	eventually(t, "a write", func() bool { return write() == nil })
	if n := count(t, db, `SELECT count(*) FROM `+name); n < 1 {
		t.Errorf("%d rows", n)
	}
}

// The two answers of a server that takes no connections yet: for a while, and for ever.
func TestAServerThatTakesNoConnectionsIsWaitedFor(t *testing.T) {
	primary := running(t)
	starting, proceed := primary.Starting(t)
	closed := primary.Standby(t, "hot_standby=off")
	for _, test := range []struct {
		s    *postgres.Server
		says string
		fix  func()
	}{
		{starting, "the database system is starting up", proceed},
		{closed, "the database system is not accepting connections", func() { closed.Promote(t) }},
	} {
		t.Run(test.says, func(t *testing.T) {
			db, d, g := guarded(t, test.s.DSN(), func(p *abate.Policy) { unpaced(p); p.Backoff = "none" })
			err := db.PingContext(t.Context())
			if !is(err, "57P03") || !strings.Contains(err.Error(), test.says) || d.n.Load() != 3 {
				t.Fatalf("asked %d times, error %v", d.n.Load(), err)
			}
			if state := g.State().Breaker.State.String(); state != "open" {
				t.Errorf("after three failures the circuit is %s", state)
			}
			if n := knocks(t, db, d); n > 30 {
				t.Errorf("5000 callers knocked %d times", n)
			}
			test.fix()
			eventually(t, "a connection", func() bool { return db.PingContext(t.Context()) == nil })
		})
	}
}

// An operator stops the server as long as it takes ("smart"), loses patience ("fast"), and starts it again.
func TestAServerThatIsStoppedGentlyAndThenFast(t *testing.T) {
	s := running(t)
	t.Cleanup(func() { _ = s.Start() })
	db, d, g := guarded(t, s.DSN(), func(p *abate.Policy) { unpaced(p); p.Backoff = "none" })
	quiet, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	busy, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Drain(); err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); !is(err, "57P03") || !strings.Contains(err.Error(), "shutting down") ||
		d.n.Load() != 2+3 {
		t.Errorf("a new connection: asked %d times, error %v", d.n.Load()-2, err)
	}
	if n := knocks(t, db, d); n > 30 || g.State().Breaker.State.String() == "closed" {
		t.Errorf("5000 callers knocked %d times; the circuit is %s", n, g.State().Breaker.State)
	}
	if _, err := quiet.ExecContext(t.Context(), `SELECT 1`); err != nil {
		t.Errorf("a connection that was open: %v", err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := busy.ExecContext(context.Background(), `SELECT pg_sleep(600)`)
		ended <- err
	}()
	eventually(t, "the statement", func() bool {
		var n int
		err := quiet.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query `+
			`LIKE '%pg_sleep(600)' AND pid <> pg_backend_pid()`).Scan(&n)
		return err == nil && n == 1
	})
	s.Stop()
	if err := <-ended; !is(err, "57P01") {
		t.Errorf("a statement that was under way: %v", err)
	}
	if _, err := quiet.ExecContext(t.Context(), `SELECT 1`); !is(err, "57P01") {
		t.Errorf("a connection that was idle: %v", err)
	}
	busy.Close()
	quiet.Close()
	if n := db.Stats().OpenConnections; n != 0 {
		t.Errorf("%d connections are kept to a server that is down", n)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a connection", func() bool { return db.PingContext(t.Context()) == nil })
}

func TestAServerThatIsFullIsOverload(t *testing.T) {
	s := server{postgres.Own(t, "max_connections=4", "superuser_reserved_connections=1")}
	owner := s.open(t)
	owner.SetMaxOpenConns(1)
	do(t, owner, `CREATE ROLE ordinary LOGIN`)
	hold := func(dsn string) {
		db, _, _ := guarded(t, dsn, unpaced)
		eventually(t, "a place", func() bool { // who was refused may keep it for a moment
			_, err := db.Conn(t.Context())
			return err == nil
		})
	}
	dsn := as(t, s.DSN(), "ordinary", "")
	hold(dsn)
	hold(dsn) // owner has one of the four, and one is reserved
	for _, test := range []struct{ dsn, says string }{
		{dsn, "SQLSTATE 53300"}, // the slots that remain are reserved; or as below, if the one before has not left yet
		{s.DSN(), "sorry, too many clients already"},
	} {
		if test.dsn == s.DSN() {
			hold(s.DSN()) // the one that is reserved
		}
		var classes []abate.Class
		db, d, _ := guarded(t, test.dsn, func(p *abate.Policy) {
			unpaced(p)
			p.Backoff = "none"
			p.Observer = abate.ObserverFunc(func(e abate.Event) {
				if e.Kind == core.AttemptEnded {
					classes = append(classes, e.Class)
				}
			})
		})
		err := db.PingContext(t.Context())
		if !is(err, "53300") || !strings.Contains(err.Error(), test.says) || d.n.Load() != 3 ||
			fmt.Sprint(classes) != "[overload overload overload]" {
			t.Errorf("asked %d times, %v, error %v", d.n.Load(), classes, err)
		}
		if n := knocks(t, db, d); n > 30 {
			t.Errorf("5000 callers knocked %d times", n)
		}
	}
}
