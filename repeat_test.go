package abate_test

import (
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/budget"
)

// A repeat that one budget lets pass for a first attempt, and another refuses, has drawn nothing: there is nothing to
// give back.
func TestARepeatThatASecondBudgetRefusesGivesBackOnlyWhatItHasDrawn(t *testing.T) {
	shared := budget.New(budget.Config{Ratio: 0.0001, Reserve: 0})
	g := guard(t, alone(abate.Policy{SharedBudget: shared, RetryBudget: budget.Config{Ratio: 0.0001, Reserve: 5}}))
	for g.Budget().Withdraw(0, budget.Transient) {
	}
	for second := range 1800 {
		now := time.Duration(second) * time.Second
		if second%30 == 0 {
			shared.Deposit(now) // others make first attempts
		}
		var c core.Call
		c.Repeated()
		if step := g.Begin(&c, now, core.NoDeadline); step.Action == core.Attempt {
			t.Fatal("it was sent")
		}
	}
	if left := g.Budget().Balance(1800 * time.Second); left > 0.1 {
		t.Errorf("half an hour of refusals has earned %v attempts", left)
	}
}
