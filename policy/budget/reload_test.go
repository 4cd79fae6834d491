package budget_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

func TestAReloadNeverRefills(t *testing.T) {
	base := budget.Config{Ratio: 0.1, Reserve: 10}
	for _, tt := range []struct {
		name string
		to   []budget.Config
	}{
		{"the same again", []budget.Config{base}},
		{"a larger reserve", []budget.Config{{Ratio: 0.1, Reserve: 1000}, base}},
		{"a larger ratio", []budget.Config{{Ratio: 1, Reserve: 10}, base}},
		{"fewer clients", []budget.Config{{Ratio: 0.1, Reserve: 10, Clients: 5}, base}},
		{"other windows", []budget.Config{
			{Ratio: 0.1, Reserve: 10, Window: time.Hour}, {Ratio: 0.1, Window: time.Second}, base,
		}},
		{"off and on", []budget.Config{{}, base}},
		{"disabled and on", []budget.Config{{Disabled: true, Ratio: 0.1, Reserve: 10}, base}},
		{"adaptive and back", []budget.Config{{Kind: budget.Adaptive, Reserve: 10}, base}},
		{"tokens and back", []budget.Config{{Kind: budget.Tokens, MaxTokens: 500}, base}},
		{"tokens, off and back", []budget.Config{{Kind: budget.Tokens, MaxTokens: 500}, {}, base}},
	} {
		b := budget.New(base)
		if got := take(b, 0, budget.Transient, 1000); got != 10 {
			t.Fatalf("%s: the reserve gave %d", tt.name, got)
		}
		now := time.Duration(0)
		for range 100 {
			for _, c := range tt.to {
				now += 300 * time.Millisecond
				b.Reconfigure(now, c)
			}
			if got := take(b, now, budget.Transient, 1000); got != 0 {
				t.Errorf("%s: the reload paid for %d extra attempts", tt.name, got)
				break
			}
		}
	}
}

func TestAReloadKeepsTheBalance(t *testing.T) {
	base := budget.Config{Ratio: 0.1, Reserve: 10}
	for _, tt := range []struct {
		to   budget.Config
		want float64
	}{
		{base, 17}, // 10 in reserve and 17 deposited, 10 taken
		{budget.Config{Ratio: 1, Reserve: 10}, 17},
		{budget.Config{Ratio: 0.1, Reserve: 1000}, 17},
		{budget.Config{Ratio: 0.1, Reserve: 10, Window: time.Minute}, 17},
		{budget.Config{Kind: budget.Adaptive, Reserve: 10}, 17},
		{budget.Config{Kind: budget.Tokens, MaxTokens: 100}, 17},
		{budget.Config{Ratio: 0.1, Reserve: 10, TransientCost: 2}, 8.5},
		// cut down to what the new policy can hold
		{budget.Config{Kind: budget.Tokens, MaxTokens: 4}, 4},
		{budget.Config{Ratio: 0.1, Reserve: 2, Window: time.Second}, 9}, // the 7 of the last second
		{budget.Config{Ratio: 0.1, Window: time.Second}, 8},             // one retry is always kept
	} {
		b := budget.New(base)
		deposit(b, 0, 100)
		take(b, 0, budget.Transient, 10)
		deposit(b, 8*time.Second, 70)
		b.Reconfigure(8*time.Second, tt.to)
		if got := b.Balance(8 * time.Second); got != tt.want {
			t.Errorf("%+v: balance %v, want %v", tt.to, got, tt.want)
		}
	}
}

// After a change of the window what was deposited before it is known in the old slots
// only. It may expire earlier than the new window says, never later.
func TestDepositsExpireInTheNewWindowAfterAReload(t *testing.T) {
	windows := []time.Duration{time.Second, 1300 * time.Millisecond, 10 * time.Second, 77 * time.Second}
	for _, from := range windows {
		for _, to := range windows {
			t.Run(fmt.Sprintf("%v to %v", from, to), func(t *testing.T) {
				b, tr := budget.New(budget.Config{Ratio: 0.5, Window: from}), trace{}
				now := time.Duration(0)
				for range 300 {
					now += 37 * time.Millisecond
					b.Deposit(now)
					tr.add(now, 1, 0)
				}
				b.Reconfigure(now, budget.Config{Ratio: 0.5, Window: to})
				for range 10 {
					now += to / 7
					tr.add(now, 0, int64(take(b, now, budget.Transient, 2)))
				}
				tr.check(t, 0.5, 0, to, 1)
				b.Reconfigure(now, budget.Config{Ratio: 0.5, Window: from})
				if got := b.Balance(now + 2*max(from, to)); got > 1 {
					t.Errorf("%v left long after both windows", got)
				}
			})
		}
	}
}

func TestALongerWindowRevivesNothing(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 1, Window: time.Second})
	deposit(b, 0, 50)
	b.Reconfigure(5*time.Second, budget.Config{Ratio: 1, Window: time.Minute})
	if got := b.Balance(5 * time.Second); got != 1 {
		t.Errorf("balance %v, although all but one retry's cost had expired", got)
	}
}

func TestAChangedRatioAppliesToTheNextCall(t *testing.T) {
	b := budget.New(budget.Config{Ratio: 0.1})
	b.Deposit(0)
	b.Reconfigure(0, budget.Config{Ratio: 0.9})
	b.Deposit(0)
	if got := b.Balance(0); got != 1 {
		t.Errorf("balance %v, want 0.1 + 0.9", got)
	}
}

func TestTheReserveIsHandedOutWhenTheBudgetIsFirstSwitchedOn(t *testing.T) {
	for _, c := range []budget.Config{{Ratio: 0.1, Reserve: 7}, {Kind: budget.Tokens, MaxTokens: 7}} {
		b := budget.New(budget.Config{})
		b.Deposit(time.Second)
		b.Reconfigure(time.Minute, c)
		if got := b.Balance(time.Minute); got != 7 {
			t.Errorf("%s: balance %v, want 7", c.Kind, got)
		}
		take(b, time.Minute, budget.Transient, 7)
		b.Reconfigure(time.Minute, budget.Config{})
		b.Reconfigure(time.Minute, c)
		if got := b.Balance(time.Minute); got != 0 {
			t.Errorf("%s: balance %v after off and on, want 0", c.Kind, got)
		}
	}
}
