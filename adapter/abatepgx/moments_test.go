package abatepgx_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatepgx"
	"github.com/abate-go/abate/internal/connfail"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// quick probes often, for tests that wait for a probe.
func quick(p *abate.Policy) { p.CircuitBreaker.MaxWaitDurationInOpenState = 300 * time.Millisecond }

// pooled is a pool of connections to dsn under a guard.
func pooled(t testing.TB, dsn string) (*pgxpool.Pool, *abate.Guard, *events) {
	t.Helper()
	g, seen := guard(t, quick)
	c := config(t, dsn)
	abatepgx.Guard(c, g)
	return open(t, c), g, seen
}

// knocks asks 2000 times, and returns how often a server has heard of it. Every attempt that began has ended, as a
// failure.
func knocks(t *testing.T, pool *pgxpool.Pool, seen *events) int {
	t.Helper()
	before, _, _ := seen.counts()
	for range 2000 {
		if pool.Ping(t.Context()) == nil {
			t.Fatal("somebody has opened the door")
		}
	}
	began, ended, classes := seen.counts()
	if began != ended {
		t.Errorf("%d attempts began, %d ended", began, ended)
	}
	for i, class := range classes[before:] {
		if class != abate.Failure {
			t.Errorf("attempt %d ended as %v", i, class)
		}
	}
	return began - before
}

// explained reports whether an error shows what the driver says, and whether people are told what that means.
func explained(err error, says, hint string) bool {
	return err != nil && strings.Contains(err.Error(), says) && strings.Contains(connfail.Explain(err), hint)
}

func TestAReplicaIsAskedUntilItIsPromoted(t *testing.T) {
	standby := postgres.Shared(t).Standby(t)
	var pools []*pgxpool.Pool
	for attribute, says := range map[string]string{
		"read-write": "read only connection", "primary": "server is in standby mode",
	} {
		pool, g, seen := pooled(t, standby.DSN("target_session_attrs="+attribute))
		pools = append(pools, pool)
		for range 3 { // each is one attempt: the pool has no place for more
			if err := pool.Ping(t.Context()); !explained(err, says,
				"a server that takes no writes ("+says+"): tried again; wait for the failover") {
				t.Fatalf("error %v; %s", err, connfail.Explain(err))
			}
		}
		if state := g.State().Breaker.State.String(); state != "open" {
			t.Errorf("%s: after three failures the circuit is %s", attribute, state)
		}
		if n := knocks(t, pool, seen); n > 30 {
			t.Errorf("%s: 2000 callers knocked %d times", attribute, n)
		}
	}
	standby.Promote(t)
	for _, pool := range pools {
		eventually(t, "a write", func() bool {
			_, err := pool.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS promoted (n int)")
			return err == nil
		})
	}
}

func TestAPrimaryIsAskedUntilAReplicaIsThere(t *testing.T) {
	dsn := postgres.Shared(t).DSN()
	for attribute, says := range map[string]string{
		"read-only": "connection is not read only", "standby": "server is not in hot standby mode",
	} {
		pool, _, seen := pooled(t, dsn+"&target_session_attrs="+attribute)
		if err := pool.Ping(t.Context()); !explained(err, says, "a server that is no replica ("+says+"): tried again") {
			t.Errorf("error %v; %s", err, connfail.Explain(err))
		}
		if n := knocks(t, pool, seen); n > 30 {
			t.Errorf("%s: 2000 callers knocked %d times", attribute, n)
		}
	}
}

func TestAfterAFailoverThePoolComesBack(t *testing.T) {
	primary := postgres.Shared(t)
	t.Cleanup(func() { _ = primary.Start() })
	standby := primary.Standby(t)
	_, host, _ := strings.Cut(standby.DSN(), "@")
	host, _, _ = strings.Cut(host, "/")
	pool, _, seen := pooled(
		t, strings.Replace(primary.DSN("target_session_attrs=read-write"), "/postgres?", ","+host+"/postgres?", 1))
	write := func() error {
		_, err := pool.Exec(t.Context(), "CREATE TABLE IF NOT EXISTS failed_over (n int)")
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	primary.Crash()
	eventually(t, "an error that tells of both servers", func() bool {
		// what the server said that is there weighs more than that nobody is at the other address
		err := pool.Ping(t.Context())
		return explained(err, "connection refused", "a server that takes no writes (read only connection)")
	})
	eventually(t, "an open circuit", func() bool { return errors.Is(pool.Ping(t.Context()), abate.ErrCircuitOpen) })
	if n := knocks(t, pool, seen); n > 30 {
		t.Errorf("2000 callers knocked %d times", n)
	}
	standby.Promote(t)
	eventually(t, "a write", func() bool { return write() == nil })
}

// The two answers of a server that takes no connections yet: for a while, and for ever.
func TestAServerThatTakesNoConnectionsIsWaitedFor(t *testing.T) {
	primary := postgres.Shared(t)
	starting, proceed := primary.Starting(t)
	closed := primary.Standby(t, "hot_standby=off")
	for _, test := range []struct {
		s    *postgres.Server
		says string
		fix  func()
	}{
		{starting, "the database system is starting up (SQLSTATE 57P03)", proceed},
		{closed, "the database system is not accepting connections (SQLSTATE 57P03)", func() { closed.Promote(t) }},
	} {
		pool, g, seen := pooled(t, test.s.DSN())
		for range 3 {
			if err := pool.Ping(t.Context()); !explained(err, test.says,
				"the server takes no connections now (57P03): tried again; wait") {
				t.Fatalf("error %v; %s", err, connfail.Explain(err))
			}
		}
		if state := g.State().Breaker.State.String(); state != "open" {
			t.Errorf("after three failures the circuit is %s", state)
		}
		if n := knocks(t, pool, seen); n > 30 {
			t.Errorf("2000 callers knocked %d times", n)
		}
		test.fix()
		eventually(t, "a connection", func() bool { return pool.Ping(t.Context()) == nil })
	}
}

// An operator stops the server as long as it takes ("smart"), loses patience ("fast"), and starts it again.
func TestAServerThatIsStoppedGentlyAndThenFast(t *testing.T) {
	s := postgres.Shared(t)
	t.Cleanup(func() { _ = s.Start() })
	pool, _, seen := pooled(t, s.DSN())
	held, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.Release) // a second time it does nothing
	if err := s.Drain(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Ping(t.Context()); !explained(err, "the database system is shutting down (SQLSTATE 57P03)",
		"the server takes no connections now (57P03)") {
		t.Errorf("a new connection: %v", err)
	}
	if n := knocks(t, pool, seen); n > 30 {
		t.Errorf("2000 callers knocked %d times", n)
	}
	if _, err := held.Exec(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("a connection that was open: %v", err)
	}
	s.Stop()
	_, err = held.Exec(context.Background(), "SELECT 1")
	var pg *pgconn.PgError
	if !errors.As(err, &pg) ||
		!explained(err, "SQLSTATE 57P01", "the server is going down (57P01): tried again; wait for its restart") {
		t.Errorf("a connection that was idle: %v; %s", err, connfail.Explain(err))
	}
	held.Release()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a connection", func() bool { return pool.Ping(t.Context()) == nil })
}
