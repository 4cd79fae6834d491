//go:build unix

package basics

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/abate-go/abate/internal/needs/postgres"
)

// noneTaken is what people are told about a server that takes no connections.
const noneTaken = "the server takes no connections now (57P03): tried again; wait until it has started or is up " +
	"again; a replica with hot_standby=off never takes any\n"

// saidOf reports whether a line has what and ends as said.
func saidOf(text, what, end string) bool {
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) && strings.HasSuffix(line, end) {
			return true
		}
	}
	return false
}

func TestWaitForAReplicaThatTakesNoConnectionsGivesUpAndSaysWhy(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	closed := postgres.Shared(t).Standby(t, "hot_standby=off")
	code, stderr := runWait(t.Context(), nil, as(closed, "abate", "postgres"), "--timeout", "4s")
	const says = "the database system is not accepting connections (SQLSTATE 57P03)\n"
	if code != 1 || !saidOf(stderr, "/postgres is not there, attempt 1, next in ", says) ||
		!saidOf(stderr, "/postgres: gave up waiting after ", says) ||
		!strings.HasSuffix(stderr, "/postgres: "+noneTaken) {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	code, stderr = runWait(t.Context(), func() { closed.Promote(t) }, as(closed, "abate", "postgres"))
	if code != 0 || !strings.Contains(stderr, says) || !strings.Contains(stderr, "/postgres is there after ") {
		t.Errorf("once it is promoted: exit code %d\n%s", code, stderr)
	}
}

func TestWaitForAServerThatStartsEndsWhenItHasStarted(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	starting, proceed := postgres.Shared(t).Starting(t)
	code, stderr := runWait(t.Context(), proceed, as(starting, "abate", "postgres"))
	if code != 0 || !strings.Contains(stderr, "the database system is starting up (SQLSTATE 57P03)\n") ||
		!strings.Contains(stderr, "/postgres is there after ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// A replica that takes statements is there. Who needs one that takes writes says so in the address.
func TestWaitForAReplicaIsOverUnlessWritesAreAskedFor(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	standby := postgres.Shared(t).Standby(t)
	address := as(standby, "abate", "postgres")
	if code, stderr := runWait(t.Context(), nil, address); code != 0 ||
		!strings.Contains(stderr, "is there after 1 attempt in ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	address += "&target_session_attrs=read-write"
	code, stderr := runWait(t.Context(), nil, address, "--timeout", "4s")
	if code != 1 ||
		!strings.Contains(stderr, "/postgres: a server that takes no writes (read only connection): tried again; wait for "+
			"the failover") {
		t.Errorf("writes are asked for: exit code %d\n%s", code, stderr)
	}
	code, stderr = runWait(t.Context(), func() { standby.Promote(t) }, address)
	if code != 0 || !strings.Contains(stderr, ": read only connection\n") ||
		!strings.Contains(stderr, "/postgres is there after ") {
		t.Errorf("once it is promoted: exit code %d\n%s", code, stderr)
	}
}

func TestWaitForAServerThatIsStoppedWaitsForItsRestart(t *testing.T) {
	if testing.Short() {
		return // a server takes seconds
	}
	s := postgres.Shared(t)
	t.Cleanup(func() { _ = s.Start() })
	held, err := pgconn.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close(context.Background())
	if err := s.Drain(); err != nil {
		t.Fatal(err)
	}
	code, stderr := runWait(t.Context(), func() {
		s.Stop()
		if err := s.Start(); err != nil {
			t.Error(err)
		}
	}, as(s, "abate", "postgres"))
	if code != 0 || !strings.Contains(stderr, "the database system is shutting down (SQLSTATE 57P03)\n") ||
		!strings.Contains(stderr, "/postgres is there after ") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}
