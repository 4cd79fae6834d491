package core

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/breaker"
)

// Override is what somebody has put above the policy of a guard by hand, in an emergency: it concerns the circuit
// breaker alone, and outlives reloads of the policy.
type Override string

const (
	// NoOverride leaves the circuit breaker to the policy.
	NoOverride Override = ""
	// OverrideForcedOpen rejects every call, whatever the policy says.
	OverrideForcedOpen Override = "forcedOpen"
	// OverrideDisabled lets every call pass the circuit breaker. Retries, budget and limits stay as they are.
	OverrideDisabled Override = "disabled"
	// OverrideShadow has the circuit breaker decide and report, and reject nothing. Where the policy has no circuit
	// breaker, or has it switched off, there is nothing to decide.
	OverrideShadow Override = "shadow"
)

// Override puts o above the guard's policy, at once and until it is called again with NoOverride; Update changes only
// what is below it. Calls that are running finish as they began. The circuit breaker starts anew, closed, when
// OverrideForcedOpen or OverrideDisabled is taken back, and otherwise keeps its state. The observer is told of a
// PolicyChanged whose Detail says what was done. What is no Override is an error, and changes nothing.
func (g *Guard) Override(o Override) error { return g.OverrideAt(clock.Now(), o) }

// OverrideAt is Override at a time of the caller's clock, for those that drive Calls themselves.
func (g *Guard) OverrideAt(now time.Duration, o Override) error {
	switch o {
	case NoOverride, OverrideForcedOpen, OverrideDisabled, OverrideShadow:
	default:
		return fmt.Errorf("abate: guard %q: %q is not an override; allowed: forcedOpen, disabled, shadow, "+
			"or nothing to take it back", g.name, string(o))
	}
	if g == nil || g.name == "" {
		return errUnmade
	}
	detail := "circuit breaker left to the policy again"
	if o != NoOverride {
		detail = "circuit breaker " + string(o) + " by hand"
	}
	g.change(now, detail, func() { g.override = o })
	return nil
}

// apply returns p with the circuit breaker as o wants it.
func (o Override) apply(p Policy) Policy {
	switch b := &p.CircuitBreaker; o {
	case OverrideForcedOpen:
		b.Disabled, b.Mode = false, breaker.ForcedOpen
	case OverrideDisabled:
		b.Disabled = true
	case OverrideShadow:
		b.Mode = breaker.Shadow
	}
	return p
}
