package cli

import (
	"math"
	"time"
)

// CheckOutage calls wrong if an outage of such a length cannot be played at such a rate. usual is the rate without the
// flag: a package takes 0 for it, which is not what somebody means who writes 0.
func CheckOutage(outage time.Duration, rate float64, usual int, wrong func(format string, args ...any)) {
	if !(rate > 0) || math.IsInf(rate, 1) { // NaN is no number either
		wrong("--rate: %v requests/s cannot be played; write a number above 0, or leave the flag out for %d", rate, usual)
	}
	if outage < time.Second {
		wrong("--outage: %v is too short; write at least 1s, or leave the flag out for 30s", outage)
	}
}
