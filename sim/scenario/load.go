package scenario

import (
	"math"
	"slices"
	"time"
)

// openLoad is what a fleet with a rate or a curve offers at most.
func (e *estimator) openLoad(f *Fleet) traffic {
	end := e.s.Duration
	cuts := []time.Duration{-e.s.WarmUp, end}
	for _, p := range f.Curve {
		cuts = append(cuts, p.At)
	}
	var surges []*Fault
	for i := range e.s.Faults {
		if x := &e.s.Faults[i]; x.Surge == f.Name {
			surges = append(surges, x)
			cuts = append(cuts, x.At, x.At+x.For)
		}
	}
	slices.Sort(cuts)
	var sum traffic
	for i, from := range cuts[:len(cuts)-1] {
		to := min(cuts[i+1], end)
		if from >= to {
			continue
		}
		rate := f.rateIn(from, to) * (1 + f.Daily.Swing)
		for _, x := range surges {
			if from >= x.At && from < x.At+x.For {
				rate *= x.Factor
			}
		}
		sum.peak = math.Max(sum.peak, rate)
		sum.total += float64(rate * (to - from).Seconds())
	}
	sum.total = surely(sum.total) + float64(max(f.Instances, 1))
	return sum
}

// rateIn is the highest rate between two neighbouring points of the curve.
func (f *Fleet) rateIn(from, to time.Duration) float64 {
	if len(f.Curve) == 0 {
		return f.Rate
	}
	i := len(f.Curve) - 1
	for i > 0 && f.Curve[i].At > from {
		i--
	}
	p := f.Curve[i]
	if f.Between != Ramps || i+1 == len(f.Curve) || from < p.At {
		return p.Rate
	}
	next := f.Curve[i+1]
	at := func(t time.Duration) float64 {
		return p.Rate + float64((next.Rate-p.Rate)*(float64(t-p.At)/float64(next.At-p.At)))
	}
	return math.Max(at(from), at(to))
}
