// Package clock is the time that drivers give to the state machines, and its arithmetic.
package clock

import (
	"math"
	"time"
)

// Never is a time that does not come.
const Never time.Duration = math.MaxInt64

// origin is where the clock starts. Only differences count.
var origin = time.Now()

// Now returns the time since the origin: monotonic, one register wide, and half the price of time.Now (a bench of the
// floor: 24 against 43 ns).
func Now() time.Duration { return time.Since(origin) }

// At returns the place of t on the clock. One without a monotonic reading, such as a deadline that a header or a row
// says, is as far away as it is by the wall clock now: that may have been set since the origin.
func At(t time.Time) time.Duration {
	if t == t.Round(0) {
		return Later(Now(), time.Until(t))
	}
	return t.Sub(origin)
}

// Time returns the time at d on the clock.
func Time(d time.Duration) time.Time { return origin.Add(d) }

// Later returns now + d, or Never where that would overflow.
func Later(now, d time.Duration) time.Duration {
	if sum := now + d; sum >= now {
		return sum
	}
	return Never
}
