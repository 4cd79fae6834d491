package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

// take withdraws until the budget says no, at most limit times.
func take(b *budget.Budget, now time.Duration, c budget.Cost, limit int) int {
	for n := range limit {
		if !b.Withdraw(now, c) {
			return n
		}
	}
	return limit
}

func deposit(b *budget.Budget, now time.Duration, n int) {
	for range n {
		b.Deposit(now)
	}
}

func TestTheFirstRetryIsNotFree(t *testing.T) {
	for _, c := range []budget.Config{
		{Ratio: 0.1},
		{Kind: budget.Adaptive},
		{Ratio: 0.1, Reserve: 10, Clients: 1000}, // a share of 0.01
		{Kind: budget.Tokens, MaxTokens: 10, RefillPerSecond: 1000, Clients: 1000},
	} {
		b := budget.New(c)
		b.Deposit(3 * time.Hour) // which is no time to refill: the origin is arbitrary
		if b.Withdraw(3*time.Hour, budget.Transient) {
			t.Errorf("%+v: one call paid for a retry", c)
		}
	}
}

func TestRatiosAreExact(t *testing.T) {
	for _, tt := range []struct {
		ratio float64
		first int
		want  int
	}{
		{0.1, 1000, 100}, {0.15, 1000, 150}, {0.29, 100, 29}, {0.3, 1000, 300}, {0.4, 1000, 400},
		{0.6, 1000, 600}, {0.07, 100, 7}, {0.57, 100, 57}, {0.0157, 10000, 157}, {1, 1000, 1000}, {0.0001, 10000, 1},
		{0.0001, 9999, 0},
		{1. / 3, 3000, 999}, // rounded down, never up
	} {
		b := budget.New(budget.Config{Ratio: tt.ratio})
		deposit(b, 0, tt.first)
		if got := take(b, 0, budget.Transient, tt.first+1); got != tt.want {
			t.Errorf("ratio %v: %d first attempts earned %d, want %d", tt.ratio, tt.first, got, tt.want)
		}
	}
}

func TestOneCallAMinuteEarnsOneRetryInTen(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1})
	var at []int
	for minute := range 60 {
		now := time.Duration(minute) * time.Minute
		b.Deposit(now)
		at = append(at, take(b, now, budget.Transient, 3))
	}
	for minute, got := range at {
		want := 0
		if (minute+1)%10 == 0 {
			want = 1
		}
		if got != want {
			t.Errorf("call %d got %d retries, want %d", minute+1, got, want)
		}
	}
}

func TestAnOutageDrawsTheReserveOnce(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 10})
	if got := take(b, 0, budget.Transient, 100); got != 10 {
		t.Fatalf("the reserve gave %d", got)
	}
	for hour := 1; hour < 10; hour++ {
		if b.Withdraw(time.Duration(hour)*time.Hour, budget.Transient) {
			t.Fatalf("time alone refilled the reserve after %d h", hour)
		}
	}
	now := 10 * time.Hour
	for range 2000 { // 200 tokens, a call per second: most of them expire
		now += time.Second
		b.Deposit(now)
	}
	if got := take(b, now+time.Hour, budget.Transient, 1000); got != 10 {
		t.Errorf("after deposits and an idle hour %d are there, want the reserve of 10", got)
	}
}

func TestAnUnusedDepositLivesBetweenNineTenthsAndOneWindow(t *testing.T) {
	for _, at := range []time.Duration{
		0, 1, 500 * time.Millisecond, 999 * time.Millisecond, -3500 * time.Millisecond, 77 * time.Hour,
	} {
		b := budget.New(budget.Config{Ratio: 1, Window: 10 * time.Second})
		deposit(b, at, 50)
		if got := b.Balance(at + 9*time.Second - 1); got != 50 {
			t.Errorf("deposited at %v: %v left just before 0.9 windows, want 50", at, got)
		}
		if got := b.Balance(at + 10*time.Second); got != 1 { // one retry's cost never expires
			t.Errorf("deposited at %v: %v left after a window, want 1", at, got)
		}
	}
}

func TestIdleForHoursThenABurst(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 10})
	deposit(b, 0, 100_000)
	now := 7 * time.Hour
	deposit(b, now, 1000) // 100
	if got := take(b, now, budget.Transient, 100_000); got != 110 {
		t.Errorf("the burst got %d extra attempts, want its own 100 and the reserve", got)
	}
}

func TestEachInstanceGetsItsShareOfTheReserve(t *testing.T) {
	total := 0
	for range 50 {
		total += take(budget.New(budget.Config{Ratio: 0.1, Reserve: 100, Clients: 50}), 0, budget.Transient, 1000)
	}
	if total != 100 {
		t.Errorf("50 instances drew %d out of a reserve of 100", total)
	}
	// A share below one retry is no retry; 1,000 instances do not have 1,000 of them.
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 10, Clients: 1000})
	deposit(b, 0, 10)
	if got := b.Balance(0); got != 1.01 {
		t.Errorf("balance %v, want the share of 0.01 and one earned retry", got)
	}
}

func TestCostDependsOnWhatTheAttemptFollows(t *testing.T) {
	for _, c := range []budget.Config{
		{Ratio: 0.1, Reserve: 100, TransientCost: 14, OverloadCost: 5},
		{Kind: budget.Tokens, MaxTokens: 100, TransientCost: 14, OverloadCost: 5},
		{Kind: budget.Tokens, MaxTokens: 500, CostPerRetry: 5, TransientCost: 14, OverloadCost: 5},
	} {
		for cost, want := range map[budget.Cost]int{budget.Transient: 7, budget.Overload: 20, budget.Hedge: 7, 200: 7} {
			if got := take(budget.New(c), 0, cost, 1000); got != want {
				t.Errorf("%s: cost class %d: %d attempts, want %d", c.Kind, cost, got, want)
			}
		}
	}
	// Whoever needs more than one token can save up for it, with no reserve and one call an hour.
	b := budget.New(budget.Config{Ratio: 0.5, TransientCost: 3})
	got := 0
	for hour := range 60 {
		b.Deposit(time.Duration(hour) * time.Hour)
		got += take(b, time.Duration(hour)*time.Hour, budget.Transient, 10)
	}
	if got != 10 {
		t.Errorf("60 calls at 0.5 earned %d retries of cost 3, want 10", got)
	}
}

func TestTimeThatRunsBackwardsCreatesNothing(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1, Reserve: 5, Window: time.Second})
	total := 0
	for i := range 2000 {
		now := time.Duration(i%20) * 10 * time.Second // forwards, and back again by 190 s
		b.Deposit(now)
		total += take(b, now, budget.Transient, 3)
	}
	if total > 205 {
		t.Errorf("%d extra attempts for 2,000 first ones", total)
	}
	tokens := budget.New(budget.Config{Kind: budget.Tokens, MaxTokens: 5, RefillPerSecond: 1})
	total = 0
	for i := range 2000 {
		total += take(tokens, time.Duration(i%20)*10*time.Second, budget.Transient, 1000)
	}
	if total > 5+190 {
		t.Errorf("%d tokens came out of a bucket that earned 195", total)
	}
}

func TestTimeThatRunsBackwardsExpiresNothing(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 1, Window: 10 * time.Second})
	deposit(b, 5*time.Second, 50)
	for range 5 {
		b.Balance(time.Second)
		b.Balance(5 * time.Second)
	}
	if got := b.Balance(13 * time.Second); got != 50 {
		t.Errorf("balance %v after 8 s, want 50", got)
	}
}

func TestALongTimeRefillsABucket(t *testing.T) {
	b := budget.New(budget.Config{Kind: budget.Tokens, MaxTokens: 2, RefillPerSecond: 1})
	take(b, math.MinInt64, budget.Transient, 3)
	if got := b.Balance(math.MaxInt64); got != 2 {
		t.Errorf("balance %v after 584 years, want 2", got)
	}
}

func TestExtremeTimes(t *testing.T) {
	for _, c := range []budget.Config{
		{Ratio: 0.1, Reserve: 2}, {Kind: budget.Adaptive, Reserve: 2, Window: time.Hour},
		{Kind: budget.Tokens, MaxTokens: 2, RefillPerSecond: 1e6},
	} {
		b := budget.New(c)
		for _, now := range []time.Duration{
			math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64, 0, math.MinInt64,
		} {
			b.Deposit(now)
			b.Result(now, true)
			b.Reconfigure(now, c)
			take(b, now, budget.Transient, 3)
			if got := b.Balance(now); !(got >= 0 && got <= 3) {
				t.Errorf("%s: balance %v at %d", c.Kind, got, now)
			}
		}
	}
}

func TestValuesOutOfRangeAreMovedToTheNearestEnd(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		c    budget.Config
		like budget.Config
	}{
		{budget.Config{Ratio: 60}, budget.Config{Ratio: 1}},
		{budget.Config{Ratio: -1}, budget.Config{Ratio: 0.0001}},
		{budget.Config{Ratio: nan, Reserve: nan}, budget.Config{Ratio: 0.0001}},
		{budget.Config{Ratio: math.Inf(1), Reserve: math.Inf(1)}, budget.Config{Ratio: 1, Reserve: 1e6}},
		{budget.Config{Ratio: 1, Reserve: -5, Clients: -3, Window: -1}, budget.Config{Ratio: 1, Window: time.Second}},
		{budget.Config{Ratio: 1, Reserve: 10, TransientCost: 0.01}, budget.Config{Ratio: 1, Reserve: 10}},
		{budget.Config{Kind: "rato", Ratio: 0.5}, budget.Config{Ratio: 0.5}},
		{budget.Config{Kind: budget.Adaptive, MinRatio: 0.9, MaxRatio: 0.3}, budget.Config{
			Kind: budget.Adaptive, MinRatio: 0.3, MaxRatio: 0.3,
		}},
		{budget.Config{Kind: budget.Tokens, MaxTokens: 1e12}, budget.Config{Kind: budget.Tokens, MaxTokens: 1e6}},
		{budget.Config{Kind: budget.Tokens, RefillPerSecond: -4}, budget.Config{Kind: budget.Tokens}},
	} {
		got, want := budget.New(tt.c), budget.New(tt.like)
		for _, b := range []*budget.Budget{got, want} {
			take(b, 0, budget.Transient, 2)
			deposit(b, 0, 20000)
			b.Result(0, true)
		}
		for _, now := range []time.Duration{0, 2 * time.Second, time.Hour} {
			if g, w := got.Balance(now), want.Balance(now); g != w {
				t.Errorf("%+v: balance %v after %v, want %v as for %+v", tt.c, g, now, w, tt.like)
			}
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		c, want budget.Config
		on      bool
	}{
		{"zero is off", budget.Config{}, budget.Config{}, false},
		{"a ratio is enough", budget.Config{Ratio: 0.2}, budget.Config{
			Kind: "ratio", Ratio: 0.2, Window: 10 * time.Second, Clients: 1, TransientCost: 1, OverloadCost: 1,
		}, true},
		{"zero reserve stays zero", budget.Config{Kind: "ratio"}, budget.Config{
			Kind: "ratio", Ratio: 0.1, Window: 10 * time.Second, Clients: 1, TransientCost: 1, OverloadCost: 1,
		}, true},
		{"adaptive", budget.Config{Kind: "adaptive"}, budget.Config{
			Kind: "adaptive", MinRatio: 0.02, MaxRatio: 0.2, Window: 10 * time.Second, Clients: 1, TransientCost: 1,
			OverloadCost: 1,
		}, true},
		{"adaptive above the default", budget.Config{Kind: "adaptive", MinRatio: 0.5}, budget.Config{
			Kind: "adaptive", MinRatio: 0.5, MaxRatio: 0.5, Window: 10 * time.Second, Clients: 1, TransientCost: 1,
			OverloadCost: 1,
		}, true},
		{"adaptive below the default", budget.Config{Kind: "adaptive", MaxRatio: 0.01}, budget.Config{
			Kind: "adaptive", MinRatio: 0.01, MaxRatio: 0.01, Window: 10 * time.Second, Clients: 1, TransientCost: 1,
			OverloadCost: 1,
		}, true},
		{"tokens", budget.Config{Kind: "tokens"}, budget.Config{
			Kind: "tokens", MaxTokens: 10, CostPerRetry: 1, DepositPerSuccess: 0.1, Clients: 1, TransientCost: 1,
			OverloadCost: 1,
		}, true},
		{"tokens filled by time", budget.Config{Kind: "tokens", RefillPerSecond: 1}, budget.Config{
			Kind: "tokens", MaxTokens: 10, CostPerRetry: 1, RefillPerSecond: 1, Clients: 1, TransientCost: 1, OverloadCost: 1,
		}, true},
		{"disabled", budget.Config{Disabled: true, Ratio: 0.2}, budget.Config{
			Disabled: true, Kind: "ratio", Ratio: 0.2, Window: 10 * time.Second, Clients: 1, TransientCost: 1, OverloadCost: 1,
		}, false},
	} {
		got := tt.c.WithDefaults()
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if again := got.WithDefaults(); again != got {
			t.Errorf("%s: twice gives %+v", tt.name, again)
		}
		if tt.c.Enabled() != tt.on || got.Enabled() != tt.on {
			t.Errorf("%s: enabled %v, with defaults %v, want %v", tt.name, tt.c.Enabled(), got.Enabled(), tt.on)
		}
	}
}

func TestABudgetThatIsOffLimitsNothing(t *testing.T) {
	for _, c := range []budget.Config{{}, {Disabled: true, Ratio: 0.1}} {
		b := budget.New(c)
		b.Deposit(0)
		b.Result(0, true)
		if got := take(b, 0, budget.Transient, 1000); got != 1000 {
			t.Errorf("%d of 1,000 were allowed", got)
		}
		if got := b.Balance(0); !math.IsInf(got, 1) {
			t.Errorf("balance %v", got)
		}
	}
}

func TestCountersMayWrap(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 1, Reserve: 10, Window: time.Second})
	budget.ShiftCounters(b, math.MaxInt64-12_000_000)
	tr := trace{}
	for i := range 200 {
		now := time.Duration(i) * 97 * time.Millisecond
		b.Deposit(now)
		tr.add(now, 1, int64(take(b, now, budget.Transient, 3)))
	}
	tr.check(t, 1, 10, time.Second, 10)
	if _, extra := tr.totals(); extra != 210 {
		t.Errorf("%d extra attempts, want 210", extra)
	}
}

func TestNothingAllocates(t *testing.T) {
	for _, kind := range []budget.Kind{budget.Ratio, budget.Adaptive, budget.Tokens} {
		b := budget.New(budget.Config{Kind: kind})
		now := time.Duration(0)
		if n := testing.AllocsPerRun(1000, func() {
			now += 31 * time.Millisecond
			b.Deposit(now)
			b.Withdraw(now, budget.Transient)
			b.Result(now, true)
			b.Balance(now)
		}); n != 0 {
			t.Errorf("%s: %v allocations", kind, n)
		}
	}
}
