package abatesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatesql"
)

// statements makes a guard for statements that sleeps nowhere.
func statements(t testing.TB) (*abate.Guard, *counter) {
	t.Helper()
	c := new(counter)
	p := abate.DefaultPolicy()
	p.Backoff, p.Observer = "none", c
	g, err := abate.New("db statements", p)
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

func TestAReadIsRepeatedWhereThatMayHelp(t *testing.T) {
	for _, test := range []struct {
		name  string
		ends  []error
		calls int
		err   error
	}{
		{"no rows are an answer", nil, 1, sql.ErrNoRows},
		{"a syntax error is one", []error{coded("42601")}, 1, coded("42601")},
		{"a duplicate is one", []error{coded("23505")}, 1, coded("23505")},
		{"statement_timeout", []error{coded("57014")}, 1, coded("57014")},
		{"a deadlock", []error{coded("40P01")}, 2, sql.ErrNoRows},
		{"the server went down", []error{coded("57P01")}, 2, sql.ErrNoRows},
		{"down for good", []error{coded("57P01"), coded("57P01"), coded("57P01"), coded("57P01")}, 4, coded("57P01")},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := full(map[string][]error{"QueryContext": test.ends})
			conns, _ := connections(t, func(p *abate.Policy) { p.Pacing.Disabled = true })
			db := pool(t, w, conns)
			g, seen := statements(t)
			calls := 0
			_, err := abatesql.Read(t.Context(), g, func(ctx context.Context) (n int, err error) {
				calls++
				return n, db.QueryRowContext(ctx, "select").Scan(&n)
			})
			if !errors.Is(err, test.err) || calls != test.calls || int(seen.attempts.Load()) != test.calls {
				t.Errorf("%d calls, %d attempts, error %v; want %d and %v", calls, seen.attempts.Load(), err, test.calls, test.err)
			}
			if test.calls == 1 && err != test.err {
				t.Errorf("an answer came back as %v", err)
			}
		})
	}
}

func TestAnswersDoNotOpenTheCircuitOfStatements(t *testing.T) {
	g, seen := statements(t)
	for range 1000 {
		_, _ = abatesql.Read(t.Context(), g, func(context.Context) (int, error) { return 0, sql.ErrNoRows })
		_, _ = abatesql.Read(t.Context(), g, func(context.Context) (int, error) { return 0, coded("42601") })
	}
	if seen.opened.Load() != 0 {
		t.Error("the circuit has opened")
	}
}

func TestWhatDatabaseSQLRepeatsWithinAReadIsTheReadsToPay(t *testing.T) {
	w := full(map[string][]error{"QueryContext": {driver.ErrBadConn}})
	conns, ofConns := connections(t, nil)
	db := pool(t, w, conns)
	g, ofReads := statements(t)
	_, err := abatesql.Read(t.Context(), g, func(ctx context.Context) (n int, err error) {
		return n, db.QueryRowContext(ctx, "select").Scan(&n)
	})
	if err != sql.ErrNoRows || ofReads.hidden.Load() != 1 || ofConns.hidden.Load() != 0 {
		t.Errorf("error %v, %d hidden retries of the read, %d of the connections", err, ofReads.hidden.Load(),
			ofConns.hidden.Load())
	}
}

func TestAnOpeningThatWasRepeatedIsNotRepeatedByTheRead(t *testing.T) {
	w := full(nil)
	w.dials = func(context.Context, int) error { return coded("57P03") }
	conns, _ := connections(t, func(p *abate.Policy) {
		p.Backoff, p.Pacing.Disabled, p.CircuitBreaker.Disabled = "none", true, true
	})
	db := pool(t, w, conns)
	g, _ := statements(t)
	_, err := abatesql.Read(t.Context(), g, func(ctx context.Context) (int, error) { return 0, db.PingContext(ctx) })
	if !errors.Is(err, coded("57P03")) || w.opened() != 3 {
		t.Errorf("%d openings, error %v; want the 3 of one guard, not 4 times 3", w.opened(), err)
	}
}
