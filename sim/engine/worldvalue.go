package engine

import (
	"math"

	"github.com/abate-go/abate/sim/expect"
)

// ofWorld is what an expectation measures at a service that changes while it runs.
func (r *Record) ofWorld(x *expect.Expectation, s *ServiceRecord, from, to int) float64 {
	w := s.world
	if w == nil {
		return math.NaN()
	}
	switch x.Measure {
	case "hits":
		hits := sum(w.Hits, from, to)
		return ratio(hits, hits+sum(w.Misses, from, to))
	}
	return math.NaN()
}
