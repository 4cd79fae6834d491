package retry

import (
	"math"
	"time"
)

// Backoff says how the interval grows from one retry to the next.
type Backoff string

// The kinds of backoff. The package documentation has the formulas.
const (
	ExponentialBackoff Backoff = "exponential" // each interval is Multiplier times the one before; the default
	LinearBackoff      Backoff = "linear"      // each interval is one InitialDelay longer
	FixedBackoff       Backoff = "fixed"       // each interval is InitialDelay
	NoBackoff          Backoff = "none"        // retry at once; the only way to a delay of zero
)

// interval returns the interval of a retry (1 or more), at most MaxDelay.
// The comparisons come before the conversions, so nothing can overflow: a huge
// power is +Inf, which is not below the cap.
func (c *Config) interval(retry int) time.Duration {
	switch c.Backoff {
	case NoBackoff:
		return 0
	case FixedBackoff:
		return min(c.InitialDelay, c.MaxDelay)
	case LinearBackoff:
		if time.Duration(retry) > c.MaxDelay/c.InitialDelay {
			return c.MaxDelay
		}
		return time.Duration(retry) * c.InitialDelay
	default:
		d := float64(c.InitialDelay) * math.Pow(c.Multiplier, float64(retry-1))
		if d < float64(c.MaxDelay) {
			return time.Duration(d)
		}
		return c.MaxDelay
	}
}

// grows reports whether the interval after this one can be longer.
func (c *Config) grows(interval time.Duration) bool {
	switch c.Backoff {
	case NoBackoff, FixedBackoff:
		return false
	case LinearBackoff:
		return interval < c.MaxDelay
	default:
		return interval < c.MaxDelay && c.Multiplier > 1
	}
}
