package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// pollEvery is how long whoever waits for something that has no time of its own waits before it asks again, on average
// half of it: shorter than anybody notices, and a hundred of them cost a thousandth of a core.
const pollEvery = 20 * time.Millisecond

// waitsSince returns since when the call waits for an adaptive pace: now if it does not yet.
func waitsSince(c *Call, now time.Duration) time.Duration {
	if a := &c.main; a.asked&waitsForPace != 0 {
		return a.start
	}
	return now
}

// hopeful reports whether a call that the circuit keeps from its attempt waits for the next probe.
func hopeful(c *Call, now time.Duration) bool {
	since := waitsSince(c, now)
	return c.s.opener != nil && !c.s.forced() &&
		c.s.opener.Hopeful(since, patience(c, since))
}

// untilProbe is when a call asks again that the circuit has kept from its attempt.
func untilProbe(c *Call, now time.Duration) time.Duration {
	return c.s.breaker.RetryIn(now) + time.Millisecond + time.Duration(c.s.rnd()%uint64(pollEvery))
}

// comeAgain has the call ask again after so long, or before if its patience ends by then, and stops it for the reason
// once that is over.
func comeAgain(c *Call, now, wait time.Duration, reason error) Step {
	since := waitsSince(c, now)
	left := since + patience(c, since) - now
	if left <= 0 {
		if reason == ErrRateLimited {
			tooFar(c, wait)
		}
		return c.stop(now, reason)
	}
	a := &c.main
	a.asked, a.start = a.asked|waitsForPace, since
	return Step{Action: Sleep, Until: clock.Later(now, min(wait, left))}
}
