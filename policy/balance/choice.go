package balance

import (
	"slices"
	"time"
)

// choice is which endpoints are not ejected. It never changes once it is published, so Pick needs no lock.
type choice struct {
	in       []int32       // the endpoints
	position []int32       // of each endpoint in in; -1: ejected
	until    time.Duration // when the next ejection is over, or the next step of a ramp
	shares   []uint32      // what each of in weighs; nil if all weigh the same
	ends     []uint64      // sums of shares up to each of in, itself included
}

// weigh notes what the endpoints weigh at a time, unless that makes no difference.
func (c *choice) weigh(r *ramps, now time.Duration) {
	if r.weights == nil && r.since == nil {
		return
	}
	shares, ends, sum, equal := make([]uint32, len(c.in)), make([]uint64, len(c.in)), uint64(0), true
	for at, i := range c.in {
		weight, until := r.of(int(i), now)
		shares[at], c.until = weight, min(c.until, until)
		sum += uint64(weight)
		ends[at] = sum
		equal = equal && weight == shares[0]
	}
	if !equal {
		c.shares, c.ends = shares, ends
	}
}

// draw takes two endpoints by chance and returns the less busy one.
func (c *choice) draw(endpoints []endpoint, rnd uint64, avoid int) int {
	n, gap := len(c.in), len(c.in)
	if n == 0 {
		return -1
	}
	if n > 1 && uint(avoid) < uint(len(c.position)) && c.position[avoid] >= 0 {
		gap = int(c.position[avoid])
		n--
	}
	if c.shares != nil && n > 1 {
		return c.drawWeighted(endpoints, rnd, gap)
	}
	one := scale(uint32(rnd>>32), n)
	if n == 1 {
		return c.beside(one, gap)
	}
	two := scale(uint32(rnd), n-1)
	if two >= one {
		two++
	}
	first, second := c.beside(one, gap), c.beside(two, gap)
	if endpoints[second].pending() < endpoints[first].pending() {
		return second
	}
	return first
}

// drawWeighted is draw where a heavier endpoint is drawn more often, and may be busier. It leaves out the endpoint at
// position gap.
func (c *choice) drawWeighted(endpoints []endpoint, rnd uint64, gap int) int {
	one := c.drawn(uint32(rnd>>32), gap, len(c.in))
	two := c.drawn(uint32(rnd), min(gap, one), max(gap, one))
	first, second := int(c.in[one]), int(c.in[two])
	// Busier by weight: pending/share, without the division.
	if endpoints[second].pending()*int64(c.shares[one]) < endpoints[first].pending()*int64(c.shares[two]) {
		return second
	}
	return first
}

// drawn is the position that 32 random bits mean, by weight, without those at two others, a < b; len(in) for none.
func (c *choice) drawn(bits uint32, a, b int) int {
	n := len(c.in)
	total := c.ends[n-1]
	for _, gap := range [...]int{a, b} {
		if gap < n {
			total -= uint64(c.shares[gap])
		}
	}
	x := uint64(bits) * total >> 32
	for _, gap := range [...]int{a, b} {
		if gap < n && x >= c.ends[gap]-uint64(c.shares[gap]) {
			x += uint64(c.shares[gap])
		}
	}
	at, _ := slices.BinarySearchFunc(c.ends, x, func(end, x uint64) int {
		if end <= x {
			return -1
		}
		return 1
	})
	return at
}

// beside is the endpoint at position i of those that remain when the one at position gap is left out.
func (c *choice) beside(i, gap int) int {
	if i >= gap {
		i++
	}
	return int(c.in[i])
}

// scale maps 32 random bits to 0..n-1.
func scale(bits uint32, n int) int { return int(uint64(bits) * uint64(n) >> 32) }
