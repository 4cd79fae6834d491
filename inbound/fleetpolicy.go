package inbound

import (
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/ratelimit"
)

// FleetPolicy returns the policy of the guard in front of what keeps a fleet's limits, for a [FleetLimiter]. No retries:
// whoever asks has an answer of its own. Three failures in a row open the breaker, so that a Redis that is away costs a
// few requests their timeout and the others nothing. Waits are drawn apart and the way back is a ramp, so that a fleet
// does not come back to a Redis that has just started all at once.
func FleetPolicy() core.Policy {
	var p core.Policy
	p.CircuitBreaker = breaker.Config{
		FailureThreshold:           3,
		WaitDurationInOpenState:    200 * time.Millisecond,
		MaxWaitDurationInOpenState: ratelimit.ShareAfter * 2 / 3, // who is later finds the others back at the bucket
		WaitDurationJitter:         1,
		PermittedCallsInHalfOpen:   1,
		SuccessThreshold:           2,
		HalfOpenPermitLease:        time.Second,
		RampUp:                     time.Second,
	}
	return p
}

// FleetAway reports whether what a guard under [FleetPolicy] stands in front of is known to be away, and it is not yet
// time to look again. It costs a few loads.
func FleetAway(g *core.Guard, now time.Duration) bool {
	b := g.Breaker()
	return b.State() == breaker.Open && b.RetryIn(now) > 0
}
