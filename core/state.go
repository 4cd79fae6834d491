package core

import (
	"time"

	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/hedge"
	"github.com/abate-go/abate/policy/pacing"
	"github.com/abate-go/abate/policy/throttle"
)

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
