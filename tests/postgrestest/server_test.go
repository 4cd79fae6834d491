package postgrestest_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/internal/needs/postgres"
)

// server is a PostgreSQL of our own on a free port of the loopback interface.
type server struct{ *postgres.Server }

func TestMain(m *testing.M) {
	if os.Getenv(workerData) != "" {
		work()
		return
	}
	os.Exit(m.Run())
}

// running returns the server of all tests. Each has tables of its own.
func running(t testing.TB) server {
	t.Helper()
	return server{postgres.Shared(t)}
}

// open returns a pool of connections that is closed at the end of the test.
func (s server) open(t testing.TB, extra ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.DSN(extra...))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { db.Close() })
	return db
}

var tables atomic.Int64

// newStore returns a store on a table of its own, which is a new one also when the test runs again.
func newStore(t testing.TB, db *sql.DB, c abatesql.Config) *abatesql.Store {
	t.Helper()
	if c.Table == "" {
		c.Table = fmt.Sprint("keys_", tables.Add(1))
	}
	do(t, db, `DROP TABLE IF EXISTS `+c.Table)
	c.Timeout = time.Minute // the machine may be busy
	s, err := abatesql.NewStore(db, c)
	if err == nil {
		err = s.CreateTable(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually asks until the answer is yes.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	if !poll(done) {
		t.Fatalf("waited %v in vain for: %s", limit, what)
	}
}

const limit = 60 * time.Second

func poll(done func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-over.C:
			return false
		}
	}
	return true
}

// count returns the number that a query selects.
func count(t testing.TB, db *sql.DB, query string, args ...any) (n int) {
	t.Helper()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// do runs a statement that must succeed.
func do(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
