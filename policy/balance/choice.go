package balance

import "time"

// choice is which endpoints are not ejected. It never changes once it is published, so Pick needs no lock.
type choice struct {
	in       []int32       // the endpoints
	position []int32       // of each endpoint in in; -1: ejected
	until    time.Duration // when the next ejection is over
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

// beside is the endpoint at position i of those that remain when the one at position gap is left out.
func (c *choice) beside(i, gap int) int {
	if i >= gap {
		i++
	}
	return int(c.in[i])
}

// scale maps 32 random bits to 0..n-1.
func scale(bits uint32, n int) int { return int(uint64(bits) * uint64(n) >> 32) }
