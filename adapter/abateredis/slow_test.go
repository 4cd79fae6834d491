package abateredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/idempotency"
)

// Requests that come together for a key nobody knows, to a Redis that is slow but in time: none is refused while there
// are tokens, and none waits for one round trip after the other.
func TestASlowRedisRefusesNothing(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	s := start(t)
	for _, c := range []struct {
		name           string
		delay, timeout time.Duration
	}{{"in time", 40 * time.Millisecond, 4 * time.Second}, {"just in time", 930 * time.Millisecond, 2 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			line := newWire(t, s.Addr())
			w := &watch{}
			f := open(t, line.addr(), w.into, func(o *abateredis.Config) { o.Timeout = c.timeout })
			ready(t, 1, f)
			line.slow(c.delay)
			l := f.Limiter(c.name, per(1, time.Hour, 100_000))
			var refused, longest atomic.Int64
			var all sync.WaitGroup
			for key := range 4 {
				for range 300 {
					all.Go(func() {
						for range 3 {
							began := time.Now()
							if !take(l, fmt.Sprint(key), 1).Allowed {
								refused.Add(1)
							}
							longest.Store(max(longest.Load(), int64(time.Since(began))))
						}
					})
				}
			}
			all.Wait()
			if refused.Load() > 0 {
				t.Errorf("%d refused, though there are tokens", refused.Load())
			}
			if most := 5 * c.timeout; time.Duration(longest.Load()) > most { // far more than that, for machines that are busy
				t.Errorf("one was held up for %v", time.Duration(longest.Load()))
			}
		})
	}
}

// What waits for a round trip that has not begun when the fleet is closed does not wait for ever.
func TestClosingLetsGoOfThoseThatWait(t *testing.T) {
	s := start(t)
	line := newWire(t, s.Addr())
	f := open(t, line.addr(), func(c *abateredis.Config) { c.Timeout = time.Second })
	ready(t, 1, f)
	l := f.Limiter("api", per(1, time.Hour, 100_000))
	keys := []string{"first", "second"}
	for _, key := range keys { // both get a lease
		eventually(t, "a lease", func() bool { take(l, key, 100); _, ok := l.TryTake(core.Now(), key, 100); return ok })
	}
	line.sever(true)
	waiting := make(chan struct{})
	var all sync.WaitGroup
	for _, key := range keys { // one is asked about, the other is next
		for ok := true; ok; {
			_, ok = l.TryTake(core.Now(), key, 1)
		}
		all.Go(func() { waiting <- struct{}{}; l.Take(context.Background(), key, 1) })
		<-waiting
	}
	f.Close()
	gone := make(chan struct{})
	go func() { all.Wait(); close(gone) }()
	eventually(t, "nobody waits", func() bool {
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

// ledger drives the script of the budget on a clock of the test's: one token is earned each second.
type ledger struct {
	t      *testing.T
	redis  *miniredis.Miniredis
	client *redis.Client
	window time.Duration
	now    time.Time
}

func newLedger(t *testing.T, window time.Duration) *ledger {
	m := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{
		Addr: m.Addr(), MaxRetries: -1, Protocol: 2, DisableIdentity: true, DialTimeout: patience, ReadTimeout: patience,
	})
	t.Cleanup(func() { _ = c.Close() })
	return &ledger{t, m, c, window, time.Unix(1_800_000_000, 0)}
}

func (l *ledger) exchange(earned, want int) int {
	l.redis.SetTime(l.now)
	const reserve = 2
	got, err := l.client.Eval(l.t.Context(), abateredis.BudgetText, []string{"k"}, earned, 0, want, reserve, reserve,
		l.window.Microseconds()).Int()
	if err != nil {
		l.t.Fatal(err)
	}
	return got
}

func (l *ledger) earn(seconds int) {
	for range seconds {
		l.now = l.now.Add(time.Second)
		l.exchange(1, 0)
	}
}

func TestWhatTheFleetEarnedExpiresAlsoAfterTheClockWentBack(t *testing.T) {
	for _, jump := range []time.Duration{0, -50 * time.Millisecond, -time.Hour, time.Hour} {
		l := newLedger(t, 10*time.Second)
		l.earn(20)
		l.now = l.now.Add(jump)
		l.earn(60)
		if got := l.exchange(0, 1000); got > 12 || got < 10 {
			t.Errorf("jump of %v: %d, want the reserve of 2 and what 10 s earned", jump, got)
		}
	}
}

func TestAWindowThatTenDoesNotDivideKeepsWhatWasEarned(t *testing.T) {
	l := newLedger(t, 10*time.Second+3*time.Microsecond)
	l.earn(20)
	if got := l.exchange(0, 1000); got > 12 || got < 10 {
		t.Errorf("%d, want the reserve of 2 and what 10 s earned", got)
	}
}

func TestAnotherTLSConfigIsAnotherWay(t *testing.T) {
	plain := abateredis.Config{Addresses: []string{"a:1"}, TLS: true}
	one, two := plain, plain
	one.TLSConfig, two.TLSConfig = &tls.Config{ServerName: "a"}, &tls.Config{ServerName: "b"}
	if abateredis.SameWay(one, two) || abateredis.SameWay(plain, one) || !abateredis.SameWay(plain, plain) ||
		!abateredis.SameWay(one, one) {
		t.Error("a change of the TLS configuration makes no difference, or no change does")
	}
}

// What a holder of a key tells of has happened, and nobody gets an answer before Redis has confirmed it: neither the
// breaker in front of Redis nor the short time that others have may refuse it.
func TestAStutterOfRedisDelaysTheEndOfATryAndDoesNotRefuseIt(t *testing.T) {
	s := start(t)
	line := newWire(t, s.Addr())
	f := open(t, line.addr(), func(c *abateredis.Config) { c.Timeout = 5 * time.Millisecond })
	store := f.Store(1000)
	var held [4]idempotency.Begun
	var keys [4]string
	for i, n := 0, 0; i < len(held); {
		keys[i] = fmt.Sprint(n) // another one if the answer was lost
		eventually(t, "a key", func() (ok bool) {
			var err error
			held[i], err = store.Begin(t.Context(), keys[i], fp, time.Hour)
			return err == nil
		})
		if n++; held[i].State == idempotency.Run {
			i++
		}
	}
	line.slow(20 * time.Millisecond)
	eventually(t, "Redis counts as away", func() bool {
		_, err := store.Begin(t.Context(), "other", fp, time.Hour)
		return err != nil && f.State().Away()
	})
	renew := func(i int) error { return store.Renew(t.Context(), keys[i], held[i].Token, time.Hour) }
	complete := func(i int) error {
		return store.Complete(t.Context(), keys[i], held[i].Token, idempotency.Response{Status: 201}, time.Hour)
	}
	fail := func(i int) error { return store.Fail(t.Context(), keys[i], held[i].Token) }
	restore := func(i int) error { return store.Restore(t.Context(), keys[i], fp, held[i], time.Hour) }
	for i, end := range []func(int) error{renew, complete, fail, restore} {
		eventually(t, fmt.Sprint("word of step ", i), func() bool {
			err := end(i)
			return err == nil || i == 2 && errors.Is(err, idempotency.ErrLost) // told before
		})
	}
}
