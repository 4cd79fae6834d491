package balance_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/balance"
)

// race runs f in goroutines that begin together.
func race(goroutines int, f func(g int)) {
	var ready, wg sync.WaitGroup
	ready.Add(goroutines)
	for g := range goroutines {
		wg.Go(func() {
			ready.Done()
			ready.Wait()
			f(g)
		})
	}
	wg.Wait()
}

// All endpoints but the last fail, and time goes on, so that endpoints come back and are ejected all the while.
func TestTheCapHoldsUnderRaces(t *testing.T) {
	for _, tt := range []struct {
		n, least int // endpoints, and how many are always in the choice
		share    float64
	}{{1, 1, 1}, {2, 1, 1}, {3, 2, 0.5}, {8, 1, 1}, {16, 12, 0.25}} {
		b := balance.New(balance.Config{ConsecutiveFailures: 2, BaseEjectionTime: 10 * time.Millisecond,
			MaxEjectionTime: 20 * time.Millisecond, MaxEjectionShare: tt.share}, tt.n)
		var clock atomic.Int64
		fewest, most := [6]int{}, [6]int{}
		race(len(fewest), func(g int) {
			rnd := rand.New(rand.NewPCG(uint64(g), 0))
			fewest[g] = tt.n
			for range 20_000 {
				now := time.Duration(clock.Add(int64(rnd.IntN(10_000))))
				i, r := b.Pick(now, rnd.Uint64(), rnd.IntN(tt.n+1)-1), balance.Failure
				if i == tt.n-1 {
					r = balance.Success
				}
				b.Done(i, now, r)
				fewest[g], most[g] = min(fewest[g], b.In()), max(most[g], b.In())
			}
		})
		if got := slices.Min(fewest[:]); got != tt.least {
			t.Errorf("share %v: only %d of %d were in the choice, want %d", tt.share, got, tt.n, tt.least)
		}
		if tt.n > 1 && slices.Max(most[:]) <= tt.least {
			t.Errorf("%d endpoints: none ever came back", tt.n)
		}
		for i := range tt.n {
			if got := b.Endpoint(i, 0); got.Pending != 0 {
				t.Errorf("endpoint %d of %d: %+v at the end", i, tt.n, got)
			}
		}
	}
}

// Results of several goroutines are one row. The only endpoint is never ejected, so the row has no end.
func TestConcurrentAttemptsAreEachCountedOnce(t *testing.T) {
	const each, goroutines = 400_000, 4
	b := balance.New(three, 1)
	race(goroutines, func(int) {
		for range each {
			b.Done(b.Pick(s, 0, -1), s, balance.Failure)
		}
	})
	if got, want := b.Endpoint(0, s), (balance.EndpointState{ConsecutiveFailures: each * goroutines}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Many timeouts at once are one ejection, however many reach the threshold together.
func TestFailuresAtTheSameTimeEjectOnce(t *testing.T) {
	for range 200 {
		b := balance.New(balance.Config{ConsecutiveFailures: 1, MaxEjectionShare: 1}, 3)
		load(b, []int{1000, 0, 0})
		race(4, func(int) {
			for range 250 {
				b.Done(0, s, balance.Failure)
			}
		})
		want := balance.EndpointState{Ejected: true, EjectedUntil: 11 * s, Ejections: 1, Multiplier: 1}
		if got := b.Endpoint(0, s); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// An endpoint comes back once, even if many see its time come.
func TestAReturnThatManySeeIsOneReturn(t *testing.T) {
	for range 200 {
		b := balance.New(balance.Config{ConsecutiveFailures: 3, MaxEjectionShare: 1}, 2)
		attempts(t, b, 0, 1, "FFF")
		var failed atomic.Int64
		race(4, func(g int) {
			for n := range uint64(50) {
				i := b.Pick(10*s, n<<59, -1)
				if i == 1 && failed.Add(1) <= 2 {
					b.Done(i, 10*s, balance.Failure)
				} else {
					b.Done(i, 10*s, balance.Neutral)
				}
			}
		})
		if got := b.Endpoint(1, 10*s); got.Ejected || got.ConsecutiveFailures != 2 || b.In() != 2 {
			t.Fatalf("%+v, %d in the choice", got, b.In())
		}
	}
}

// A reload takes over from a balancer that is in use. What it takes over is within its own limits.
func TestReloadsUnderLoad(t *testing.T) {
	c := balance.Config{ConsecutiveFailures: 2, BaseEjectionTime: 10 * time.Millisecond, MaxEjectionShare: 0.5}
	var current atomic.Pointer[balance.Balancer]
	current.Store(balance.New(c, 8))
	var clock, working atomic.Int64
	working.Store(3)
	race(4, func(g int) {
		rnd := rand.New(rand.NewPCG(uint64(g), 7))
		if g == 0 {
			for working.Load() > 0 {
				next := balance.New(c, 8)
				next.Carry(current.Load(), rnd.Perm(9)[:8])
				if in := next.In(); in < 4 {
					t.Errorf("only %d of 8 in the choice after a reload", in)
				}
				current.Store(next)
			}
			return
		}
		for range 20_000 {
			b, now := current.Load(), time.Duration(clock.Add(int64(rnd.IntN(10_000))))
			i := b.Pick(now, rnd.Uint64(), -1)
			b.Endpoint(i, now)
			b.Done(i, now, []balance.Result{balance.Failure, balance.Failure, balance.Success, balance.Neutral}[rnd.IntN(4)])
		}
		working.Add(-1)
	})
}
