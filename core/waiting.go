package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/breaker"
)

// pollEvery is how long whoever waits for something that has no time of its own waits before it asks again, on average
// half of it: shorter than anybody notices, and a hundred of them cost a thousandth of a core.
const pollEvery = 20 * time.Millisecond

// patience returns how long the call would wait for an adaptive pace, from its beginning on.
func (c *Call) patience() time.Duration {
	most := c.s.policy.Pacing.MaxWait
	if c.deadline == NoDeadline {
		return most
	}
	return min(most, c.deadline-c.start-c.s.typical.load()-1)
}

// hopeful reports whether a call that the circuit keeps from its attempt waits for the next probe.
func (c *Call) hopeful() bool {
	return c.s.opener != nil && c.s.policy.CircuitBreaker.Mode != breaker.ForcedOpen &&
		c.s.opener.Hopeful(c.start, c.patience())
}

// untilProbe is when a call asks again that the circuit has kept from its attempt.
func (c *Call) untilProbe(now time.Duration) time.Duration {
	return c.s.breaker.RetryIn(now) + time.Millisecond + time.Duration(c.s.rnd()%uint64(pollEvery))
}

// comeAgain has the call ask again after so long, or as soon before as its patience ends, and stops it for the reason
// when that is over.
func (c *Call) comeAgain(now, wait time.Duration, reason error) Step {
	left := c.start + c.patience() - now
	if left <= 0 {
		if reason == ErrRateLimited {
			tooFar(c, wait)
		}
		return c.stop(now, reason)
	}
	return Step{Action: Sleep, Until: clock.Later(now, min(wait, left))}
}
