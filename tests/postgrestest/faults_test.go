package postgrestest_test

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

// row is one of the store's table.
type row struct {
	fingerprint []byte
	token       int64
	takenOver   bool
	lease, due  string
	answer      []byte
}

func TestAnAcknowledgedEffectIsNeverRunAgainWhateverPostgreSQLDoes(t *testing.T) {
	n := 100
	if text := os.Getenv("ABATE_STORE_SCHEDULES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	db := running(t).open(t)
	db.SetMaxOpenConns(1)
	do(t, db, "SET synchronous_commit = off") // what a server that dies loses is what Load takes away
	store := newStore(t, db, abatesql.Config{Table: "faults"})
	o := storetest.FaultOptions{Schedules: n, Seed: 1}
	hash := func(key string) []byte {
		sum := sha256.Sum256([]byte("k" + key))
		return sum[:]
	}
	o.Save = func(key string) (any, error) {
		var r row
		err := db.QueryRowContext(t.Context(), `SELECT fingerprint, token, taken_over, lease_until::text, forget_at::text, `+
			`answer FROM faults WHERE key = $1`, hash(key)).
			Scan(&r.fingerprint, &r.token, &r.takenOver, &r.lease, &r.due, &r.answer)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return r, err
	}
	o.Load = func(key string, saved any) error {
		_, err := db.ExecContext(t.Context(), `DELETE FROM faults WHERE key = $1`, hash(key))
		if r, ok := saved.(row); ok && err == nil {
			_, err = db.ExecContext(t.Context(),
				`INSERT INTO faults (key, fingerprint, token, taken_over, lease_until, forget_at, answer)
				VALUES ($1, $2, $3, $4, $5::text::timestamptz, $6::text::timestamptz, $7)`, hash(key), r.fingerprint, r.token, r.takenOver, r.lease, r.due, r.answer)
		}
		return err
	}
	count := storetest.Faults(t, store, o)
	t.Logf("%d schedules: %+v", n, count)
	if count.Runs < n || count.Failovers == 0 || count.Crashes == 0 {
		t.Errorf("nothing happened: %+v", count)
	}
}
