package budget_test

import (
	"testing"

	"github.com/abate-go/abate/policy/budget"
)

func TestAllowanceSaysTheSameOfAllKinds(t *testing.T) {
	for _, c := range []struct {
		about string
		from  budget.Config
		want  budget.Allowance
	}{
		{"off", budget.Config{}, budget.Allowance{}},
		{"switched off", budget.Config{Ratio: 0.5, Disabled: true}, budget.Allowance{}},
		{"a ratio", budget.Config{Ratio: 0.5, Reserve: 10}, budget.Allowance{Ratio: 0.5, FailingRatio: 0.5, Reserve: 10}},
		{"the ratio by default", budget.Config{Kind: budget.Ratio}, budget.Allowance{Ratio: 0.1, FailingRatio: 0.1}},
		{"the reserve of all clients", budget.Config{Ratio: 0.5, Reserve: 10, Clients: 5},
			budget.Allowance{Ratio: 0.5, FailingRatio: 0.5, Reserve: 10}},
		{"one that shrinks", budget.Config{Kind: budget.Adaptive, MinRatio: 0.25, MaxRatio: 0.75},
			budget.Allowance{Ratio: 0.75, FailingRatio: 0.5}},
		{"a bucket, by what the cheapest retry costs", budget.Config{Kind: budget.Tokens, MaxTokens: 12, RefillPerSecond: 6,
			CostPerRetry: 2, TransientCost: 1.5, OverloadCost: 3}, budget.Allowance{PerSecond: 2, Reserve: 4}},
		{"a bucket that successes fill", budget.Config{Kind: budget.Tokens, MaxTokens: 10, DepositPerSuccess: 0.5},
			budget.Allowance{Ratio: 0.5, Reserve: 10}},
	} {
		if got := c.from.Allowance(); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.about, got, c.want)
		}
	}
}
