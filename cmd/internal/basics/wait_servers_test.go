//go:build unix

package basics

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/abate-go/abate/internal/needs/postgres"
	"github.com/abate-go/abate/internal/needs/redis"
)

// statements carries statements out as the user who may do everything.
func statements(t *testing.T, s *postgres.Server, all ...string) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, one := range all {
		if _, err := conn.Exec(t.Context(), one).ReadAll(); err != nil {
			t.Fatalf("%s: %v", one, err)
		}
	}
}

// as is the address of a server for another user and database.
func as(s *postgres.Server, login, database string) string {
	_, rest, _ := strings.Cut(s.DSN(), "@")
	host, rest, _ := strings.Cut(rest, "/")
	_, query, _ := strings.Cut(rest, "?")
	return "postgres://" + login + "@" + host + "/" + database + "?" + query + ofAPool
}

// ofAPool is a setting that a program's pool understands and the server does not.
const ofAPool = "&pool_max_conns=4"

func TestWaitForPostgreSQLThatStarts(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	s := postgres.Shared(t)
	s.Crash()
	code, stderr := runWait(t.Context(), func() {
		if err := s.Start(); err != nil {
			t.Error(err)
		}
	}, as(s, "abate", "postgres"))
	if code != 0 || !strings.Contains(stderr, "/postgres is not there, attempt 1") ||
		!strings.Contains(stderr, "/postgres is there after ") || strings.Contains(stderr, "sslmode") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestWaitDoesNotRetryAWrongPasswordOrDatabase(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	s := postgres.Shared(t)
	statements(t, s, "DROP ROLE IF EXISTS locked", "CREATE ROLE locked LOGIN PASSWORD 'right-secret'",
		// the server has the file in its own folder, and may write it; other tests copy the server, whichever comes first
		`DO $$ BEGIN EXECUTE format('COPY (VALUES (%L), (%L), (%L)) TO %L', 
			'host all locked 127.0.0.1/32 scram-sha-256', 'host all all 127.0.0.1/32 trust',
			'host replication all 127.0.0.1/32 trust', current_setting('hba_file')); END $$`,
		"SELECT pg_reload_conf()")
	for { // until the server has read it
		conn, err := pgconn.Connect(t.Context(), strings.TrimSuffix(as(s, "locked:wrong-secret", "postgres"), ofAPool))
		if err != nil {
			break
		}
		conn.Close(context.Background())
	}
	other, _ := later(t)
	code, stderr := runWait(t.Context(), nil, as(s, "locked:wrong-secret", "postgres"), "tcp://"+other)
	if code != 1 || !strings.Contains(stderr, "permanent failure after 1 attempt in ") ||
		!strings.Contains(stderr, "28P01") || strings.Contains(stderr, "wrong-secret") ||
		!strings.Contains(stderr, "not tried again; check the user") ||
		!strings.Contains(stderr, "tcp://"+other+" was not there yet: ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	if code, stderr = runWait(t.Context(), nil, as(s, "locked:right-secret", "postgres")); code != 0 {
		t.Errorf("the right password: exit code %d\n%s", code, stderr)
	}
	if code, stderr = runWait(t.Context(), nil, as(s, "abate", "nowhere")); code != 1 ||
		!strings.Contains(stderr, "permanent failure after 1 attempt") || !strings.Contains(stderr, "3D000") {
		t.Errorf("no such database: exit code %d\n%s", code, stderr)
	}
}

func TestWaitRetriesTooManyConnections(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	s := postgres.Shared(t)
	statements(t, s, "DROP ROLE IF EXISTS crowded", "CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
	code, stderr := runWait(t.Context(), func() {
		statements(t, s, "ALTER ROLE crowded CONNECTION LIMIT 5")
	}, as(s, "crowded", "postgres"))
	if code != 0 || !strings.Contains(stderr, "53300") || !strings.Contains(stderr, "is there after 2 attempts") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestWaitForRedis(t *testing.T) {
	s := redis.New(t, "requirepass right-secret")
	address := s.Addr()
	at := "redis://:right-secret@" + address + "/0"
	code, stderr := runWait(t.Context(), func() {
		if err := s.Start(); err != nil {
			t.Error(err)
		}
	}, at)
	if code != 0 || !strings.Contains(stderr, "redis://"+address+"/0 is not there, attempt 1") ||
		strings.Contains(stderr, "right-secret") {
		t.Errorf("a server that starts: exit code %d\n%s", code, stderr)
	}
	for login, want := range map[string]string{":wrong-secret@": "WRONGPASS", "": "NOAUTH"} {
		code, stderr := runWait(t.Context(), nil, "redis://"+login+address)
		if code != 1 || !strings.Contains(stderr, "permanent failure after 1 attempt") || !strings.Contains(stderr, want) ||
			strings.Contains(stderr, "wrong-secret") {
			t.Errorf("%s: exit code %d\n%s", want, code, stderr)
		}
	}
}

func TestWaitForARedisThatLoads(t *testing.T) {
	if testing.Short() {
		return // it loads for seconds
	}
	at := "redis://" + redis.Loading(t, 2*time.Second).Addr()
	code, stderr := runWait(t.Context(), nil, at)
	if code != 0 || !strings.Contains(stderr, at+" is not there, attempt 1, ") ||
		!strings.Contains(stderr, ": LOADING ") ||
		!strings.Contains(stderr, at+" is there after ") || strings.Contains(stderr, at+" is there after 1 attempt ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
