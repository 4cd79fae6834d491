package population

import "math"

// flow is clients on their way to one attempt, by the slot in which they will make it: a ring of changes, and the level
// that their sum has reached.
type flow struct {
	ring  []float64 // its length is a power of two
	mask  int
	level float64
	carry float64 // so few that it does not pay to move them yet
}

// newFlow returns a flow that reaches so many slots into the future.
func newFlow(slots int) *flow {
	n := 1
	for n <= slots {
		n *= 2
	}
	return &flow{ring: make([]float64, n), mask: n - 1}
}

// take returns how many clients come in a slot; slots are taken in order. Fewer than least stay for the next slot,
// which also takes care of the rounding errors of the level.
func (f *flow) take(slot int, least float64) float64 {
	i := slot & f.mask
	f.level += f.ring[i]
	f.ring[i] = 0
	n := f.level + f.carry
	if n < least {
		f.carry = n
		return 0
	}
	f.carry = 0
	return n
}

// add sends n clients from a slot on their way.
func (f *flow) add(slot int, n float64, changes []change) {
	for _, c := range changes {
		f.ring[(slot+c.slots)&f.mask] += float64(n * c.weight)
	}
}

// rest returns how many clients are still to come after a slot.
func (f *flow) rest(slot int) float64 {
	total, level := f.carry, f.level
	for i := range f.ring {
		level += f.ring[(slot+1+i)&f.mask]
		total += level
	}
	return total
}

// smear adds n to a series, spread evenly from one moment to another, in slots, and returns what lies behind its end.
func smear(series []float64, from, to, n float64) (late float64) {
	end := float64(len(series))
	if from >= end || n == 0 {
		return n
	}
	if to-from < 1e-9 {
		series[int(from)] += n
		return 0
	}
	if to > end {
		late = float64(n * (to - end) / (to - from))
		n -= late
		to = end
	}
	density := n / (to - from)
	last := min(int(math.Ceil(to)), len(series)) - 1
	left := n
	for i := int(from); i < last; i++ {
		part := float64(density * (math.Min(to, float64(i+1)) - math.Max(from, float64(i))))
		series[i] += part
		left -= part
	}
	series[last] += left
	return late
}
