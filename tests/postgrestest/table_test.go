package postgrestest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/policy/idempotency"
)

func TestManyInstancesMakeTheTableAtOnce(t *testing.T) {
	db := running(t).open(t)
	do(t, db, `DROP SCHEMA IF EXISTS "Shop" CASCADE`)
	do(t, db, `CREATE SCHEMA "Shop"`)
	s, err := abatesql.NewStore(db, abatesql.Config{Table: "Shop.Keys_of_all"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if err := s.CreateTable(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, db, `SELECT count(*) FROM pg_indexes WHERE schemaname = 'Shop' AND tablename = 'Keys_of_all'`); n !=
		2 {
		t.Errorf("%d indexes, want 2", n)
	}
	if b, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour); err != nil ||
		b.State != idempotency.Run {
		t.Errorf("%+v, %v", b, err)
	}
	do(t, db, s.Schema()) // as a migration; it is there already
}

func TestErrorsSayWhatToDo(t *testing.T) {
	server := running(t)
	db := server.open(t)
	missing, err := abatesql.NewStore(db, abatesql.Config{Table: "nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = missing.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "the table nowhere does not exist; call CreateTable") {
		t.Errorf("without a table: %v", err)
	}
	_, err = missing.Once(t.Context(), begin(t, db), "key", nothing)
	if err == nil || !strings.Contains(err.Error(), "call CreateTable") {
		t.Errorf("without a table: %v", err)
	}
	s := newStore(t, db, abatesql.Config{Table: "readable"})
	replica, err := abatesql.NewStore(server.open(t, "default_transaction_read_only=on"),
		abatesql.Config{Table: "readable"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = replica.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "abatesql: begin: ") || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("on a server that only reads: %v", err)
	}
	do(t, db, `INSERT INTO readable (key, fingerprint, lease_until, forget_at, answer) SELECT sha256('kkey'), '\x', `+
		`now(), now() + interval '1 hour', 'nonsense'`)
	do(t, db, `UPDATE readable SET fingerprint = decode(repeat('00', 32), 'hex')`)
	if b, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour); err == nil || b.State != 0 ||
		b.Token != 0 {
		t.Errorf("a row of somebody else: %+v, %v", b, err)
	}
}

func TestStatementsEndWithTheirTimeout(t *testing.T) {
	db := running(t).open(t)
	newStore(t, db, abatesql.Config{Table: "locked"})
	s, err := abatesql.NewStore(db, abatesql.Config{Table: "locked", Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	tx := begin(t, db)
	if _, err := tx.Exec(`LOCK TABLE locked IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	_, err = s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour)
	for name, err := range map[string]error{
		"Begin":    err,
		"Renew":    s.Renew(t.Context(), "key", 1, time.Hour),
		"Complete": s.Complete(t.Context(), "key", 1, idempotency.Response{}, time.Hour),
		"Fail":     s.Fail(t.Context(), "key", 1),
	} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of a table that somebody has locked: %v, want its time to be over", name, err)
		}
	}
}

func TestCleanRemovesWhatIsLongOver(t *testing.T) {
	db := running(t).open(t)
	s := newStore(t, db, abatesql.Config{Table: "old"})
	for i := range 10 {
		key := fmt.Sprint("key ", i)
		b, err := s.Begin(t.Context(), key, idempotency.Fingerprint{}, time.Hour)
		if err == nil && i < 8 {
			err = s.Complete(t.Context(), key, b.Token, idempotency.Response{Status: 200}, 30*time.Minute)
		}
		if err != nil {
			t.Fatal(err)
		}
		once(t, db, s, key)
	}
	clean := func(limit, want int) {
		t.Helper()
		if n, err := s.Clean(t.Context(), limit); n != want || err != nil {
			t.Errorf("%d rows removed, %v; want %d", n, err, want)
		}
	}
	pass := func(interval string) {
		t.Helper()
		do(t, db, `UPDATE old SET forget_at = forget_at - $1::interval`, interval)
	}
	clean(100, 0)
	pass("80 minutes")
	clean(100, 0) // over, but not for an hour
	pass("20 minutes")
	tx := begin(t, db) // somebody is at the oldest one
	if _, err := tx.Exec(`SELECT FROM old WHERE forget_at = (SELECT min(forget_at) FROM old) FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	clean(2, 2)
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	clean(1, 1)
	var wg sync.WaitGroup
	for range 5 { // each leaves what others are at
		wg.Go(func() {
			if _, err := s.Clean(t.Context(), 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := count(t, db, `SELECT count(*) FROM old`); n < 12 || n > 16 {
		t.Errorf("%d rows are left", n)
	}
	for n := 1; n > 0; {
		var err error
		if n, err = s.Clean(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, db, `SELECT count(*) FROM old`); n != 12 {
		t.Errorf("%d rows are left, want the 2 that run and the 10 of Once", n)
	}
	if once(t, db, s, "key 1") {
		t.Error("Once forgot its key")
	}
	pass("26 hours") // a try that never ended, a day and more after its lease
	clean(100, 2)
	pass("720 hours")
	clean(100, 10)
}

func TestKeysOutliveTheServer(t *testing.T) {
	server := running(t)
	db := server.open(t)
	s := newStore(t, db, abatesql.Config{Table: "outlive"})
	b, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	server.Crash()
	if _, err = s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour); err == nil {
		t.Error("no error without a server")
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	s, err = abatesql.NewStore(server.open(t), abatesql.Config{Table: "outlive", Timeout: time.Minute})
	if err == nil {
		err = s.CreateTable(t.Context()) // it is there
	}
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour)
	if err != nil || again.State != idempotency.Running {
		t.Errorf("after the crash of the server: %+v, %v; want running", again, err)
	}
	if err = s.Complete(t.Context(), "key", b.Token, idempotency.Response{Status: 201}, time.Hour); err != nil {
		t.Error(err)
	}
	if again, err = s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour); err != nil ||
		again.Response.Status != 201 {
		t.Errorf("after the crash of the server: %+v, %v; want the answer", again, err)
	}
}

// overtaken lets a Begin wait for the row of its key, which it could have when it asked, while another instance takes
// it by the statement, and returns the answer.
func overtaken(t *testing.T, db *sql.DB, s *abatesql.Store, table, statement string) (
	b idempotency.Begun, token uint64) {
	t.Helper()
	b = meanwhile(t, db, s, table, func(tx *sql.Tx) error {
		return tx.QueryRow(`UPDATE ` + table + ` SET token = nextval(pg_get_serial_sequence('` + table + `', 'token')), ` +
			statement + ` RETURNING token`).Scan(&token)
	})
	return b, token
}

// meanwhile lets a Begin wait for the row of its key, while another instance changes it, and returns the answer.
func meanwhile(t *testing.T, db *sql.DB, s *abatesql.Store, table string,
	change func(*sql.Tx) error) idempotency.Begun {
	t.Helper()
	tx := begin(t, db)
	if _, err := tx.Exec(`SELECT FROM ` + table + ` FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	late := make(chan idempotency.Begun, 1)
	go func() {
		b, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour)
		if err != nil {
			t.Error(err)
		}
		late <- b
	}()
	waiting(t, db, 1)
	err := change(tx)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	return <-late
}

// A try that failed while Begin waited for its row ended: that it had no effect is known.
func TestWhoeverWaitsForATryThatFailsHasTakenNothingOver(t *testing.T) {
	db := running(t).open(t)
	for table, before := range map[string]bool{"failed": false, "taken_and_failed": true} {
		s := newStore(t, db, abatesql.Config{Table: table})
		lease := time.Hour
		if before {
			lease = 0
		}
		b, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, lease)
		if err == nil && before {
			b, err = s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Hour)
		}
		if err != nil || b.State != idempotency.Run || b.TakenOver != before {
			t.Fatalf("%s: %+v, %v", table, b, err)
		}
		b = meanwhile(t, db, s, table, func(tx *sql.Tx) error { // what Fail does, at a time after that of Begin
			_, err := tx.Exec(`UPDATE ` + table + ` SET token = 0, lease_until = 'epoch', forget_at = CASE WHEN taken_over ` +
				`THEN forget_at ELSE statement_timestamp() END`)
			return err
		})
		if b.State != idempotency.Run || b.TakenOver != before {
			t.Errorf("%s: %+v, want run, taken over %v", table, b, before)
		}
	}
}

// A number that was drawn before the row was locked would be smaller than that of somebody who got the row first.
func TestTokensGrowForThoseWhoHadToWait(t *testing.T) {
	db := running(t).open(t)
	s := newStore(t, db, abatesql.Config{Table: "tokens"})
	if _, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, 0); err != nil {
		t.Fatal(err)
	}
	b, token := overtaken(t, db, s, "tokens", "taken_over = true")
	if b.State != idempotency.Run || !b.TakenOver || b.Token <= token {
		t.Errorf("%+v, want run with a token above %d", b, token)
	}
}

// What the statement sees of a row is older than what it may find when it has waited for it.
func TestTheAnswerIsNeverThatOfAnOlderRow(t *testing.T) {
	const takes = "answer = NULL, lease_until = now() + interval '1 hour', forget_at = now() + interval '2 hours'"
	db := running(t).open(t)
	for table, before := range map[string]func(s *abatesql.Store, token uint64) error{
		"lapsed": func(*abatesql.Store, uint64) error { return nil },
		"expired": func(s *abatesql.Store, token uint64) error {
			return s.Complete(t.Context(), "key", token, idempotency.Response{Status: 200}, 0)
		},
	} {
		t.Run(table, func(t *testing.T) {
			s := newStore(t, db, abatesql.Config{Table: table})
			b, err := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, 0)
			if err == nil {
				err = before(s, b.Token)
			}
			if err != nil {
				t.Fatal(err)
			}
			if b, _ = overtaken(t, db, s, table, takes); b.State != idempotency.Running || b.Lease <= 0 || b.Lease > time.Hour {
				t.Errorf("%+v, want running for less than an hour", b)
			}
		})
	}
}
