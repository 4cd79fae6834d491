package abateredis_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abateredis"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
)

// sharing makes a guard of each fleet, all with one name.
func sharing(t testing.TB, p abate.Policy, fleets ...*abateredis.Fleet) []*abate.Guard {
	t.Helper()
	guards := make([]*abate.Guard, len(fleets))
	for i, f := range fleets {
		g, err := abate.New("payment-service", p)
		if err != nil {
			t.Fatal(err)
		}
		f.Share(g)
		guards[i] = g
	}
	return guards
}

func several(t testing.TB, n int, addr string) []*abateredis.Fleet {
	fleets := make([]*abateredis.Fleet, n)
	for i := range fleets {
		fleets[i] = open(t, addr)
	}
	ready(t, n, fleets...)
	return fleets
}

func budgeted() abate.Policy {
	var p abate.Policy
	p.RetryBudget = budget.Config{Ratio: 0.1, Reserve: 10, Window: time.Minute, Fleet: true} // nothing expires in a test
	return p
}

// withdraw takes what a budget gives.
func withdraw(g *abate.Guard) (n int) {
	for g.Budget().Withdraw(core.Now(), budget.Transient) {
		n++
	}
	return n
}

func TestOneReserveForTheFleet(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	everywhere(t, func(t *testing.T, addr string) {
		guards := sharing(t, budgeted(), several(t, 4, addr)...)
		total := 0
		eventually(t, "the reserve is spent", func() bool {
			for _, g := range guards {
				total += withdraw(g)
			}
			return total >= 10
		})
		during(time.Second, func() {
			for _, g := range guards {
				total += withdraw(g)
			}
		})
		if total != 10 {
			t.Errorf("%d retries from one reserve of 10", total)
		}
	})
}

func TestOneInstanceMaySpendWhatTheOthersEarned(t *testing.T) {
	t.Parallel()
	s := start(t)
	guards := sharing(t, budgeted(), several(t, 4, s.Addr())...)
	for _, g := range guards {
		for range 500 {
			g.Budget().Deposit(core.Now())
		}
	}
	total := 0
	eventually(t, "one spends what all earned", func() bool {
		total += withdraw(guards[0])
		return total >= 190
	})
	if total > 210 {
		t.Errorf("%d retries for 2,000 calls and a reserve of 10", total)
	}
}

// Many callers, a Redis that comes and goes, and never more than ratio × first + one reserve.
func TestTheBudgetBoundsTheFleet(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := start(t)
	guards := sharing(t, budgeted(), several(t, 4, s.Addr())...)
	var mu sync.Mutex
	first, extra := 0, 0
	spend := func(d time.Duration) {
		var all sync.WaitGroup
		for _, g := range guards {
			all.Go(func() {
				n, m := 0, 0
				during(d, func() {
					for range 5 {
						g.Budget().Deposit(core.Now())
						n++
					}
					m += withdraw(g)
				})
				mu.Lock()
				defer mu.Unlock()
				first, extra = first+n, extra+m
			})
		}
		all.Wait()
	}
	spend(time.Second)
	before, atFirst := extra, first
	s.Crash()
	spend(2 * time.Second)
	if got, own := extra-before, float64(first-atFirst)/10; float64(got) > own+30 || float64(got) < own/2 {
		t.Errorf("while Redis is away: %d retries, %.0f earned", got, own)
	}
	s.run()
	spend(2 * time.Second)
	if bound := 0.1*float64(first) + 10; float64(extra) > bound || float64(extra) < bound*0.8 {
		t.Errorf("%d retries, at most %.0f", extra, bound)
	}
}

func guarded() abate.Policy {
	p := abate.Policy{}
	// nobody probes meanwhile, however busy the machine is
	p.CircuitBreaker = breaker.Config{FailureThreshold: 5, WaitDurationInOpenState: time.Minute, Fleet: true}
	return p
}

var errDown = errors.New("down")

func try(t testing.TB, g *abate.Guard, err error) error {
	_, got := abate.Do(t.Context(), g, func(context.Context) (int, error) { return 0, err })
	return got
}

func TestOneInstancesFindingOpensTheOthers(t *testing.T) {
	t.Parallel()
	everywhere(t, func(t *testing.T, addr string) {
		guards := sharing(t, guarded(), several(t, 2, addr)...)
		eventually(t, "the other instance opens", func() bool {
			for range 5 { // again, until all listen
				_ = try(t, guards[0], errDown)
			}
			return guards[1].State().Breaker.State == breaker.Open
		})
		if err := try(t, guards[1], nil); !errors.Is(err, abate.ErrCircuitOpen) {
			t.Errorf("%v", err)
		}
	})
}

func TestAnInstanceThatSeesItWorkStaysClosed(t *testing.T) {
	t.Parallel()
	s := start(t)
	guards := sharing(t, guarded(), several(t, 3, s.Addr())...)
	heard := false
	for range 5 {
		_ = try(t, guards[0], errDown)
	}
	work := func() {
		if err := try(t, guards[1], nil); err != nil {
			t.Fatalf("refused: %v", err)
		}
		for range 5 {
			_ = try(t, guards[0], errDown)
		}
		heard = heard || guards[2].State().Breaker.State == breaker.Open
	}
	during(1500*time.Millisecond, work)
	eventually(t, "the third instance, which saw nothing, hears of it", func() bool { work(); return heard })
	if n := guards[2].State().Breaker.Openings; n != 0 {
		t.Errorf("what it was told counts as %d findings of its own", n)
	}
}

func TestAFindingIsHeardAfterRedisCameBack(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	s := start(t)
	fleets := several(t, 2, s.Addr())
	guards := sharing(t, guarded(), fleets...)
	s.Crash()
	away(t, fleets...)
	s.run()
	back(t, fleets...)
	eventually(t, "the other instance opens", func() bool {
		for range 5 {
			_ = try(t, guards[0], errDown)
		}
		return guards[1].State().Breaker.State == breaker.Open
	})
}

func TestRubbishOnTheChannelIsIgnored(t *testing.T) {
	t.Parallel()
	s := start(t)
	fleets := several(t, 1, s.Addr())
	g := sharing(t, guarded(), fleets...)[0]
	c := s.client()
	eventually(t, "it listens", func() bool {
		n, err := c.Publish(t.Context(), "abate:breakers", "x").Result()
		return err == nil && n > 0
	})
	for _, m := range []string{"", " ", "a b c", "a -1 payment-service", "a 99999999999999999999 payment-service",
		"a 1000", "a 1000 ", "a 1000 nobody", "\x00 1000 \xff", abateredis.ID(fleets[0]) + " 50000 payment-service"} {
		if err := c.Publish(t.Context(), "abate:breakers", m).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Publish(t.Context(), "abate:breakers", "somebody 30000 payment-service").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it hears what makes sense", func() bool { return g.State().Breaker.State == breaker.Open })
	if left := g.Breaker().RetryIn(core.Now()); left > 30*time.Second {
		t.Errorf("open for %v", left)
	}
}

func TestGuardsThatShareABudgetHaveOneReserve(t *testing.T) {
	if testing.Short() {
		return // it takes seconds
	}
	t.Parallel()
	everywhere(t, func(t *testing.T, addr string) {
		fleets := several(t, 2, addr)
		guards := sharing(t, budgeted(), fleets...)
		for i, f := range fleets {
			for _, method := range []string{"/Get", "/List", "/Charge"} {
				p := budgeted()
				p.Budget = guards[i].Budget()
				g, err := abate.New("payment-service"+method, p)
				if err != nil {
					t.Fatal(err)
				}
				f.Share(g)
			}
		}
		total := 0
		eventually(t, "the reserve is spent", func() bool {
			for _, g := range guards {
				total += withdraw(g)
			}
			return total >= 10
		})
		during(time.Second, func() {
			for _, g := range guards {
				total += withdraw(g)
			}
		})
		if total != 10 {
			t.Errorf("%d extra attempts of a fleet with a reserve of 10", total)
		}
	})
}
