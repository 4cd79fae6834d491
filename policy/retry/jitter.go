package retry

import (
	"math/bits"
	"time"
)

// Jitter says from which part of the interval a delay is drawn.
type Jitter string

// The kinds of jitter. The package documentation has the formulas.
const (
	FullJitter         Jitter = "full"         // anywhere in the interval; spreads clients best; the default
	EqualJitter        Jitter = "equal"        // the upper half of the interval: a longer certain wait
	DecorrelatedJitter Jitter = "decorrelated" // grows from the previous delay instead of the number of retries
	FactorJitter       Jitter = "factor"       // ± JitterFactor around the interval
	NoJitter           Jitter = "none"         // exactly the interval; for one client alone
)

// A span is the closed interval a delay is drawn from, 0 ≤ lo ≤ hi.
type span struct{ lo, hi time.Duration }

// draw maps the random number to a delay in s, with equal chances to within
// one part in 2^64 of the width. It grows with rnd: 0 is lo, the largest is hi.
func (s span) draw(rnd uint64) time.Duration {
	offset, _ := bits.Mul64(rnd, uint64(s.hi-s.lo)+1)
	return s.lo + time.Duration(offset)
}

// floor is the least delay that jitter may make of an interval. One millisecond
// is a pause that a network can notice. For short intervals it is a tenth of
// them, so that there is still something left to draw from.
func floor(interval time.Duration) time.Duration {
	return min(time.Millisecond, interval/10)
}

// span returns what a retry's delay is drawn from, for every jitter but
// decorrelated.
func (c *Config) span(interval time.Duration) span {
	switch c.Jitter {
	case NoJitter:
		return span{interval, interval}
	case EqualJitter:
		return span{interval / 2, interval}
	case FactorJitter:
		// At the cap the centre moves down so that the upper end fits below
		// it. Cutting the upper end off would pile half of all draws on the cap.
		centre := min(float64(interval), float64(c.MaxDelay)/(1+c.JitterFactor))
		hi := min(time.Duration(centre*(1+c.JitterFactor)), c.MaxDelay)
		lo := max(time.Duration(centre*(1-c.JitterFactor)), floor(hi))
		return span{min(lo, hi), hi}
	default:
		return span{floor(interval), interval}
	}
}

// decorrelated returns what the delay after previous is drawn from.
func (c *Config) decorrelated(previous time.Duration) span {
	hi := c.MaxDelay
	if previous = max(previous, c.InitialDelay); previous < hi/3 {
		hi = 3 * previous
	}
	return span{min(c.InitialDelay, hi/3), hi}
}
