package postgrestest_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatehttp"
	"github.com/abate-go/abate/adapter/abatesql"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policy/idempotency"
)

// Forty requests are being done when the database stops answering, just as they end. The leases go by. Nobody crashed,
// so nothing may be done twice.
func TestAStutterOfPostgreSQLRunsNothingAgain(t *testing.T) {
	s := running(t)
	admin := s.open(t)
	for name, stutter := range map[string]func(table string, meanwhile func()){
		"a lock that is held for longer than a statement may take": func(table string, meanwhile func()) {
			tx := begin(t, admin)
			defer tx.Rollback()
			if _, err := tx.Exec("LOCK TABLE " + table + " IN ACCESS EXCLUSIVE MODE"); err != nil {
				t.Error(err)
			}
			meanwhile()
			tick := time.NewTimer(300 * time.Millisecond)
			<-tick.C
		},
		"connections that are cut": func(_ string, meanwhile func()) {
			meanwhile()
			for range 20 {
				do(t, admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'stutter'")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := fmt.Sprint("stutter_", tables.Add(1))
			newStore(t, admin, abatesql.Config{Table: table})
			db := s.open(t, "application_name=stutter")
			again, answered := stuttered(t, db, table, func(meanwhile func()) { stutter(table, meanwhile) })
			t.Logf("%d first tries were told that they were done, %d ran again", answered, again)
			if again > 0 {
				t.Errorf("%d ran again", again)
			}
		})
	}
}

// stuttered has forty requests end in the middle of a stutter, and repeats them after the lease.
func stuttered(t *testing.T, db *sql.DB, table string, stutter func(meanwhile func())) (again, answered int) {
	const many, term = 40, time.Second
	store, err := abatesql.NewStore(db, abatesql.Config{Table: table, Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	g, err := inbound.NewGate("shop", inbound.Protection{
		Store: store, Idempotency: idempotency.Config{Methods: []string{"POST"}, Lease: term},
	})
	if err != nil {
		t.Fatal(err)
	}
	var runs [many]atomic.Int64
	var working, all sync.WaitGroup
	release := make(chan struct{})
	h := abatehttp.NewHandler(g, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscan(r.Header.Get("Idempotency-Key"), &n)
		if runs[n].Add(1) == 1 {
			working.Done()
			<-release
		}
		fmt.Fprint(w, "done ", n)
	}))
	post := func(n int) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("POST", "/orders", nil), httptest.NewRecorder()
		r.Header.Set("Idempotency-Key", fmt.Sprint(n))
		h.ServeHTTP(w, r)
		return w
	}
	var answers [many]*httptest.ResponseRecorder
	working.Add(many)
	for n := range many {
		all.Go(func() {
			for { // until the store of a busy machine lets it begin
				if answers[n] = post(n); runs[n].Load() > 0 {
					return
				}
			}
		})
	}
	working.Wait()
	stutter(func() { close(release) })
	all.Wait()
	over := time.NewTimer(term + term/2) // the leases
	<-over.C
	for n := range many {
		var w *httptest.ResponseRecorder
		eventually(t, "an answer to the repeat", func() bool { w = post(n); return w.Code == 200 })
		if w.Body.String() != fmt.Sprint("done ", n) {
			t.Errorf("repeat of %d: %s", n, w.Body)
		}
		if runs[n].Load() > 1 {
			again++
		}
		if answers[n].Code == 200 {
			answered++
		}
	}
	return again, answered
}
