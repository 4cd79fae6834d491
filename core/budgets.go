package core

import (
	"math"
	"time"

	"github.com/abate-go/abate/policy/budget"
)

// withdraw draws an extra attempt from both budgets or from neither.
func (s *settings) withdraw(now time.Duration, c budget.Cost) bool {
	if s.budget != nil && !s.budget.Withdraw(now, c) {
		return false
	}
	if s.shared == nil || s.shared.Withdraw(now, c) {
		return true
	}
	if s.budget != nil {
		s.budget.Return(now, c)
	}
	return false
}

// repeat is withdraw for a call that somebody above makes again.
func (s *settings) repeat(now time.Duration) bool {
	var drawn budget.Drawn
	if s.budget != nil {
		var ok bool
		if drawn, ok = s.budget.Repeat(now); !ok {
			return false
		}
	}
	if s.shared == nil {
		return true
	}
	if _, ok := s.shared.Repeat(now); ok {
		return true
	}
	if s.budget != nil {
		s.budget.Undo(now, drawn)
	}
	return false
}

// drain draws an extra attempt that was made already, from each budget as far as it goes.
func (s *settings) drain(now time.Duration) {
	if s.budget != nil {
		s.budget.Withdraw(now, budget.Transient)
	}
	if s.shared != nil {
		s.shared.Withdraw(now, budget.Transient)
	}
}

// resulted notes how an attempt ended.
func (s *settings) resulted(now time.Duration, success bool) {
	if s.budget != nil {
		s.budget.Result(now, success)
	}
	if s.shared != nil {
		s.shared.Result(now, success)
	}
}

// balance is how many extra attempts could be sent now.
func (s *settings) balance(now time.Duration) float64 {
	least := math.Inf(1)
	if s.budget != nil {
		least = s.budget.Balance(now)
	}
	if s.shared != nil {
		least = min(least, s.shared.Balance(now))
	}
	return least
}

// budgetCost is what a retry after an attempt of class c costs.
func budgetCost(c Class) budget.Cost {
	if c == Overload {
		return budget.Overload
	}
	return budget.Transient
}
