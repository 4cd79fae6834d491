package abate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/throttle"
)

// What the tests of other libraries ask of a result: it is asked for again, says nothing about the dependency, and is
// there in the end.
func TestAPendingAnswerIsAskedForAgainAndNeutral(t *testing.T) {
	direct := func(answer func() int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) {
			if n := answer(); n < 3 {
				return n, fmt.Errorf("job: %w", abate.ErrPending)
			}
			return 3, nil
		}
	}
	judged := func(answer func() int) func(context.Context) (int, error) {
		return abate.RetryIf(func(context.Context) (int, error) { return answer(), nil }, func(n int) bool { return n < 3 })
	}
	type call = func(context.Context, *abate.Guard, func(context.Context) (int, error)) (int, error)
	for name, do := range map[string]call{
		"Do": abate.Do[int], "DoHedged": abate.DoHedged[int],
		"DoWithFallback": func(ctx context.Context, g *abate.Guard, fn func(context.Context) (int, error)) (int, error) {
			return abate.DoWithFallback(ctx, g, fn, func(_ context.Context, err error) (int, error) { return -1, err })
		},
	} {
		for how, fn := range map[string]func(func() int) func(context.Context) (int, error){
			"ErrPending": direct, "RetryIf": judged,
		} {
			for _, retries := range []int{5, 1, 0} {
				t.Run(fmt.Sprint(name, " ", how, " ", retries), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := abate.Policy{Retry: fixed(100*ms, retries), CircuitBreaker: breaker.Config{FailureThreshold: 1}}
						if name == "DoHedged" {
							p.Hedge = hedge.Config{Delay: time.Second}
						}
						g, n := guard(t, p), 0
						v, err := do(t.Context(), g, fn(func() int { n++; return n }))
						switch want := min(retries+1, 3); {
						case name == "DoWithFallback" && want < 3:
							if v != -1 || !errors.Is(err, abate.ErrPending) {
								t.Error(v, err)
							}
						case v != want || errors.Is(err, abate.ErrPending) != (want < 3):
							t.Errorf("%d, %v; want %d", v, err, want)
						}
						if got := g.State().Breaker; got.State != breaker.Closed {
							t.Errorf("the circuit is %v", got.State)
						}
					})
				})
			}
		}
	}
}

func TestAPendingAnswerIsNeutralForTheGuardAroundItToo(t *testing.T) {
	inner := guard(t, abate.Policy{Retry: fixed(ms, 1)})
	outer := guard(t, abate.Policy{CircuitBreaker: breaker.Config{FailureThreshold: 1}})
	err := abate.DoErr(t.Context(), outer, func(ctx context.Context) error {
		return abate.DoErr(ctx, inner, func(context.Context) error { return abate.ErrPending })
	})
	if !errors.Is(err, abate.ErrPending) || outer.State().Breaker.State != breaker.Closed {
		t.Error(err, outer.State().Breaker.State)
	}
}

func TestAPendingAnswerMayAskForItsOwnDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, n := time.Now(), 0
		p := abate.Policy{Retry: fixed(ms, 3), CircuitBreaker: breaker.Config{FailureThreshold: 1}}
		p.RetryAfterJitter = 1e-9
		g := guard(t, p)
		err := abate.DoErr(t.Context(), g, func(context.Context) error {
			if n++; n == 1 {
				return abate.RetryAfter(abate.ErrPending, 5*time.Second)
			}
			return nil
		})
		if took := time.Since(began).Round(10 * ms); err != nil || took != 5*time.Second ||
			g.State().Breaker.State != breaker.Closed {
			t.Error(err, took, g.State().Breaker.State)
		}
	})
}

func TestAPendingAnswerDrawsFromDeadlineAndBudgetButNotFromTheThrottle(t *testing.T) {
	pending := func(context.Context) error { return abate.ErrPending }
	for _, row := range []struct {
		name   string
		change func(*abate.Policy)
		want   error
	}{
		{"deadline", func(p *abate.Policy) { p.Timeout = 5 * time.Second }, abate.ErrDeadline},
		{"budget", func(p *abate.Policy) {
			p.RetryBudget = budget.Config{Ratio: 0.0001, Reserve: 3}
		}, abate.ErrBudgetExhausted},
		{"throttle", func(p *abate.Policy) { p.Throttle = throttle.Config{K: 1.1} }, abate.ErrAttemptsExhausted},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := abate.Policy{Retry: fixed(time.Second, 50)}
			row.change(&p)
			g := guard(t, p)
			if err := abate.DoErr(t.Context(), g, pending); !errors.Is(err, row.want) || !errors.Is(err, abate.ErrPending) {
				t.Errorf("%s: %v", row.name, err)
			}
			if got := g.State().Throttle.Rejection; got != 0 {
				t.Errorf("%s: %v are refused", row.name, got)
			}
		})
	}
}

func TestDoErrReturnsTheFunctionsError(t *testing.T) {
	g := guard(t, abate.Policy{})
	if err := abate.DoErr(t.Context(), g, func(context.Context) error { return errDown }); err != errDown {
		t.Error(err)
	}
	if allocs := testing.AllocsPerRun(100, func() {
		_ = abate.DoErr(context.Background(), g, func(context.Context) error { return nil })
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestADelayFunctionIsAskedBeforeEachRetryAndCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		p := abate.Policy{Retry: fixed(time.Hour, 4), Rand: func() uint64 { return 7 }}
		p.InitialDelay, p.MaxDelay, p.RetryAfterJitter = 1, 2*time.Second, 1e-9
		p.InitialDelay = time.Second
		delays := []time.Duration{300 * ms, time.Hour, -5, 100 * ms}
		p.Delay = func(retry int, last abate.Outcome, rnd uint64) time.Duration {
			asked = append(asked, fmt.Sprint(retry, last.Class, last.Err, rnd))
			return delays[retry-1]
		}
		var at []time.Duration
		began := time.Now()
		err := abate.DoErr(t.Context(), guard(t, p), func(context.Context) error {
			at = append(at, time.Since(began).Round(10*ms))
			if len(at) == 4 {
				return abate.RetryAfter(errDown, time.Second) // longer than the function's 100 ms
			}
			return errDown
		})
		if want := []time.Duration{0, 300 * ms, 2300 * ms, 2300 * ms, 3300 * ms}; fmt.Sprint(at) != fmt.Sprint(want) ||
			!errors.Is(err, abate.ErrAttemptsExhausted) {
			t.Errorf("attempts at %v, want %v; %v", at, want, err)
		}
		if got, want := strings.Join(asked, "; "), "1failure down 7; 2failure down 7; 3failure down 7; 4overload "+
			"down 7"; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("asked %q, want %q", got, want)
		}
		p.Timeout = time.Second // the deadline holds, before anyone sleeps
		began = time.Now()
		delays[0] = 2 * time.Second
		if err := abate.DoErr(t.Context(), guard(t, p), func(context.Context) error {
			return errDown
		}); !errors.Is(err, abate.ErrDeadline) || time.Since(began) != 0 {
			t.Error(err, time.Since(began))
		}
	})
}

func TestAnAttemptKnowsItselfIfSomebodyHasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, p := range map[string]abate.Policy{"plain": {}, "limited": {AttemptTimeout: time.Minute}} {
			p.Retry = fixed(100*ms, 2)
			ctx := core.WithAttemptInfo(t.Context())
			var got []core.AttemptInfo
			g := guard(t, p)
			abate.DoErr(ctx, g, func(ctx context.Context) error {
				info, ok := core.AttemptOf(context.WithValue(ctx, g, 1))
				if !ok {
					t.Error("nothing known")
				}
				got = append(got, info)
				return errDown
			})
			want := []core.AttemptInfo{info(1, false, 0, nil), info(2, false, 100*ms, errDown), info(3, false, 200*ms, errDown)}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
			abate.DoErr(t.Context(), g, func(ctx context.Context) error {
				if info, ok := core.AttemptOf(ctx); ok {
					t.Errorf("%s: %v, and nobody has asked", what, info)
				}
				return nil
			})
		}
	})
}

func TestAHedgeKnowsThatItIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []core.AttemptInfo
		ctx := abate.WithObserver(core.WithAttemptInfo(t.Context()), abate.ObserverFunc(func(abate.Event) {}))
		abate.DoHedged(ctx, guard(t, abate.Policy{Hedge: hedge.Config{Delay: 100 * ms}}),
			func(ctx context.Context) (int, error) {
				info, _ := core.AttemptOf(ctx)
				mu.Lock()
				got = append(got, info)
				mu.Unlock()
				if info.Hedge {
					return 1, nil
				}
				<-ctx.Done()
				return 0, ctx.Err()
			})
		if want := []core.AttemptInfo{info(1, false, 0, nil), info(2, true, 100*ms, nil)}; fmt.Sprint(got) !=
			fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestAHedgedCallHasAFallback(t *testing.T) {
	declined := errors.New("declined")
	for _, row := range []struct {
		name string
		err  error
		want string
	}{{"works", nil, "own <nil>"}, {"fails", errDown, "instead <nil>"},
		{"answers", abate.Ignore(declined), "own declined"}} {
		synctest.Test(t, func(t *testing.T) {
			g := guard(t, abate.Policy{Hedge: hedge.Config{Delay: 100 * ms}})
			v, err := abate.DoHedgedWithFallback(t.Context(), g, func(ctx context.Context) (string, error) {
				return "own", row.err
			}, func(_ context.Context, err error) (string, error) {
				if !errors.Is(err, errDown) {
					t.Error(err)
				}
				return "instead", nil
			})
			if got := fmt.Sprint(v, " ", err); got != row.want {
				t.Errorf("%s: %q, want %q", row.name, got, row.want)
			}
		})
	}
}

func TestAPolicyThatRetriesIsSafeUnlessDeclinedInWords(t *testing.T) {
	d := abate.DefaultPolicy()
	for name, p := range map[string]abate.Policy{
		"retries": {Retry: abate.Retry{MaxRetries: 3}},
		"hedges":  {Hedge: hedge.Config{Delay: time.Second}},
	} {
		g, err := abate.New("literal", p)
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Describe(); got.RetryBudget != d.RetryBudget.WithDefaults() ||
			got.CircuitBreaker.FailureRateThreshold != d.CircuitBreaker.FailureRateThreshold {
			t.Errorf("%s: %+v, %+v", name, got.RetryBudget, got.CircuitBreaker)
		}
		p.RetryBudget.Disabled, p.CircuitBreaker.Disabled = true, true
		if g, err = abate.New("declined", p); err != nil || g.Budget() != nil || g.Breaker() != nil {
			t.Errorf("%s: declined in words, and there all the same: %v", name, err)
		}
	}
	if g, err := abate.New("zero", abate.Policy{}); err != nil || g.Budget() != nil || g.Breaker() != nil {
		t.Error("the zero Policy is no pass-through", err)
	}
	g, err := abate.New("storm", abate.Policy{Retry: abate.Retry{MaxRetries: 3, Backoff: "none"}})
	if err != nil {
		t.Fatal(err)
	}
	attempts := 0
	for range 1000 {
		abate.DoErr(t.Context(), g, func(context.Context) error { attempts++; return errDown })
	}
	if attempts > 1110 {
		t.Errorf("%d attempts of 1000 calls", attempts)
	}
}

// An extra attempt draws from both budgets or from neither, whichever is empty.
func TestTwoBudgetsAreDrawnFromTogetherOrNotAtAll(t *testing.T) {
	for _, row := range []struct{ own, shared float64 }{{5, 20}, {20, 5}, {5, 0}} {
		for _, kind := range []budget.Kind{budget.Ratio, budget.Tokens} {
			make := func(n float64) budget.Config {
				if kind == budget.Tokens {
					return budget.Config{Kind: kind, MaxTokens: max(n, 1), DepositPerSuccess: 1}
				}
				return budget.Config{Kind: kind, Ratio: 0.0001, Reserve: n}
			}
			shared := budget.New(make(row.shared))
			if kind == budget.Tokens && row.shared == 0 {
				shared.Withdraw(0, budget.Transient)
			}
			p := alone(abate.Policy{Retry: fixed(ms, 1), SharedBudget: shared, RetryBudget: make(row.own)})
			p.Backoff = "none"
			a, b := guard(t, p), guard(t, p)
			ownBefore, sharedBefore := a.Budget().Balance(core.Now())+b.Budget().Balance(core.Now()), shared.Balance(core.Now())
			retries := 0
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					n := 0
					abate.DoErr(t.Context(), []*abate.Guard{a, b}[i%2], func(context.Context) error { n++; return errDown })
					mu.Lock()
					retries += n - 1
					mu.Unlock()
				})
			}
			wg.Wait()
			ownSpent := ownBefore - a.Budget().Balance(core.Now()) - b.Budget().Balance(core.Now())
			if want := int(min(2*row.own, row.shared)); retries != want {
				t.Errorf("%+v %s: %d retries, want %d", row, kind, retries, want)
			}
			if sharedSpent := sharedBefore - shared.Balance(core.Now()); math.Abs(ownSpent-float64(retries)) > 0.1 ||
				math.Abs(sharedSpent-float64(retries)) > 0.1 {
				t.Errorf("%+v %s: %v drawn from the guards' own, %v from the shared, for %d retries", row, kind, ownSpent,
					sharedSpent, retries)
			}
		}
	}
}

// So does a call that somebody above repeats: from both or from neither. It deposits in none, and gives its turn of the
// call tree back if a budget refuses it.
func TestARepeatFromAboveDrawsFromBothBudgetsOrFromNeither(t *testing.T) {
	for _, row := range []struct{ own, shared float64 }{{5, 20}, {20, 5}, {0, 5}, {5, 0}} {
		shared := budget.New(budget.Config{Ratio: 0.5, Reserve: row.shared})
		p := alone(abate.Policy{SharedBudget: shared, RetryBudget: budget.Config{Ratio: 0.5, Reserve: row.own}})
		g, tree := guard(t, p), core.NewCallTree(core.Allowance{Left: 50})
		ownBefore, sharedBefore, sent := g.Budget().Balance(0), shared.Balance(0), 0
		for range 30 {
			var c core.Call
			c.Under(tree)
			c.Repeated()
			step := g.Begin(&c, 0, core.NoDeadline)
			switch {
			case step.Action == core.Attempt:
				sent++
				c.AttemptDone(0, 0, abate.Outcome{Class: abate.Failure})
			case !errors.Is(step.Err, abate.ErrBudgetExhausted):
				t.Fatalf("%+v", step)
			}
		}
		want := int(min(row.own, row.shared))
		if own, both := ownBefore-g.Budget().Balance(0), sharedBefore-shared.Balance(0); sent != want ||
			own != float64(want) || both != float64(want) {
			t.Errorf("%+v: %d were sent, %v and %v drawn, want %d of all", row, sent, own, both, want)
		}
		if a, _ := tree.Allowance(); a.Left != 50-want {
			t.Errorf("%+v: the call tree has %d left of 50", row, a.Left)
		}
	}
}

func TestGuardsForgetNobodyWhoOwes(t *testing.T) {
	p := abate.Policy{Retry: abate.Retry{MaxRetries: 1, Backoff: "none"},
		RetryBudget: budget.Config{Ratio: 0.1, Reserve: 3}, CircuitBreaker: staysOpen}
	guards, err := abate.NewGuards[int]("shard", p, 3)
	if err != nil {
		t.Fatal(err)
	}
	ok := func(context.Context) error { return nil }
	spent, open, busy := guards.For(1), guards.For(2), guards.For(3)
	abate.DoErr(t.Context(), spent, func(context.Context) error { return errDown })
	for range 5 {
		abate.DoErr(t.Context(), open, func(context.Context) error { return abate.Permanent(errDown) })
	}
	abate.DoErr(t.Context(), busy, func(ctx context.Context) error {
		for key := 10; key < 40; key++ { // everybody owes: these share one
			if g := guards.For(key); g.Name() != "shard/*" || g != guards.For(99) {
				t.Errorf("key %d has %q", key, g.Name())
			}
		}
		return nil
	})
	if guards.For(1) != spent || guards.For(2) != open || guards.Len() != 3 {
		t.Error("a debt was forgotten")
	}
	other := guards.For(50) // busy is at rest, and owes nothing
	if other.Name() != "shard/50" || guards.Len() != 3 || guards.For(1) != spent || guards.For(2) != open {
		t.Errorf("%q", other.Name())
	}
	if guards.For(50) != other {
		t.Error("another guard for the same key")
	}
	p.MaxRetries = 0
	if err := guards.Update(p); err != nil || other.Describe().MaxRetries != 0 || guards.For(1) != spent ||
		spent.Describe().MaxRetries != 0 || guards.For(70).Describe().MaxRetries != 0 {
		t.Error("not reloaded", err)
	}
	if p.MaxRetries = -1; guards.Update(p) == nil || other.Describe().MaxRetries != 0 {
		t.Error("an invalid policy got in")
	}
	if err := abate.DoErr(t.Context(), other, ok); err != nil {
		t.Error(err)
	}
	if _, err := abate.NewGuards[string]("x", p, 0); err == nil {
		t.Error("no places, and no error")
	}
}

// Only calls refill a reserve, so the debt of a key that nobody uses any more would keep its place for ever.
func TestAGuardInDebtKeepsItsPlaceForAMinuteAndItsBudgetIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := abate.Policy{
			Retry: abate.Retry{MaxRetries: 1, Backoff: "none"}, RetryBudget: budget.Config{Ratio: 0.0001, Reserve: 3},
		}
		p.CircuitBreaker.Disabled = true
		guards, _ := abate.NewGuards[int]("shard", p, 2)
		fail := func(key int) (attempts int) {
			for range 10 {
				abate.DoErr(t.Context(), guards.For(key), func(context.Context) error { attempts++; return errDown })
			}
			return attempts
		}
		if a, b := fail(1), fail(2); a != 13 || b != 13 {
			t.Fatal(a, b)
		}
		time.Sleep(time.Minute - ms)
		if got := guards.For(3).Name(); got != "shard/*" {
			t.Errorf("%s: a debt was forgotten within a minute", got)
		}
		time.Sleep(ms)
		extra := 0
		for key := 3; key < 20; key++ {
			if got := guards.For(key).Name(); got != fmt.Sprint("shard/", key) {
				t.Errorf("key %d has %q", key, got)
			}
			extra += fail(key) - 10
			time.Sleep(time.Minute)
		}
		if extra != 3 || guards.Len() != 2 {
			t.Errorf("%d extra attempts of forgotten places, want the overflow's reserve of 3; %d guards", extra, guards.Len())
		}
		p.RetryBudget.Reserve = 50
		if err := guards.Update(p); err != nil || fail(19) != 10 || fail(18) != 10 {
			t.Error("a reload filled the budgets", err)
		}
	})
}

func TestAnObserverThatPanicsIsLoggedForGuardsToo(t *testing.T) {
	logged := panicsLogged(t)
	guards, _ := abate.NewGuards[int]("shard", abate.Policy{Observer: abate.ObserverFunc(func(abate.Event) {
		panic("observer")
	})}, 1)
	if err := abate.DoErr(t.Context(), guards.For(1), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if got := logged.String(); !strings.Contains(got, "shard/1") {
		t.Errorf("%q", got)
	}
}

// 1,100 failing tenants get what 100 guards and an overflow may add, and no more.
func TestFailingKeysGetNoFreshBudgets(t *testing.T) {
	p := abate.Policy{Retry: abate.Retry{MaxRetries: 3, Backoff: "none"}, CircuitBreaker: breaker.Config{Disabled: true}}
	guards, _ := abate.NewGuards[int]("tenant", p, 100)
	attempts, calls := 0, 0
	for range 10 {
		for tenant := range 1100 {
			calls++
			abate.DoErr(t.Context(), guards.For(tenant), func(context.Context) error { attempts++; return errDown })
		}
	}
	if most := calls + calls/10 + 101*10; attempts > most {
		t.Errorf("%d attempts of %d calls, want at most %d", attempts, calls, most)
	}
}

var staysOpen = breaker.Config{
	FailureThreshold: 5, WaitDurationInOpenState: time.Hour, MaxWaitDurationInOpenState: time.Hour,
}

// No lock is held when an observer is told: it may ask for guards, and update them.
func TestAnObserverMayUseTheGuardsThatItIsToldOf(t *testing.T) {
	var guards *abate.Guards[string]
	p := abate.DefaultPolicy()
	changes := 0
	p.Observer = abate.ObserverFunc(func(e abate.Event) {
		if e.Kind != core.PolicyChanged {
			return
		}
		guards.For("another")
		if changes++; changes == 1 {
			p.MaxRetries = 2
			if err := guards.Update(p); err != nil {
				t.Error(err)
			}
		}
	})
	guards, err := abate.NewGuards[string]("x", p, 10)
	if err != nil {
		t.Fatal(err)
	}
	kept := guards.For("one")
	p.MaxRetries = 1
	if err := guards.Update(p); err != nil {
		t.Fatal(err)
	}
	for _, g := range []*abate.Guard{kept, guards.For("another"), guards.For("new")} {
		if n := g.Describe().MaxRetries; n != 2 { // of two Updates the later one counts, for all
			t.Errorf("%s: %d retries", g.Name(), n)
		}
	}
}

func TestAKeyThatIsNotEqualToItselfHasTheOverflow(t *testing.T) {
	guards, err := abate.NewGuards[float64]("x", abate.DefaultPolicy(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := guards.For(math.NaN()), guards.For(math.NaN()); a != b || guards.Len() != 0 {
		t.Errorf("%q and %q, %d guards", a.Name(), b.Name(), guards.Len())
	}
}

// info is what an attempt of payment-service is told.
func info(number int, hedge bool, elapsed time.Duration, err error) core.AttemptInfo {
	return core.AttemptInfo{Guard: "payment-service", Number: number, Hedge: hedge, Elapsed: elapsed, Err: err}
}
