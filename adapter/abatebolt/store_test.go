package abatebolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/adapter/abatebolt"
	"github.com/abate-go/abate/policy/idempotency"
	"github.com/abate-go/abate/policy/idempotency/storetest"
)

// clock is moved by hand.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1_800_000_000, c.Load()) }
func (c *clock) advance(d time.Duration) { c.Add(int64(d)) }

func open(t testing.TB, path string, o abatebolt.Options) *abatebolt.Store {
	t.Helper()
	s, err := abatebolt.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestAFilePassesTheSuite(t *testing.T) {
	var c clock
	storetest.Run(t, func(t *testing.T) idempotency.Store {
		return open(t, filepath.Join(t.TempDir(), "keys.db"), abatebolt.Options{Now: c.now})
	}, storetest.Options{Advance: c.advance})
}

var fp = idempotency.FingerprintOf("POST", "/", nil)

func begin(t testing.TB, s *abatebolt.Store, key string) idempotency.Begun {
	t.Helper()
	b, err := s.Begin(t.Context(), key, fp, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func complete(t testing.TB, s *abatebolt.Store, key string, size int) {
	t.Helper()
	r := idempotency.Response{Status: 201, Body: make([]byte, size)}
	if err := s.Complete(t.Context(), key, begin(t, s, key).Token, r, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func TestKeysSurviveARestart(t *testing.T) {
	var c clock
	path := filepath.Join(t.TempDir(), "keys.db")
	first := open(t, path, abatebolt.Options{Now: c.now})
	complete(t, first, "done", 100)
	token := begin(t, first, "running").Token
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Begin(t.Context(), "done", fp, time.Minute); !errors.Is(err, abatebolt.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := first.Renew(t.Context(), "running", token, time.Minute); !errors.Is(err, abatebolt.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}

	second := open(t, path, abatebolt.Options{Now: c.now})
	if b := begin(t, second, "done"); b.State != idempotency.Replay || b.Response.Status != 201 ||
		len(b.Response.Body) != 100 {
		t.Errorf("what was done: %+v", b)
	}
	if b := begin(t, second, "running"); b.State != idempotency.Running {
		t.Errorf("what was running: %+v", b)
	}
	if u := second.Usage(); u.Keys != 2 || u.Bytes < 100 {
		t.Errorf("%+v", u)
	}
	c.advance(time.Minute)
	if b := begin(t, second, "running"); b.State != idempotency.Run || !b.TakenOver || b.Token <= token {
		t.Errorf("when its lease is over: %+v, want a take-over with a token above %d", b, token)
	}
	if begin(t, second, "done").State != idempotency.Replay {
		t.Error("what was done is forgotten")
	}
	c.advance(time.Hour)
	if b := begin(t, second, "done"); b.State != idempotency.Run || b.TakenOver {
		t.Errorf("when its retention is over: %+v", b)
	}
}

// fill stores keys until there is no place for another, and returns how many there are.
func fill(t *testing.T, s *abatebolt.Store, c *clock) (n int) {
	for ; ; n++ {
		key := fmt.Sprintf("%064d", n)
		b, err := s.Begin(t.Context(), key, fp, time.Minute)
		if errors.Is(err, idempotency.ErrFull) {
			return n
		}
		if err == nil {
			err = s.Complete(t.Context(), key, b.Token, idempotency.Response{Status: 201, Body: make([]byte, 1000)}, time.Hour)
		}
		if err != nil {
			t.Fatal(err)
		}
		if u := s.Usage(); u.Bytes > u.MaxBytes {
			t.Fatalf("%+v", u)
		}
		c.advance(time.Millisecond)
	}
}

func TestAFileThatIsFullForgetsTheOldestFinishedKeysLoudlyIfItMay(t *testing.T) {
	var c clock
	var mu sync.Mutex
	var told []idempotency.Shortened
	path := filepath.Join(t.TempDir(), "keys.db")
	s := open(t, path, abatebolt.Options{Now: c.now, MaxBytes: 100_000, Floor: time.Minute,
		Forgotten: func(s idempotency.Shortened) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, s)
		}})
	begin(t, s, "running")
	n := fill(t, s, &c)
	if u := s.Usage(); int64(n) < u.MaxKeys*9/10 || int64(n) > u.MaxKeys*11/10 || u.Shortened.Keys != 0 || len(told) != 0 {
		t.Fatalf("%d keys, %+v, told %v", n, u, told)
	}
	if err := s.Renew(t.Context(), "running", 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Minute)
	for i := range 5 {
		complete(t, s, fmt.Sprint("new ", i), 0)
	}
	if u := s.Usage(); len(told) == 0 || told[0].Held < time.Minute || u.Shortened.Keys == 0 || u.Shortened.Keys > 20 ||
		u.Oldest < time.Minute {
		t.Errorf("told %+v, usage %+v", told, u)
	}
	if begin(t, s, "running").State != idempotency.Running ||
		begin(t, s, fmt.Sprintf("%064d", n-1)).State != idempotency.Replay {
		t.Error("a running key or the newest was forgotten")
	}
	if b := begin(t, s, fmt.Sprintf("%064d", 0)); b.State != idempotency.Run || b.TakenOver {
		t.Errorf("the oldest: %+v, want forgotten", b)
	}
}

func TestAFileThatMayNotForgetRefuses(t *testing.T) {
	var c clock
	s := open(t, filepath.Join(t.TempDir(), "keys.db"), abatebolt.Options{Now: c.now, MaxBytes: 100_000})
	n := fill(t, s, &c)
	c.advance(59 * time.Minute)
	if _, err := s.Begin(t.Context(), fmt.Sprintf("%064d", n+1), fp, time.Minute); !errors.Is(err, idempotency.ErrFull) ||
		s.Usage().Keys != int64(n) {
		t.Errorf("%v, %+v", err, s.Usage())
	}
	c.advance(time.Hour)
	if begin(t, s, "new").State != idempotency.Run {
		t.Error("when all have expired there is no place")
	}
}

func TestTheFileStaysBounded(t *testing.T) {
	var c clock
	path := filepath.Join(t.TempDir(), "keys.db")
	const limit = 1 << 20
	s := open(t, path, abatebolt.Options{Now: c.now, MaxBytes: limit, Floor: time.Millisecond})
	for round := range 6 { // of about half the limit each
		var wg sync.WaitGroup
		for worker := range 16 {
			wg.Go(func() {
				for i := range 25 {
					key := idempotency.StoreKey("gate", fmt.Sprint(round, worker), fmt.Sprint(i))
					b, err := s.Begin(t.Context(), key, fp, time.Minute)
					if err == nil {
						err = s.Complete(t.Context(), key, b.Token, idempotency.Response{
							Status: 200, Body: make([]byte, 1000),
						}, time.Hour)
					}
					if err != nil && !errors.Is(err, idempotency.ErrFull) {
						t.Error(err)
					}
					c.advance(time.Millisecond)
				}
			})
		}
		wg.Wait()
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Bytes > limit || info.Size() > 4*limit {
		t.Errorf("%+v, and the file has %d bytes", u, info.Size())
	}
}

func TestAFileInUseSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.db")
	open(t, path, abatebolt.Options{})
	if _, err := abatebolt.Open(path, abatebolt.Options{}); err == nil ||
		!strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("%v", err)
	}
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := abatebolt.Open(garbage, abatebolt.Options{}); err == nil || !strings.Contains(err.Error(), "garbage.db") {
		t.Errorf("%v", err)
	}
}

func TestCallsThatWaitEndWithTheirContext(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "keys.db"), abatebolt.Options{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Begin(over, "key", fp, time.Minute); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if b := begin(t, s, "key"); b.State != idempotency.Run || b.TakenOver {
		t.Errorf("%+v", b)
	}
}

func BenchmarkStore(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "keys.db"), abatebolt.Options{})
	var n atomic.Int64
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := idempotency.StoreKey("gate", "caller", fmt.Sprint(n.Add(1)))
			begun, err := s.Begin(b.Context(), key, fp, time.Minute)
			if err == nil {
				err = s.Complete(b.Context(), key, begun.Token, idempotency.Response{
					Status: 201, Body: make([]byte, 1000),
				}, time.Hour)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}

// A disk holds its breath just as an attempt ends. Whoever completes has stopped waiting, and says it again: it has its
// word, and the next attempt has the answer.
func TestACompletionThatTheDiskHeldUpIsConfirmedWhenItIsToldAgain(t *testing.T) {
	var c clock
	var slow atomic.Bool
	stuck, release := make(chan struct{}), make(chan struct{})
	s := open(t, filepath.Join(t.TempDir(), "keys.db"), abatebolt.Options{Now: func() time.Time {
		if slow.CompareAndSwap(true, false) {
			close(stuck)
			<-release
		}
		return c.now()
	}})
	b := begin(t, s, "k")
	ctx, cancel := context.WithCancel(t.Context())
	slow.Store(true)
	told := make(chan error)
	r := idempotency.Response{Status: 201, Body: []byte("done")}
	go func() { told <- s.Complete(ctx, "k", b.Token, r, time.Hour) }()
	<-stuck
	cancel()
	if err := <-told; !errors.Is(err, context.Canceled) {
		t.Errorf("the first time: %v", err)
	}
	close(release)
	if err := s.Complete(t.Context(), "k", b.Token, r, time.Hour); err != nil {
		t.Errorf("told again: %v", err)
	}
	if b := begin(t, s, "k"); b.State != idempotency.Replay || string(b.Response.Body) != "done" {
		t.Errorf("the next try: %+v", b)
	}
}
