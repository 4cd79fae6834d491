package budget_test

import (
	"math"
	"testing"

	"github.com/abate-go/abate/policy/budget"
)

func TestLimitsFollowFromWhatABudgetAllows(t *testing.T) {
	for _, c := range []struct {
		about     string
		allowance budget.Allowance
		most      int
		want      budget.Limits
	}{
		{"ten per cent", budget.Allowance{Ratio: 0.1, FailingRatio: 0.1, Reserve: 10}, 3,
			budget.Limits{Extra: 0.11, Storm: 1.555, Bank: 10, Retries: 0.8 * 0.1 / 1.1}},
		{"more than there can be", budget.Allowance{Ratio: 1, FailingRatio: 1, Reserve: 10}, 1,
			budget.Limits{Extra: 0.5, Storm: 0.75, Bank: 10, Retries: 0.3}},
		{"only time earns", budget.Allowance{PerSecond: 1, Reserve: 2}, 3,
			budget.Limits{Storm: 1.5, Bank: 10, PerSecond: 1.1, Retries: 0.3}},
		{"a bank that would hide a storm", budget.Allowance{Reserve: 1e6}, 2,
			budget.Limits{Storm: 1, Bank: 100, Retries: 0.3}},
		{"nothing is ever added", budget.Allowance{Ratio: 0.1, FailingRatio: 0.1, Reserve: 50}, 0,
			budget.Limits{Bank: 50, Retries: 0.8 * 0.1 / 1.1}},
	} {
		got := c.allowance.Limits(c.most)
		for _, pair := range [][2]float64{{got.Extra, c.want.Extra}, {got.Storm, c.want.Storm}, {got.Bank, c.want.Bank},
			{got.PerSecond, c.want.PerSecond}, {got.Retries, c.want.Retries}} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("%s: %+v, want %+v", c.about, got, c.want)
				break
			}
		}
	}
}
