package inbound

import (
	"context"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/cpu"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/ratelimit"
)

// AskFleet does what an Ask step is about: it asks the other instances, and blocks for that. Its answer is for Limited.
func (a *Arrival) AskFleet(ctx context.Context) ratelimit.Decision {
	return a.s.fleet.Take(ctx, a.request.Key, a.request.Cost)
}

// Asks returns the key and the cost that an Ask step is about, for drivers that ask by themselves.
func (a *Arrival) Asks() (key string, cost float64) { return a.request.Key, a.request.Cost }

// ReadCPU does what a Measure step is about: it reads the processor's load, of Protection.CPU or else of this process.
// Its answer is for Measured.
func (a *Arrival) ReadCPU() float64 {
	if read := a.s.protection.CPU; read != nil {
		return read()
	}
	return cpu.Share()
}

// FleetPolicy returns the policy of the guard in front of what keeps a fleet's limits, for a [FleetLimiter]. No
// retries: whoever asks has an answer of its own. Three failures in a row open the breaker, so that a Redis that is
// away costs a few requests their timeout and the others nothing. Waits are drawn apart and the way back is a ramp, so
// that a fleet does not come back to a Redis that has just started all at once.
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

// FleetMissed notes that an answer from behind a guard under [FleetPolicy] did not come. One is an outage if it is the
// heartbeat's, or the guard's circuit is not closed.
func FleetMissed(o *ratelimit.Outage, g *core.Guard, heartbeat bool) {
	o.Missed(heartbeat || g.Breaker().State() != breaker.Closed)
}

// FleetApart reports whether an instance decides limits by its own share: what keeps them is away, or was just now and
// others may not have noticed yet that it is back.
func FleetApart(g *core.Guard, o *ratelimit.Outage, living *ratelimit.Census, now time.Duration) bool {
	return FleetAway(g, now) || !o.Over(now) && living.Instances() > 1
}
