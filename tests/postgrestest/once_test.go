package postgrestest_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatesql"
)

func begin(t testing.TB, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func nothing(context.Context, *sql.Tx) error { return nil }

// once does key in a transaction of its own and commits it.
func once(t testing.TB, db *sql.DB, s *abatesql.Store, key string) (ran bool) {
	t.Helper()
	tx := begin(t, db)
	ran, err := s.Once(t.Context(), tx, key, nothing)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return ran
}

// waiting waits until n connections of the server wait for a lock.
func waiting(t testing.TB, db *sql.DB, n int) {
	t.Helper()
	eventually(t, "a transaction that waits for another", func() bool {
		return count(t, db, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'`) == n
	})
}

func TestOnceWaitsForTheOpenTransactionWithTheKey(t *testing.T) {
	db := running(t).open(t)
	s := newStore(t, db, abatesql.Config{})
	for _, end := range []struct {
		name  string
		end   func(*sql.Tx) error
		again bool
	}{
		{"a commit, and does not run", (*sql.Tx).Commit, false},
		{"a roll-back, and runs", (*sql.Tx).Rollback, true},
	} {
		t.Run(end.name, func(t *testing.T) {
			first := begin(t, db)
			if ran, err := s.Once(t.Context(), first, end.name, nothing); !ran || err != nil {
				t.Fatalf("ran %v, %v", ran, err)
			}
			second := make(chan bool, 1)
			tx := begin(t, db)
			go func() {
				ran, err := s.Once(t.Context(), tx, end.name, nothing)
				if err != nil {
					t.Error(err)
				}
				second <- ran
			}()
			waiting(t, db, 1)
			if err := end.end(first); err != nil {
				t.Fatal(err)
			}
			if ran := <-second; ran != end.again {
				t.Errorf("the second ran: %v, want %v", ran, end.again)
			}
		})
	}
}

func TestOneOfManyTransactionsHasTheEffect(t *testing.T) {
	for _, isolation := range []string{"read%20committed", "repeatable%20read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			db := running(t).open(t, "default_transaction_isolation="+isolation)
			s := newStore(t, db, abatesql.Config{})
			var effects atomic.Int64
			var wg sync.WaitGroup
			try := func() (err error) {
				tx := begin(t, db)
				ran, err := s.Once(t.Context(), tx, "key", nothing)
				if err == nil {
					err = tx.Commit()
				}
				if err == nil && ran {
					effects.Add(1)
				}
				return err
			}
			for range 10 {
				wg.Go(func() {
					var coded interface{ SQLState() string }
					if !poll(func() bool {
						err := try()
						if err != nil && (isolation == "read%20committed" || !errors.As(err, &coded) || coded.SQLState() != "40001") {
							t.Error(err)
							return true
						}
						return err == nil
					}) {
						t.Error("no end of serialization failures")
					}
				})
			}
			wg.Wait()
			if n := effects.Load(); n != 1 {
				t.Errorf("%d effects, want 1", n)
			}
		})
	}
}

func TestOnceRollsBackWhenTheWorkFails(t *testing.T) {
	db := running(t).open(t)
	s := newStore(t, db, abatesql.Config{})
	do(t, db, `DROP TABLE IF EXISTS half`)
	do(t, db, `CREATE TABLE half (key text)`)
	half := func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO half VALUES ('x')`)
		return err
	}
	reason := errors.New("the second half is missing")
	for name, fn := range map[string]func(ctx context.Context, tx *sql.Tx) error{
		"error": func(ctx context.Context, tx *sql.Tx) error { return errors.Join(half(ctx, tx), reason) },
		"panic": func(ctx context.Context, tx *sql.Tx) error { _ = half(ctx, tx); panic(reason) },
		"bad statement, its error swallowed": func(ctx context.Context, tx *sql.Tx) error {
			_ = half(ctx, tx)
			_, _ = tx.ExecContext(ctx, `SELECT nonsense`)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			tx := begin(t, db)
			func() {
				defer func() { _ = recover() }()
				ran, err := s.Once(t.Context(), tx, "key", fn)
				if name == "error" && (!ran || !errors.Is(err, reason)) {
					t.Errorf("ran %v with %v, want true with the reason", ran, err)
				}
			}()
			if err := tx.Commit(); err == nil {
				t.Error("the transaction could be committed")
			}
			if n := count(t, db, `SELECT count(*) FROM half`); n != 0 {
				t.Errorf("%d halves are there", n)
			}
		})
	}
	if !once(t, db, s, "key") {
		t.Error("the next try did not run")
	}
}

func TestOnceTakesAnyKey(t *testing.T) {
	db := running(t).open(t)
	s := newStore(t, db, abatesql.Config{})
	long := strings.Repeat("k", 10<<20)
	for _, key := range []string{"a", "a\n", "a\x00", "{a}", "\xff", "'", long, long + "l", "orders/3/1718"} {
		if !once(t, db, s, key) {
			t.Errorf("%.20q of %d bytes did not run", key, len(key))
		}
		if once(t, db, s, key) {
			t.Errorf("%.20q of %d bytes ran twice", key, len(key))
		}
	}
	if b, err := s.Begin(t.Context(), "a", [32]byte{}, time.Hour); err != nil || b.Token == 0 {
		t.Errorf("a key of Once is in the way of the same one of Begin: %+v, %v", b, err)
	}
}

func TestOnceGivesUpWithItsContext(t *testing.T) {
	db := running(t).open(t)
	s := newStore(t, db, abatesql.Config{})
	first := begin(t, db)
	if _, err := s.Once(t.Context(), first, "key", nothing); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	tx := begin(t, db)
	go func() {
		ran, err := s.Once(ctx, tx, "key", nothing)
		if ran {
			t.Error("ran while another transaction has the key")
		}
		ended <- err
	}()
	waiting(t, db, 1)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the error of its context", err)
	}
}

func TestOnceInAnAbortedTransactionSaysSo(t *testing.T) {
	db := running(t).open(t)
	s := newStore(t, db, abatesql.Config{})
	tx := begin(t, db)
	_, _ = tx.Exec(`SELECT nonsense`)
	if ran, err := s.Once(t.Context(), tx, "key", nothing); ran || err == nil ||
		!strings.Contains(err.Error(), "abatesql: once: ") {
		t.Errorf("ran %v, %v", ran, err)
	}
	if err := tx.Commit(); !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("commit: %v", err)
	}
}
