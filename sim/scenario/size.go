package scenario

import (
	"fmt"
	"math"
	"strconv"
)

// Limits of one run. More is a mistake of the file, not a rehearsal.
const (
	maxEvents = 20e9
	maxBytes  = 16 << 30
)

// size reports a scenario that would need too much.
func (c *checker) size() {
	for i := range c.s.Variants {
		v := &c.s.Variants[i]
		e := c.s.Estimate(v)
		ratio := math.Max(float64(e.Events)/maxEvents, float64(e.Bytes)/maxBytes)
		if ratio <= 1 {
			continue
		}
		fix := "a shorter duration"
		if n := c.s.fittingScale(ratio); n > 0 {
			fix = "scale: " + strconv.Itoa(n) + ", or " + fix
		}
		if e.Bytes > maxBytes {
			fix += ", or a queue.limit and an attemptTimeout"
		}
		c.Add("duration",
			fmt.Sprintf("one run of variant %q would need up to %.1f billion events and %.1f GiB of memory", v.Name,
				float64(e.Events)/1e9, float64(e.Bytes)/(1<<30)), "allowed: 20 billion events and 16 GiB; write "+fix)
		return
	}
}

// TooLarge reports whether one run of a variant might need more than a run may: see Parse. A scenario that was read is
// not; one that was made larger since may be.
func (s *Scenario) TooLarge(v *Variant) bool {
	e := s.Estimate(v)
	return float64(e.Events) > maxEvents || e.Bytes > maxBytes
}

// fittingScale is the least scale that makes a run smaller by a factor; 0 when there is none.
func (s *Scenario) fittingScale(factor float64) int {
	have := max(s.Scale, 1)
	want := math.Ceil(factor * 1.05) // what does not depend on the load stays as large as it is
	if want*float64(have) > maxScale {
		return 0
	}
	least := int(want)
	const tries = 40
	tried := 0
	for _, n := range append([]int{least}, s.divisors()...) {
		if n < least {
			continue
		}
		if tried++; tried > tries {
			break
		}
		if len(s.misfits(n)) == 0 {
			return n * have
		}
	}
	return 0
}
