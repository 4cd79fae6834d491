package postgrestest_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/abate-go/abate/adapter/abatesql"
)

// workerData is the variable that makes the test binary a worker.
const workerData = "ABATESQL_WORKER"

// The points at which a worker tells where it is.
const (
	recorded  = "recorded"  // the key is recorded, the effect not begun, nothing committed
	effected  = "effected"  // the effect is there, not committed
	committed = "committed" // all is committed, nobody knows
	repeated  = "repeated"  // it was done before
)

// worker is a process that does the work of some keys, each in one transaction with its record.
type worker struct {
	DSN, Table string
	Keys       []string
	AtOnce     int    // how many keys
	Stop       string // the point at which it waits to be killed; "" goes on and tells all points
}

// work is what the process does.
func work() {
	var w worker
	if err := json.Unmarshal([]byte(os.Getenv(workerData)), &w); err != nil {
		panic(err)
	}
	db, err := sql.Open("pgx", w.DSN)
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(w.AtOnce)
	db.SetMaxIdleConns(w.AtOnce)
	store, err := abatesql.NewStore(db, abatesql.Config{Table: w.Table})
	if err != nil {
		panic(err)
	}
	var wg sync.WaitGroup
	keys := make(chan string)
	for range w.AtOnce {
		wg.Go(func() {
			for key := range keys {
				// The server may be away for a while. An error after the commit may mean that it was committed or not: the
				// next try finds out.
				poll(func() bool { return w.do(db, store, key) == nil })
			}
		})
	}
	for _, key := range w.Keys {
		keys <- key
	}
	close(keys)
	wg.Wait()
}

// do does the work of one key.
func (w *worker) do(db *sql.DB, store *abatesql.Store, key string) error {
	ctx := context.Background()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	ran, err := store.Once(ctx, tx, key, func(ctx context.Context, tx *sql.Tx) error {
		w.at(recorded, key)
		_, err := tx.ExecContext(ctx, `INSERT INTO `+w.Table+`_effects VALUES ($1)`, key)
		w.at(effected, key)
		return err
	})
	if err != nil {
		return err
	}
	if err = tx.Commit(); err != nil {
		return err
	}
	if ran {
		w.at(committed, key)
	} else {
		fmt.Println(repeated, key)
	}
	return nil
}

// at reports that key has reached a point, in one write, and waits for its end if that is the one.
func (w *worker) at(point, key string) {
	if w.Stop == "" || w.Stop == point {
		fmt.Println(point, key)
	}
	if w.Stop == point {
		select {}
	}
}

// run starts the process and calls seen with each line that it writes, until seen says that it is to be killed with
// SIGKILL, or it ends.
func (w worker) run(t testing.TB, seen func(point, key string) (kill bool)) {
	data, err := json.Marshal(w)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), workerData+"="+string(data))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	killed := false
	for lines := bufio.NewScanner(out); !killed && lines.Scan(); {
		point, key, _ := strings.Cut(lines.Text(), " ")
		if killed = seen(point, key); killed {
			_ = cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	if err := cmd.Wait(); !killed && err != nil {
		t.Errorf("a worker that nobody killed: %v", err)
	}
}

// all kills a worker when all its keys have told this point, and fails the test if they tell anything else or end
// before.
func (w worker) all(t testing.TB, point string) {
	t.Helper()
	left := len(w.Keys)
	w.run(t, func(at, key string) bool {
		if at != point {
			t.Errorf("key %s is at %s, want %s", key, at, point)
		}
		left--
		return left == 0
	})
	if left > 0 {
		t.Fatalf("%d of %d keys did not come to %s", left, len(w.Keys), point)
	}
}

// effects are a table in which an effect that happened twice is seen.
func effects(t testing.TB, db *sql.DB, table string) {
	t.Helper()
	do(t, db, `DROP TABLE IF EXISTS `+table+`_effects`)
	do(t, db, `CREATE TABLE `+table+`_effects (key text)`)
}

// howMany returns how many keys a test works on. go test -short is for the quick gate.
func howMany(all int) int {
	if testing.Short() {
		return all / 10
	}
	return all
}

// Each key's worker is killed between effect and commit (some also before the effect), then between commit and the news
// of it, and then the key is tried again.
func TestEachKeyHasOneEffectWhereverItsWorkerIsKilled(t *testing.T) {
	s := running(t)
	db := s.open(t)
	const table, each = "killed", 50
	newStore(t, db, abatesql.Config{Table: table})
	effects(t, db, table)
	keys := make([]string, howMany(1000))
	for i := range keys {
		keys[i] = fmt.Sprint("message-", i)
	}
	for n := 0; n < len(keys); n += each {
		w := worker{DSN: s.DSN(), Table: table, Keys: keys[n : n+each], AtOnce: each}
		if n%(5*each) == 0 {
			w.Stop = recorded
			w.all(t, recorded)
		}
		w.Stop = effected
		w.all(t, effected)
		if got := count(t, db, `SELECT count(*) FROM killed_effects`); got != n {
			t.Fatalf("%d effects after %d keys were done and %d workers killed before their commit", got, n, each)
		}
		w.Stop = committed
		w.all(t, committed)
		w.Stop, w.AtOnce = "", 4
		w.all(t, repeated)
	}
	if got := count(t, db, `SELECT count(DISTINCT key) FROM killed_effects`); got != len(keys) {
		t.Errorf("%d of %d keys have an effect", got, len(keys))
	}
	if got := count(t, db, `SELECT count(*) FROM killed_effects`); got != len(keys) {
		t.Errorf("%d effects of %d keys", got, len(keys))
	}
}

// Two consumers get every message, in different orders, and are killed again and again at any moment, until each has
// done all of them. In between one connection of the server is killed, and the server itself.
func TestEachKeyHasOneEffectThroughKillsAtAnyMoment(t *testing.T) {
	s := running(t)
	db := s.open(t)
	const table = "anytime"
	newStore(t, db, abatesql.Config{Table: table})
	effects(t, db, table)
	messages := howMany(1000)
	var done, kills atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	for consumer := range uint64(2) {
		dsn, random := s.DSN(), rand.New(rand.NewPCG(consumer, 1))
		open := map[string]bool{}
		for i := range messages {
			open[fmt.Sprint("message-", i)] = true
		}
		wg.Go(func() {
			for len(open) > 0 && !t.Failed() {
				w := worker{DSN: dsn, Table: table, Keys: slices.Collect(maps.Keys(open)), AtOnce: 1 + random.IntN(4)}
				lines := random.IntN(80)
				w.run(t, func(point, key string) (kill bool) {
					if point == committed || point == repeated {
						delete(open, key)
						done.Add(1)
					}
					lines--
					if lines < 0 {
						kills.Add(1)
					}
					return lines < 0
				})
			}
		})
	}
	reached := func(n int) func() bool { return func() bool { return int(done.Load()) >= n || t.Failed() } }
	eventually(t, "a third of the work", reached(messages*2/3))
	killBackend(t, db)
	eventually(t, "two thirds of the work", reached(messages*4/3))
	s.Crash()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	t.Logf("%d kills", kills.Load())
	db = s.open(t) // the connections of the other pool are dead
	if got := count(t, db, `SELECT count(DISTINCT key) FROM anytime_effects`); got != messages {
		t.Errorf("%d of %d messages have an effect", got, messages)
	}
	if got := count(t, db, `SELECT count(*) FROM anytime_effects`); got != messages {
		t.Errorf("%d effects of %d messages", got, messages)
	}
}

// killBackend kills one of the server's processes that is inside a transaction, upon which the server ends all others.
func killBackend(t testing.TB, db *sql.DB) {
	t.Helper()
	var pid int
	eventually(t, "a transaction to kill", func() bool {
		err := db.QueryRow(`SELECT pid FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()
			AND backend_type = 'client backend' LIMIT 1`).Scan(&pid)
		if err != nil {
			return t.Failed()
		}
		backend, err := os.FindProcess(pid)
		return err == nil && backend.Kill() == nil || t.Failed()
	})
	eventually(t, "the server to come back", func() bool { return db.PingContext(t.Context()) == nil })
}
