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
	switch {
	case x.Measure == "replicas" && w.Ready != nil:
		return ratio(sum(w.Ready, from, to), float64(to-from)) * float64(r.Scale)
	case x.Measure == "restarts" && w.Ready != nil:
		return sum(w.Restarts, from, to)
	case x.Measure == "hits" && w.Hits != nil:
		hits := sum(w.Hits, from, to)
		return ratio(hits, hits+sum(w.Misses, from, to))
	}
	return math.NaN()
}
