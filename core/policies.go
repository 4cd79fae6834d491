package core

import (
	"time"

	"github.com/abate-go/abate/internal/chance"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/throttle"
)

// policies are the policies of a guard that have state. The guard keeps those that were ever made, and the settings
// those that are on; the others are nil. This file makes, reconfigures and reads them. Call asks them, in its order.
type policies struct {
	budget   *budget.Budget
	breaker  *breaker.Breaker
	bulkhead *bulkhead.Bulkhead
	limiter  *ratelimit.Limiter
	pacer    *pacing.Pacer
	opener   *pacing.Opener
	throttle *throttle.Throttle
	hedge    *hedge.Policy
	learns   bool // the bulkhead's limit is learned
}

// enabled returns the policies that p has switched on. It makes those that are not there yet.
func (k *policies) enabled(p *Policy, rnd func() uint64, changed func(breaker.Change)) (on policies) {
	switch {
	case p.Budget != nil:
		on.budget = p.Budget
	case p.RetryBudget.Enabled():
		on.budget = orNew(&k.budget, func() *budget.Budget { return budget.New(p.RetryBudget) })
	}
	if p.CircuitBreaker.Enabled() {
		on.breaker = orNew(&k.breaker, func() *breaker.Breaker { return breaker.New(p.CircuitBreaker, rnd, changed) })
	}
	if p.Bulkhead.Enabled() || k.bulkhead != nil { // one that was on counts on, so that it can be switched on again
		on.bulkhead = orNew(&k.bulkhead, func() *bulkhead.Bulkhead { return bulkhead.New(p.Bulkhead) })
	}
	on.learns = p.Bulkhead.Adapts()
	if p.RateLimit.Enabled() {
		on.limiter = orNew(&k.limiter, func() *ratelimit.Limiter {
			return ratelimit.New(p.RateLimit.Config, chance.Seed)
		})
	}
	if p.Pacing.Adapts() {
		on.opener = orNew(&k.opener, pacing.NewOpener)
	}
	if p.Pacing.Paces() {
		on.pacer = orNew(&k.pacer, func() *pacing.Pacer { return pacing.New(p.Pacing) })
	}
	if p.Throttle.Enabled() {
		on.throttle = orNew(&k.throttle, func() *throttle.Throttle { return throttle.New(p.Throttle) })
	}
	if p.Hedge.Enabled() {
		on.hedge = orNew(&k.hedge, func() *hedge.Policy { return hedge.New(p.Hedge) })
	}
	return on
}

// orNew returns the policy, made if it is not there yet.
func orNew[T any](policy **T, make func() *T) *T {
	if *policy == nil {
		*policy = make()
	}
	return *policy
}

// reconfigure brings the policies that exist up to p. They keep their state. It returns what that did to the breaker.
func (k *policies) reconfigure(p *Policy, now time.Duration) (change breaker.Change) {
	if k.budget != nil {
		k.budget.Reconfigure(now, p.RetryBudget)
	}
	if k.breaker != nil {
		change = k.breaker.Reconfigure(now, p.CircuitBreaker)
	}
	if k.bulkhead != nil {
		k.bulkhead.Reconfigure(p.Bulkhead)
	}
	if k.limiter != nil {
		k.limiter.Reconfigure(now, p.RateLimit.Config)
	}
	if k.pacer != nil {
		k.pacer.Reconfigure(p.Pacing)
	}
	if k.throttle != nil {
		k.throttle.Reconfigure(now, p.Throttle)
	}
	if k.hedge != nil {
		k.hedge.Reconfigure(now, p.Hedge)
	}
	return change
}

// timesAttempts reports whether one of them needs to know when an attempt ended.
func (k *policies) timesAttempts() bool {
	return k.breaker != nil || k.throttle != nil || k.hedge != nil || k.opener != nil || k.learns
}

// idle reports whether new policies would let no more through, budget, breaker and throttle aside: see Guard.Idle.
func (k *policies) idle(now time.Duration) bool {
	switch {
	case k.bulkhead != nil && k.bulkhead.Busy():
		return false
	case k.limiter != nil && k.limiter.Allow(now, "", 0).Reset > 0:
		return false
	}
	if k.opener != nil && k.opener.State(now).AtOnce > 0 {
		return false
	}
	return k.pacer == nil || k.pacer.State(now).Wait <= 0
}

// countCalls has the bulkhead count the calls also if it is off, which rests needs to know. It comes before enabled.
func (k *policies) countCalls(p *Policy) { k.bulkhead = bulkhead.New(p.Bulkhead) }

// rests reports whether new policies would let no more through, the budget aside.
func (k *policies) rests(now time.Duration) bool {
	switch {
	case !k.idle(now):
		return false
	case k.bulkhead != nil && k.bulkhead.State().Queued > 0:
		return false
	case k.breaker != nil && k.breaker.Snapshot(now).State != breaker.Closed:
		return false
	}
	return k.throttle == nil || k.throttle.State(now).Rejection <= 0
}

// State is a guard's state at one moment, for dashboards and people. Parts that are off are zero.
type State struct {
	Breaker  breaker.Snapshot
	Budget   float64 // extra attempts that could be sent now
	Bulkhead bulkhead.State
	Pacing   pacing.State
	Throttle throttle.State
	Hedge    hedge.State
	Typical  time.Duration // what a successful attempt usually takes, 0 until one is known
	Override Override      // what somebody has put above the policy by hand
	Speaks   bool          // the dependency has shown that it knows what an allowance is, see CallTree
	// panics of observers, and of copies that came too late, that were caught so far; they are logged, see Observer
	Panics uint64
}

// StateAt is State at a time of the caller's clock, for those that drive Calls themselves.
func (g *Guard) StateAt(now time.Duration) State {
	s := g.inForce()
	st := State{Typical: s.typical.load(), Override: s.override, Speaks: s.peer.speaks(), Panics: s.panics.Count()}
	if s.breaker != nil {
		st.Breaker = s.breaker.Snapshot(now)
	}
	if s.budgeted {
		st.Budget = s.balance(now)
	}
	if s.bulkhead != nil {
		st.Bulkhead = s.bulkhead.State()
	}
	if s.opener != nil {
		st.Pacing = s.opener.State(now)
	}
	if s.pacer != nil {
		st.Pacing = s.pacer.State(now)
	}
	if s.throttle != nil {
		st.Throttle = s.throttle.State(now)
	}
	if s.hedge != nil {
		st.Hedge = s.hedge.State()
	}
	return st
}

// recordOpener tells the opener what became of an attempt that was begun then, if it waits to hear.
func (s *settings) recordOpener(now, began time.Duration, a *attemptCopy, class Class) {
	if a.asked&askedOpener != 0 {
		a.asked &^= askedOpener
		s.opener.Leave(now, began, openerResult[class&3])
	}
}

var openerResult = [...]pacing.Result{Success: pacing.Opened, Failure: pacing.Failed, Overload: pacing.Refused,
	Ignored: pacing.Neutral}
