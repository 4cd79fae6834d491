// Package distribution says how long something takes: a constant, or a random
// duration of a known shape. Every shape has a form in words, such as
// "exponential 50ms", which Parse reads and String writes.
package distribution

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/kernel"
)

// Longest is the largest mean, bound or quantile that Parse accepts: a week.
const Longest = 168 * time.Hour

// longestSample keeps the sum of a time and a sample far from overflow: ten years.
const longestSample = 87600 * time.Hour

// z99 is the 99 % quantile of the standard normal distribution.
const z99 = 2.3263478740408408

type kind uint8

const (
	fixed           kind = iota // a
	exponential                 // mean a
	lognormalMedian             // median a, 99 % quantile b
	lognormalMean               // mean a, coefficient of variation cv
	uniform                     // from a to b
	normal                      // absolute value of a draw with mean a and standard deviation b
	quantiles                   // points
	mixture                     // parts
)

// Distribution is the distribution of a duration. The zero value is always 0. It
// does not change once it is made, so that copies may share it.
type Distribution struct {
	kind   kind
	a, b   time.Duration // as written
	cv     float64       // as written
	x, y   float64       // what Sample needs, in ns; for lognormals of the logarithm
	points []point
	parts  []part
}

// point is one quantile, and the line that starts there.
type point struct {
	percent float64
	value   time.Duration
	share   float64 // percent / 100
	slope   float64 // ns per share up to the next point
}

// part is one share of a mixture.
type part struct {
	percent float64
	upTo    float64 // shares of this part and those before it
	d       Distribution
}

// Fixed returns the distribution that is always d; a negative d counts as 0.
func Fixed(d time.Duration) Distribution { return Distribution{kind: fixed, a: max(d, 0)} }

// Exponential returns the exponential distribution; a mean of 0 or less makes it
// always 0.
func Exponential(mean time.Duration) Distribution {
	if mean <= 0 {
		return Distribution{}
	}
	return Distribution{kind: exponential, a: mean, x: float64(mean)}
}

// Sample draws a duration in ns, 0 or more and at most ten years.
func (d *Distribution) Sample(s *kernel.Stream) int64 {
	switch d.kind {
	case fixed:
		return int64(d.a)
	case exponential:
		return nanoseconds(float64(d.x * s.Exp()))
	case lognormalMedian, lognormalMean:
		return nanoseconds(kernel.Exp(d.x + float64(d.y*s.Normal())))
	case uniform:
		return nanoseconds(d.x + float64(d.y*s.Float64()))
	case normal:
		return nanoseconds(math.Abs(d.x + float64(d.y*s.Normal())))
	case quantiles:
		return d.between(s.Float64())
	default:
		return d.pick(s.Float64()).Sample(s)
	}
}

// nanoseconds rounds to the nearest nanosecond.
func nanoseconds(x float64) int64 {
	if x >= float64(longestSample) {
		return int64(longestSample)
	}
	return int64(x + 0.5)
}

// between returns the quantile of u, on the line between its neighbours.
func (d *Distribution) between(u float64) int64 {
	i := 1
	for u >= d.points[i].share && i < len(d.points)-1 {
		i++
	}
	p := &d.points[i-1]
	return nanoseconds(float64(p.value) + float64(p.slope*(u-p.share)))
}

// pick returns the part of a mixture that u falls on.
func (d *Distribution) pick(u float64) *Distribution {
	i := 0
	for u >= d.parts[i].upTo && i < len(d.parts)-1 {
		i++
	}
	return &d.parts[i].d
}
