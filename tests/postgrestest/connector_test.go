package postgrestest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// dials counts what reaches the server, and when its attempts ended well.
type dials struct {
	driver.Connector
	n      atomic.Int32
	mu     sync.Mutex
	opened []time.Time
}

func (d *dials) Connect(ctx context.Context) (driver.Conn, error) {
	d.n.Add(1)
	c, err := d.Connector.Connect(ctx)
	if err == nil {
		d.mu.Lock()
		d.opened = append(d.opened, time.Now())
		d.mu.Unlock()
	}
	return c, err
}

// guarded is a pool of connections to dsn under a guard with the policy for connections.
func guarded(t testing.TB, dsn string, change func(*abate.Policy)) (*sql.DB, *dials, *abate.Guard) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := abate.ConnectionPolicy()
	p.AttemptTimeout = time.Minute // the machine may be busy
	if change != nil {
		change(&p)
	}
	g, err := abate.New("postgres", p)
	if err != nil {
		t.Fatal(err)
	}
	d := &dials{Connector: stdlib.GetConnector(*config)}
	db := abatesql.OpenDB(d, g)
	t.Cleanup(func() { db.Close() })
	return db, d, g
}

func unpaced(p *abate.Policy) { p.Pacing.Disabled = true }

// as is dsn for another user.
func as(t testing.TB, dsn, user, password string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func TestWhatTheServerRefusesForGoodIsAskedOnce(t *testing.T) {
	s := running(t)
	dsn := s.DSN()
	for _, test := range []struct{ name, dsn, sign string }{
		{"no such user", as(t, dsn, "nobody_we_know", "secret"), "28000"},
		{"no such database", strings.Replace(dsn, "/postgres?", "/nowhere?", 1), "3D000"},
		{"no TLS on the server", strings.Replace(dsn, "sslmode=disable", "sslmode=require", 1),
			"server refused TLS connection"},
		{"an unknown setting", dsn + "&nosuchsetting=1", "42704"},
	} {
		t.Run(test.name, func(t *testing.T) {
			db, d, _ := guarded(t, test.dsn, unpaced)
			err := db.PingContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.sign) {
				t.Fatalf("error %v", err)
			}
			var refusal *abate.Error
			if d.n.Load() != 1 || errors.As(err, &refusal) {
				t.Errorf("asked %d times, error %v", d.n.Load(), err)
			}
		})
	}
}

func TestAWrongPasswordIsAskedOnceAndThenByProbes(t *testing.T) {
	s := running(t)
	requirePassword(t, s)
	db, d, g := guarded(t, as(t, s.DSN(), "guarded_user", "wrong"), unpaced)
	err := db.PingContext(t.Context())
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "28P01" || d.n.Load() != 1 {
		t.Fatalf("asked %d times, error %v", d.n.Load(), err)
	}
	for range 5000 {
		_ = db.PingContext(t.Context())
	}
	if n := d.n.Load(); n > 30 {
		t.Errorf("5000 callers asked the server %d times", n)
	}
	if state := g.State().Breaker.State.String(); state == "closed" {
		t.Error("the circuit is closed")
	}
}

// requirePassword lets one user in with a password only.
func requirePassword(t *testing.T, s server) {
	t.Helper()
	db := s.open(t)
	do(t, db, `DROP ROLE IF EXISTS guarded_user`)
	do(t, db, `CREATE ROLE guarded_user LOGIN PASSWORD 'right'`)
	var file, rules string
	if err := db.QueryRowContext(t.Context(), `SELECT current_setting('hba_file')`).Scan(&file); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRowContext(t.Context(), `SELECT pg_read_file($1)`, file).Scan(&rules); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		do(t, db, `CREATE TEMP TABLE IF NOT EXISTS hba (line text)`)
		literal := "'" + strings.ReplaceAll(text, "'", "''") + "'"
		do(t, db, `COPY (SELECT regexp_split_to_table(`+literal+`, E'\n')) TO '`+file+`'`)
		do(t, db, `SELECT pg_reload_conf()`)
	}
	write("host all guarded_user 127.0.0.1/32 scram-sha-256\n" + rules)
	t.Cleanup(func() { write(rules) })
	eventually(t, "the server to ask for a password", func() bool {
		other, err := sql.Open("pgx", as(t, s.DSN(), "guarded_user", "nonsense"))
		if err != nil {
			return false
		}
		defer other.Close()
		var pg *pgconn.PgError
		return errors.As(other.PingContext(t.Context()), &pg) && pg.Code == "28P01"
	})
}

func TestTooManyConnectionsAreOverload(t *testing.T) {
	s := running(t)
	owner := s.open(t)
	do(t, owner, `DROP ROLE IF EXISTS narrow`)
	do(t, owner, `CREATE ROLE narrow LOGIN CONNECTION LIMIT 1`)
	dsn := as(t, s.DSN(), "narrow", "")
	first, _, _ := guarded(t, dsn, unpaced)
	held, err := first.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var classes []abate.Class
	db, d, g := guarded(t, dsn, func(p *abate.Policy) {
		unpaced(p)
		p.Backoff = "none"
		p.CircuitBreaker.Disabled = true
		p.Observer = abate.ObserverFunc(func(e abate.Event) {
			if e.Kind == core.AttemptEnded {
				classes = append(classes, e.Class)
			}
		})
	})
	before := g.State().Budget
	err = db.PingContext(t.Context())
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "53300" || d.n.Load() != 3 {
		t.Errorf("asked %d times, error %v", d.n.Load(), err)
	}
	if fmt.Sprint(classes) != "[overload overload overload]" || g.State().Budget >= before {
		t.Errorf("attempts ended as %v, budget %v before and %v after", classes, before, g.State().Budget)
	}
	held.Close()
	first.Close()
	eventually(t, "a place", func() bool { return db.PingContext(t.Context()) == nil })
}

func TestANameThatNobodyKnowsIsTriedAgain(t *testing.T) {
	dsn := strings.Replace(running(t).DSN(), "127.0.0.1", "no-such-host.invalid", 1)
	db, d, _ := guarded(t, dsn, func(p *abate.Policy) { unpaced(p); p.Backoff = "none"; p.CircuitBreaker.Disabled = true })
	if err := db.PingContext(t.Context()); !errors.Is(err, abate.ErrAttemptsExhausted) || d.n.Load() != 3 {
		t.Errorf("asked %d times, error %v", d.n.Load(), err)
	}
}

func TestAConnectionThatHasBecomeReadOnlyLeavesThePool(t *testing.T) {
	s := running(t)
	name := fmt.Sprint("demoted_", tables.Add(1))
	do(t, s.open(t), `CREATE TABLE `+name+` (n int)`)
	db, d, _ := guarded(t, s.DSN(), unpaced)
	db.SetMaxOpenConns(1)
	prepared, err := db.PrepareContext(t.Context(), `INSERT INTO `+name+` VALUES (1)`)
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	for _, write := range []func() error{
		func() error { _, err := db.ExecContext(t.Context(), `INSERT INTO `+name+` VALUES (1)`); return err },
		func() error { _, err := prepared.ExecContext(t.Context()); return err },
	} {
		do(t, db, `SET default_transaction_read_only = on`) // as if its server had become a replica
		before := d.n.Load()
		var pg *pgconn.PgError
		if err := write(); !errors.As(err, &pg) || pg.Code != "25006" {
			t.Fatalf("error %v", err)
		}
		if err := write(); err != nil || d.n.Load() != before+1 {
			t.Errorf("after it: %v, over %d connections more", err, d.n.Load()-before)
		}
	}
}

func TestAfterARestartOneProbesAndTheOthersFollowAtThePace(t *testing.T) {
	own := postgres.Shared(t) // the last test of the server: it is up again at the end
	goroutines := runtime.NumGoroutine()
	db, d, g := guarded(t, own.DSN(), func(p *abate.Policy) {
		p.Pacing.PerSecond, p.Pacing.RampUp, p.Pacing.MaxWait = 20, time.Second, 30*time.Second
		p.Rand = func() uint64 { return 1 << 63 } // gaps of the pace as they are on average
		p.CircuitBreaker.MaxWaitDurationInOpenState = 500 * time.Millisecond
	})
	const workers = 20
	db.SetMaxOpenConns(workers)
	db.SetMaxIdleConns(workers)
	all := func() []*sql.Conn {
		conns := make(chan *sql.Conn, workers)
		for range workers {
			go func() {
				c, err := db.Conn(context.Background())
				for over := time.Now().Add(limit); err != nil && time.Now().Before(over); {
					c, err = db.Conn(context.Background())
				}
				conns <- c
			}()
		}
		held := make([]*sql.Conn, workers)
		for i := range held {
			if held[i] = <-conns; held[i] == nil {
				t.Fatal("a worker has no connection")
			}
		}
		return held
	}
	give := func(held []*sql.Conn) {
		for _, c := range held {
			c.Close()
		}
	}
	give(all())
	own.Crash()
	eventually(t, "an open circuit", func() bool {
		return errors.Is(db.PingContext(t.Context()), abate.ErrCircuitOpen)
	})
	before := d.n.Load()
	for range 10000 {
		_ = db.PingContext(t.Context())
	}
	if n := d.n.Load() - before; n > 30 {
		t.Errorf("while the server was away, 10000 callers knocked %d times", n)
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	d.opened = nil
	d.mu.Unlock()
	eventually(t, "a connection", func() bool { return db.PingContext(t.Context()) == nil })
	began := time.Now() // and not when the first was opened: a machine that stands still then opens all at once
	give(all())
	if g.State().Breaker.State.String() == "open" {
		t.Error("the circuit is open")
	}
	d.mu.Lock()
	opened := d.opened
	d.mu.Unlock()
	if len(opened) < workers || len(opened) > workers+5 {
		t.Errorf("%d connections were opened for %d workers", len(opened), workers)
	}
	if span := opened[len(opened)-1].Sub(began); span < 800*time.Millisecond { // the pace alone takes 18 gaps of 50 ms
		t.Errorf("all were opened within %v", span)
	}
	db.Close()
	eventually(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines })
}
