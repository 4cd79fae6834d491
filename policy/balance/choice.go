package balance

import (
	"math/bits"
	"slices"
	"time"
)

// choice is which endpoints attempts may go to. It never changes once it is published, so Pick needs no lock.
type choice struct {
	in       []member
	position []int32       // of each endpoint in in; -1: out
	until    time.Duration // when the next ejection is over, the next step of a ramp, or the next look at zones
	shares   []uint32      // what each of in weighs; nil if all weigh the same
	ends     []uint64      // sums of shares up to each of in, itself included
	timed    bool          // it counts how long attempts take
	panics   bool          // health checks are not believed

	ejected int // endpoints
}

// member is an endpoint in the choice.
type member struct {
	*endpoint
	i int32 // its number
}

// choose puts the choice together anew, as it is at a time. Called with the lock, or before anybody else knows the
// balancer.
func (b *Balancer) choose(now time.Duration) *choice {
	n := len(b.endpoints)
	c := &choice{in: make([]member, 0, n), position: make([]int32, n), until: never, timed: b.zones != nil}
	unhealthy, decides := 0, b.line.newest.Load() == b // else nobody has it come back
	for i, e := range b.endpoints {
		c.position[i] = -1
		switch {
		case e.out && (decides || now < e.until):
			c.until = min(c.until, e.until)
			c.ejected++
		case e.unhealthy.Load():
			unhealthy++
		default:
			c.in = append(c.in, member{e, int32(i)})
		}
	}
	if unhealthy > 0 && (len(c.in) == 0 || float64(len(c.in)) < b.config.panicThreshold()*float64(n)-1e-6) {
		c.panics, c.in = true, c.in[:0]
		for i, e := range b.endpoints {
			if !e.out || !decides && now >= e.until {
				c.in = append(c.in, member{e, int32(i)})
			}
		}
	}
	for at := range c.in {
		c.position[c.in[at].i] = int32(at)
	}
	c.weigh(b, now)
	b.choice.Store(c)
	return c
}

// weigh notes what the endpoints weigh at a time, unless that makes no difference.
func (c *choice) weigh(b *Balancer, now time.Duration) {
	r := &b.ramps
	if r.weights == nil && r.step == 0 && b.zones == nil {
		return
	}
	c.shares = make([]uint32, len(c.in))
	for at := range c.in {
		m := &c.in[at]
		weight, until := r.of(int(m.i), m.endpoint, now)
		c.shares[at], c.until = weight, min(c.until, until)
	}
	c.prefer(b, now)
	if len(c.shares) == 0 || slices.Max(c.shares) == slices.Min(c.shares) {
		c.shares = nil
		return
	}
	c.ends = make([]uint64, len(c.in))
	sum := uint64(0)
	for at, share := range c.shares {
		sum += uint64(share)
		c.ends[at] = sum
	}
}

// draw takes two endpoints by chance and returns the position of the less busy one, -1 if there is none.
func (c *choice) draw(rnd uint64, avoid int) int {
	n, gap := len(c.in), len(c.in)
	if n == 0 {
		return -1
	}
	if n > 1 && uint(avoid) < uint(len(c.position)) && c.position[avoid] >= 0 {
		gap = int(c.position[avoid])
		n--
	}
	if c.shares != nil && n > 1 {
		return c.drawWeighted(rnd, gap)
	}
	one := scale(uint32(rnd>>32), n)
	if n == 1 {
		return beside(one, gap)
	}
	two := scale(uint32(rnd), n-1)
	if two >= one {
		two++
	}
	first, second := beside(one, gap), beside(two, gap)
	if c.in[second].pending() < c.in[first].pending() {
		return second
	}
	return first
}

// drawWeighted is draw where a heavier endpoint is drawn more often, and may be busier. It leaves out the endpoint at
// position gap.
func (c *choice) drawWeighted(rnd uint64, gap int) int {
	one := c.drawn(uint32(rnd>>32), gap, len(c.in))
	two := c.drawn(uint32(rnd), min(gap, one), max(gap, one))
	// Busier by weight: pending/share, without the division.
	if c.in[two].pending()*int64(c.shares[one]) < c.in[one].pending()*int64(c.shares[two]) {
		return two
	}
	return one
}

// drawn is the position that 32 random bits mean, by weight, without those at two others, a < b; len(in) for none.
func (c *choice) drawn(random uint32, a, b int) int {
	n := len(c.in)
	total := c.ends[n-1]
	for _, gap := range [...]int{a, b} {
		if gap < n {
			total -= uint64(c.shares[gap])
		}
	}
	x, _ := bits.Mul64(uint64(random)<<32, total)
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

// beside is position i of those that remain when the one at position gap is left out.
func beside(i, gap int) int {
	if i >= gap {
		i++
	}
	return i
}

// scale maps 32 random bits to 0..n-1.
func scale(bits uint32, n int) int { return int(uint64(bits) * uint64(n) >> 32) }
