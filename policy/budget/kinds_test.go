package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

func TestAdaptiveRatioFollowsTheSuccessRate(t *testing.T) {
	for _, tt := range []struct {
		successes, failures int
		want                float64 // deposit of one call
	}{
		{100, 0, 0.2}, {0, 100, 0.02}, {50, 50, 0.11}, {75, 25, 0.155}, {0, 0, 0.2},
	} {
		b := budget.New(budget.Config{Kind: budget.Adaptive, MinRatio: 0.02, MaxRatio: 0.2})
		for range tt.successes {
			b.Result(0, true)
		}
		for range tt.failures {
			b.Result(0, false)
		}
		b.Deposit(time.Second) // a new slot: the ratio is measured here
		if got := b.Balance(time.Second); math.Abs(got-tt.want) > 1e-6 {
			t.Errorf("%d good, %d bad: a call earned %v, want %v", tt.successes, tt.failures, got, tt.want)
		}
	}
}

func TestAdaptiveForgetsResultsAfterTheWindow(t *testing.T) {
	b := budget.New(budget.Config{Kind: budget.Adaptive, MinRatio: 0.02, MaxRatio: 0.2})
	for range 1000 {
		b.Result(0, false)
	}
	b.Result(9*time.Second, true)
	b.Deposit(10 * time.Second) // the failures are out, the success is in
	if got := b.Balance(10 * time.Second); math.Abs(got-0.2) > 1e-6 {
		t.Errorf("a call earned %v, want 0.2", got)
	}
}

// With one call a minute the window is empty each time it is measured. The last results
// must still count, or a dead dependency would look healthy.
func TestAdaptiveSeesFailuresAtOneCallAMinute(t *testing.T) {
	b := budget.New(budget.Config{Kind: budget.Adaptive, MinRatio: 0.02, MaxRatio: 0.2})
	for minute := range 50 {
		now := time.Duration(minute) * time.Minute
		b.Deposit(now)
		b.Result(now, false)
	}
	// 0.2 for the first call, when nothing was known, then 0.02 each
	if got := b.Balance(50 * time.Minute); math.Abs(got-1) > 1e-6 { // capped at one retry
		t.Errorf("balance %v", got)
	}
	if !b.Withdraw(50*time.Minute, budget.Transient) {
		t.Fatal("49 × 0.02 + 0.2 did not pay for a retry")
	}
	b.Deposit(51 * time.Minute)
	if got := b.Balance(51 * time.Minute); math.Abs(got-0.02) > 1e-6 {
		t.Errorf("a call to a dead dependency earned %v, want 0.02", got)
	}
}

func TestResultsDoNotFillARatioBudget(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1})
	for range 1000 {
		b.Result(0, true)
	}
	if got := b.Balance(0); got != 0 {
		t.Errorf("balance %v", got)
	}
}

func TestTokensStartFullAndAreBoughtBackBySuccesses(t *testing.T) {
	b := budget.New(budget.Config{Kind: budget.Tokens, MaxTokens: 10, DepositPerSuccess: 0.1})
	deposit(b, 0, 1000) // first attempts earn nothing here
	if got := take(b, 0, budget.Transient, 100); got != 10 {
		t.Fatalf("a full bucket gave %d", got)
	}
	for i := range 25 {
		b.Result(time.Hour, true)
		b.Result(time.Hour, false)
		if got, want := b.Withdraw(time.Hour, budget.Hedge), (i+1)%10 == 0; got != want {
			t.Errorf("success %d: withdraw %v", i+1, got)
		}
	}
	for range 1000 {
		b.Result(time.Hour, true)
	}
	if got := b.Balance(time.Hour); got != 10 {
		t.Errorf("balance %v, want no more than the bucket holds", got)
	}
}

func TestTokensAreRefilledByTime(t *testing.T) {
	b := budget.New(budget.Config{Kind: budget.Tokens, MaxTokens: 8, RefillPerSecond: 4, Clients: 2})
	at := 3 * time.Hour // the first call tells the time, so waiting for it earns nothing
	if got := take(b, at, budget.Transient, 100); got != 4 {
		t.Fatalf("a share of half the bucket gave %d", got)
	}
	for _, tt := range []struct {
		after time.Duration
		want  float64
	}{{0, 0}, {time.Nanosecond, 0}, {250 * time.Millisecond, 0.5}, {time.Second, 2}, {time.Hour, 4}} {
		if got := b.Balance(at + tt.after); got != tt.want {
			t.Errorf("balance %v after %v, want %v", got, tt.after, tt.want)
		}
	}
}

// Steps too small to earn a whole millionth still add up.
func TestSlowRefillLosesNothingToRounding(t *testing.T) {
	b := budget.New(budget.Config{Kind: budget.Tokens, MaxTokens: 1, RefillPerSecond: 0.001})
	b.Withdraw(0, budget.Transient)
	now := time.Duration(0)
	for range 1_000_000 {
		now += 100 * time.Microsecond // 0.1 of a millionth each
		b.Balance(now)
	}
	if got := b.Balance(now); math.Abs(got-0.1) > 1e-4 {
		t.Errorf("balance %v after 100 s at 0.001 per second, want 0.1", got)
	}
}
