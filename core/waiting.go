package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/breaker"
)

// pollEvery is how long whoever waits for something that has no time of its own waits before it asks again, on average
// half of it: shorter than anybody notices, and a hundred of them cost a thousandth of a core.
const pollEvery = 20 * time.Millisecond

// waitsSince returns since when the call waits for an adaptive pace: now if it does not yet.
func (c *Call) waitsSince(now time.Duration) time.Duration {
	if a := &c.copies[0]; a.asked&waitsForPace != 0 {
		return a.start
	}
	return now
}

// patience returns for how long a call that waits since then would wait for an adaptive pace.
func (c *Call) patience(since time.Duration) time.Duration {
	most := c.s.policy.Pacing.MaxWait
	if c.deadline == NoDeadline { // else an attempt that comes too late for a typical answer would be lost
		return most
	}
	return min(most, c.deadline-since-c.s.typical.load()-1)
}

// hopeful reports whether a call that the circuit keeps from its attempt waits for the next probe.
func (c *Call) hopeful(now time.Duration) bool {
	since := c.waitsSince(now)
	return c.s.opener != nil && c.s.policy.CircuitBreaker.Mode != breaker.ForcedOpen &&
		c.s.opener.Hopeful(since, c.patience(since))
}

// untilProbe is when a call asks again that the circuit has kept from its attempt.
func (c *Call) untilProbe(now time.Duration) time.Duration {
	return c.s.breaker.RetryIn(now) + time.Millisecond + time.Duration(c.s.rnd()%uint64(pollEvery))
}

// comeAgain has the call ask again after so long, or before if its patience ends by then, and stops it for the reason
// once that is over.
func (c *Call) comeAgain(now, wait time.Duration, reason error) Step {
	since := c.waitsSince(now)
	left := since + c.patience(since) - now
	if left <= 0 {
		if reason == ErrRateLimited {
			tooFar(c, wait)
		}
		return c.stop(now, reason)
	}
	a := &c.copies[0]
	a.asked, a.start = a.asked|waitsForPace, since
	return Step{Action: Sleep, Until: clock.Later(now, min(wait, left))}
}
