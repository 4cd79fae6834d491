//go:build unix

package outages_test

import (
	"context"
	"database/sql"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatepgx"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/internal/needs"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// pooled is how many connections a pool has at most, all of which may stay open.
const pooled = 20

func guard(t *testing.T) *abate.Guard {
	t.Helper()
	g, err := abate.New("postgres", abate.ConnectionPolicy())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// sqlSides are two pools of database/sql.
func sqlSides(t *testing.T, dsn, text string) (plain, guarded *side, pools [2]*sql.DB) {
	t.Helper()
	sides := [2]*side{}
	for i, name := range []string{"plain", "guarded"} {
		dials := new(atomic.Int64)
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.DialFunc = counted(dials)
		base := stdlib.GetConnector(*config)
		db := sql.OpenDB(base)
		if name == "guarded" {
			db = abatesql.OpenDB(base, guard(t))
		}
		db.SetMaxOpenConns(pooled)
		db.SetMaxIdleConns(pooled)
		t.Cleanup(func() { db.Close() })
		pools[i] = db
		sides[i] = newSide(name, func(ctx context.Context) error { _, err := db.ExecContext(ctx, text); return err }, dials)
	}
	return sides[0], sides[1], pools
}

// pgxSides are two pools of pgx.
func pgxSides(t *testing.T, dsn string) (plain, guarded *side) {
	t.Helper()
	sides := [2]*side{}
	for i, name := range []string{"plain", "guarded"} {
		dials := new(atomic.Int64)
		config, err := pgxpool.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.DialFunc = counted(dials)
		config.MaxConns = pooled
		if name == "guarded" {
			abatepgx.Guard(config, guard(t))
		}
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		sides[i] = newSide(name, func(ctx context.Context) error { _, err := pool.Exec(ctx, "SELECT 1"); return err }, dials)
	}
	return sides[0], sides[1]
}

// postgresAway stops a PostgreSQL under load for so long.
func postgresAway(t *testing.T, server *postgres.Server, d time.Duration, plain, guarded *side) {
	t.Helper()
	var up atomic.Int64
	stop := make(chan struct{})
	wait := load(stop, "queries", queriesPerSecond, &up, plain, guarded)
	pass(t, time.Second)
	server.Stop()
	plain.dials.Store(0)
	guarded.dials.Store(0)
	pass(t, d)
	p, g := plain.dials.Load(), guarded.dials.Load()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	up.Store(time.Now().UnixNano())
	pass(t, 4*time.Second)
	close(stop)
	wait()
	plain.dials.Store(p)
	guarded.dials.Store(g)
}

func TestAPostgreSQLThatIsAwayForASecondCostsNoMoreThanWithoutAGuard(t *testing.T) {
	needs.Alone(t)
	server := postgres.Own(t)
	for _, pool := range []string{"database/sql", "pgx"} {
		t.Run(pool, func(t *testing.T) {
			plain, guarded, _ := sqlSides(t, server.DSN(), "SELECT 1")
			if pool == "pgx" {
				plain, guarded = pgxSides(t, server.DSN())
			}
			postgresAway(t, server, time.Second, plain, guarded)
			compare(t, plain, guarded, "queries", 15)
		})
	}
}

func TestAPostgreSQLThatIsAwayIsSeldomDialled(t *testing.T) {
	needs.Alone(t)
	server := postgres.Own(t)
	for _, pool := range []string{"database/sql", "pgx"} {
		t.Run(pool, func(t *testing.T) {
			plain, guarded, _ := sqlSides(t, server.DSN(), "SELECT 1")
			if pool == "pgx" {
				plain, guarded = pgxSides(t, server.DSN())
			}
			postgresAway(t, server, 5*time.Second, plain, guarded)
			compare(t, plain, guarded, "queries", 15)
			if p, g := plain.dials.Load(), guarded.dials.Load(); g*10 > p {
				t.Errorf("%d dials in an outage of 5 s, without us %d", g, p)
			}
		})
	}
}

// Writes are refused for 12 s, and reads go on.
func TestAServerThatTakesNoWritesCostsNoReads(t *testing.T) {
	needs.Alone(t)
	server := postgres.Own(t)
	admin, err := sql.Open("pgx", server.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	run := func(text string) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE orders (id bigserial)")
	plain, guarded, pools := sqlSides(t, server.DSN(), "SELECT 1")
	var up atomic.Int64
	stop := make(chan struct{})
	reads := load(stop, "reads", 40, &up, plain, guarded)
	writers := [2]*side{}
	for i, s := range []*side{plain, guarded} {
		writers[i] = newSide(s.name, func(ctx context.Context) error {
			_, err := pools[i].ExecContext(ctx, "INSERT INTO orders DEFAULT VALUES")
			return err
		}, s.dials)
	}
	writes := load(stop, "writes", 20, &up, writers[0], writers[1])
	pass(t, time.Second)
	run("ALTER SYSTEM SET default_transaction_read_only = on")
	run("SELECT pg_reload_conf()")
	pass(t, 12*time.Second)
	run("SET default_transaction_read_only = off")
	run("ALTER SYSTEM RESET default_transaction_read_only")
	run("SELECT pg_reload_conf()")
	up.Store(time.Now().UnixNano())
	pass(t, 3*time.Second)
	close(stop)
	reads()
	writes()
	compare(t, plain, guarded, "reads", 2)
	compare(t, writers[0], writers[1], "writes", 15)
	if writers[1].failed["writes"] < 100 {
		t.Errorf("only %d writes were refused: the server took some", writers[1].failed["writes"])
	}
}

// Ten times as many queries at once, on a server that is well.
func TestABurstOnAHealthyServerIsNotHeldBack(t *testing.T) {
	needs.Alone(t)
	server := postgres.Own(t)
	plain, guarded, _ := sqlSides(t, server.DSN(), "SELECT pg_sleep(0.1)")
	var up atomic.Int64
	stop := make(chan struct{})
	wait := load(stop, "queries", 15, &up, plain, guarded)
	pass(t, 2*time.Second)
	more := load(stop, "queries", 135, &up, plain, guarded)
	pass(t, 4*time.Second)
	close(stop)
	wait()
	more()
	compare(t, plain, guarded, "queries", 0)
}
