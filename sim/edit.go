package sim

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/scenario"
)

// withLoad multiplies what all fleets offer.
func withLoad(s *scenario.Scenario, v *scenario.Variant, factor float64) (*scenario.Scenario, *scenario.Variant) {
	s, v = s.Copy(v)
	for i := range s.Clients {
		f := &s.Clients[i]
		f.Rate *= factor
		for k := range f.Curve {
			f.Curve[k].Rate *= factor
		}
		f.Users, f.Once = times(f.Users, factor), times(f.Once, factor)
	}
	return s, v
}

// withTrouble makes all faults take factor times as long; what begins after the end of another one begins that much
// later, and so does the end of the run.
func withTrouble(s *scenario.Scenario, v *scenario.Variant, factor float64) (*scenario.Scenario, *scenario.Variant) {
	begin, end := s.Trouble()
	longer := time.Duration(float64(end-begin) * (factor - 1)).Round(time.Millisecond)
	s, v = s.Copy(v)
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.At >= end { // what an operator does afterwards
			f.At += longer
			continue
		}
		f.At = begin + time.Duration(float64(f.At-begin)*factor).Round(time.Millisecond)
		if f.For > 0 { // none would be for ever
			f.For = max(time.Duration(float64(f.For)*factor).Round(time.Millisecond), time.Millisecond)
		}
		f.Rollout = min(time.Duration(float64(f.Rollout)*factor).Round(time.Millisecond), rolloutMost(f))
	}
	s.Duration += longer
	return s, v
}

// rolloutMost is the longest rollout that ends with the fault; a restart's comes before its down time.
func rolloutMost(f *scenario.Fault) time.Duration {
	if f.Restart != "" {
		return math.MaxInt64
	}
	return f.For
}

// withCapacity multiplies the workers of all services; at least one is left.
func withCapacity(s *scenario.Scenario, v *scenario.Variant, factor float64) (*scenario.Scenario, *scenario.Variant) {
	s, v = s.Copy(v)
	for i := range v.Overrides {
		x := &v.Overrides[i]
		switch {
		case x.Workers > 1 || x.Workers == 1 && x.Replicas <= 1:
			x.Workers = times(x.Workers, factor)
		case x.Workers == 1:
			x.Replicas = times(x.Replicas, factor)
		}
	}
	return s, v
}

func times(n int, factor float64) int {
	if n == 0 {
		return 0
	}
	return max(1, int(math.Round(float64(n)*factor)))
}
