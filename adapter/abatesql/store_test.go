package abatesql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/policy/idempotency"
)

func newStore(t *testing.T, db *sql.DB) *abatesql.Store {
	t.Helper()
	s, err := abatesql.NewStore(db, abatesql.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewStoreSaysWhatIsWrong(t *testing.T) {
	db, _ := open(t)
	for _, tt := range []struct {
		config abatesql.Config
		want   string
	}{
		{abatesql.Config{Table: "a b"}, `Table "a b" is not a name`},
		{abatesql.Config{Table: `a"; DROP TABLE x; --`}, "is not a name"},
		{abatesql.Config{Table: "a.b.c"}, "is not a name"},
		{abatesql.Config{Table: "."}, "is not a name"},
		{abatesql.Config{Table: "1a"}, "is not a name"},
		{abatesql.Config{Table: "a\n"}, "is not a name"},
		{abatesql.Config{Table: strings.Repeat("a", 51)}, "at most 50"},
		{abatesql.Config{Timeout: -1}, "Timeout -1ns is not from 1ms to 1h"},
		{abatesql.Config{Timeout: 2 * time.Hour}, "Timeout 2h0m0s"},
		{abatesql.Config{Remember: time.Millisecond}, "Remember 1ms is not from 1s to 87600h"},
	} {
		if s, err := abatesql.NewStore(db, tt.config); s != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.100q, %v, %v: %v, want an error with %q", tt.config.Table, tt.config.Timeout, tt.config.Remember,
				err, tt.want)
		}
	}
	_, err := abatesql.NewStore(nil, abatesql.Config{Table: "?", Remember: 1})
	for _, want := range []string{"db is nil", "Table", "Remember"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("all at once: %v, want %q too", err, want)
		}
	}
}

func TestSchemaNamesTheTable(t *testing.T) {
	db, _ := open(t)
	for table, want := range map[string]string{"": `"abate_idempotency"`, "Keys": `"Keys"`, "shop.keys": `"shop"."keys"`} {
		s, err := abatesql.NewStore(db, abatesql.Config{Table: table})
		if err != nil {
			t.Fatal(err)
		}
		if schema := s.Schema(); strings.Count(schema, want+" (") != 2 || strings.ContainsAny(schema, "{}") {
			t.Errorf("%q: schema\n%s", table, schema)
		}
	}
}

func TestBeginReadsTheRow(t *testing.T) {
	stored := idempotency.Response{Status: 201, Body: []byte("x")}.AppendTo(nil)
	for _, tt := range []struct {
		row  []driver.Value
		want idempotency.Begun
	}{
		{[]driver.Value{int64(7), false, true, int64(0), nil}, idempotency.Begun{Token: 7}},
		{[]driver.Value{int64(7), true, true, int64(0), nil}, idempotency.Begun{Token: 7, TakenOver: true}},
		{[]driver.Value{int64(0), false, true, int64(1500), nil}, idempotency.Begun{
			State: idempotency.Running, Lease: 1500 * time.Microsecond,
		}},
		{[]driver.Value{int64(0), false, false, int64(0), nil}, idempotency.Begun{State: idempotency.Mismatch}},
		{[]driver.Value{int64(0), false, true, int64(0), stored},
			idempotency.Begun{State: idempotency.Replay, Response: idempotency.Response{Status: 201, Body: []byte("x")}}},
	} {
		db, _ := open(t, reply{rows: [][]driver.Value{tt.row}})
		got, err := newStore(t, db).Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Second)
		if err != nil || got.State != tt.want.State || got.Token != tt.want.Token || got.TakenOver != tt.want.TakenOver ||
			got.Lease != tt.want.Lease || string(got.Response.Body) != string(tt.want.Response.Body) {
			t.Errorf("%v: %+v, %v; want %+v", tt.row, got, err, tt.want)
		}
	}
}

func TestRowsOnTheMoveAreAskedForAgain(t *testing.T) {
	mine := reply{rows: [][]driver.Value{{int64(7), false, true, int64(0), nil}}}
	db, f := open(t, reply{}, reply{err: coded("40001")}, reply{}, mine)
	b, err := newStore(t, db).Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Second)
	if err != nil || b.Token != 7 || f.said() != "with with with with" {
		t.Errorf("%+v, %v", b, err)
	}
	db, _ = open(t, reply{err: coded("40001")}, reply{affected: 1})
	if err = newStore(t, db).Renew(t.Context(), "key", 7, time.Second); err != nil {
		t.Errorf("Renew: %v", err)
	}
	db, f = open(t, reply{})
	_, err = newStore(t, db).Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Second)
	if n := strings.Count(f.said(), "with"); !errors.Is(err, sql.ErrNoRows) || n < 5 || n > 50 {
		t.Errorf("a row that never stands still: %v after %d statements", err, n)
	}
}

func TestOtherErrorsAreFinal(t *testing.T) {
	for _, reason := range []error{coded("25006"), errors.New("broken pipe")} {
		db, f := open(t, reply{err: reason})
		s := newStore(t, db)
		_, begun := s.Begin(t.Context(), "key", idempotency.Fingerprint{}, time.Second)
		_, cleaned := s.Clean(t.Context(), 1)
		for what, err := range map[string]error{
			"begin": begun, "clean": cleaned, "create the table": s.CreateTable(t.Context()),
			"renew":    s.Renew(t.Context(), "key", 1, time.Second),
			"complete": s.Complete(t.Context(), "key", 1, idempotency.Response{}, time.Second),
			"fail":     s.Fail(t.Context(), "key", 1),
		} {
			if !errors.Is(err, reason) || !strings.HasPrefix(err.Error(), "abatesql: "+what+": ") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if said := f.said(); strings.Count(said, "with") != 1 || strings.Count(said, "update") != 3 {
			t.Errorf("asked %q: an error that another try does not fix was tried again", said)
		}
	}
}

func TestCleanWantsALimit(t *testing.T) {
	db, f := open(t)
	for _, limit := range []int{0, -1} {
		if _, err := newStore(t, db).Clean(t.Context(), limit); err == nil ||
			!strings.Contains(err.Error(), "must be 1 or more") {
			t.Errorf("%d: %v", limit, err)
		}
	}
	if said := f.said(); said != "" {
		t.Errorf("asked %q", said)
	}
}

func TestOnceRefusesMisuse(t *testing.T) {
	fn := func(context.Context, *sql.Tx) error { t.Error("called"); return nil }
	db, f := open(t, reply{affected: 1})
	s := newStore(t, db)
	if ran, err := s.Once(t.Context(), nil, "key", fn); ran || err == nil || !strings.Contains(err.Error(), "tx is nil") {
		t.Errorf("no transaction: %v, %v", ran, err)
	}
	for name, call := range map[string]func(tx *sql.Tx) (bool, error){
		"fn is nil":        func(tx *sql.Tx) (bool, error) { return s.Once(t.Context(), tx, "key", nil) },
		"the key is empty": func(tx *sql.Tx) (bool, error) { return s.Once(t.Context(), tx, "", fn) },
	} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if ran, err := call(tx); ran || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, ran, err)
		}
		if said := f.said(); said != "begin rollback" {
			t.Errorf("%s: asked %q, want the transaction rolled back", name, said)
		}
	}
}

func TestOnceRollsBackUnlessAllIsWell(t *testing.T) {
	reason := errors.New("no stock")
	done := func(context.Context, *sql.Tx) error { return nil }
	for _, tt := range []struct {
		name  string
		reply reply
		fn    func(context.Context, *sql.Tx) error
		ran   bool
		err   error
		said  string
	}{
		{"first", reply{affected: 1}, done, true, nil, "begin insert commit"},
		{"repeat", reply{}, done, false, nil, "begin insert commit"},
		{"failed work", reply{affected: 1}, func(context.Context, *sql.Tx) error {
			return reason
		}, true, reason, "begin insert rollback"},
		{"failed record", reply{err: coded("40001")}, done, false, coded("40001"), "begin insert rollback"},
		{"work that rolled back itself", reply{affected: 1},
			func(_ context.Context, tx *sql.Tx) error {
				return errors.Join(tx.Rollback(), reason)
			}, true, reason, "begin insert rollback"},
	} {
		db, f := open(t, tt.reply)
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		ran, err := newStore(t, db).Once(t.Context(), tx, "key", tt.fn)
		_ = tx.Commit()
		if said := f.said(); ran != tt.ran || !errors.Is(err, tt.err) || errors.Is(err, sql.ErrTxDone) || said != tt.said {
			t.Errorf("%s: ran %v, %v, asked %q; want %v, %v, %q", tt.name, ran, err, said, tt.ran, tt.err, tt.said)
		}
	}
}

func TestOnceRollsBackAPanicAndLetsItPass(t *testing.T) {
	db, f := open(t, reply{affected: 1})
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if p := recover(); p != "no stock" || f.said() != "begin insert rollback" {
			t.Errorf("panic %v", p)
		}
	}()
	_, _ = newStore(t, db).Once(t.Context(), tx, "key", func(context.Context, *sql.Tx) error { panic("no stock") })
}
