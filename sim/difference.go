package sim

import (
	"math"

	"github.com/abate-go/abate/sim/expect"
)

// baseline is what the first variant measured, run by run, for the others to be compared with.
type baseline struct {
	measures map[string]int // where a measure stands in each of the runs
	runs     [][]float64
}

func newBaseline(standard []expect.Expectation, all []outcome) *baseline {
	b := &baseline{measures: make(map[string]int, len(standard))}
	for i := range standard {
		b.measures[label(&standard[i])] = i
	}
	for i := range all {
		b.runs = append(b.runs, all[i].measures)
	}
	return b
}

// differences compares a variant with the first one, seed by seed: what both owe to the same random numbers cancels
// out. What fewer than two seeds measured under both is left out.
func (b *baseline) differences(standard []expect.Expectation, all []outcome) []Difference {
	var list []Difference
	for i := range standard {
		x := &standard[i]
		k, known := b.measures[label(x)]
		if !known {
			continue
		}
		var pairs []float64
		for run := range min(len(all), len(b.runs)) {
			if d := all[run].measures[i] - b.runs[run][k]; !math.IsNaN(d) && !math.IsInf(d, 0) {
				pairs = append(pairs, d)
			}
		}
		if len(pairs) < 2 {
			continue
		}
		s := expect.NewSample(pairs)
		mean, half := s.Mean(), float64(student(s.N()-1)*s.SD())/math.Sqrt(float64(s.N()))
		list = append(list, Difference{
			Measure: label(x), Unit: unitOf(x), Mean: mean, Low: mean - half, High: mean + half, Pairs: s.N(),
		})
	}
	return list
}

// student is the quantile 0.975 of Student's t with so many degrees of freedom, at least 1: the half-width of a 95 %
// interval in standard errors. Beyond four it is the expansion 26.7.5 in M. Abramowitz and I. A. Stegun, Handbook of
// Mathematical Functions (1964), which is then within 0.2 % of it.
func student(freedom int) float64 {
	few := [...]float64{12.7062, 4.3027, 3.1824, 2.7764}
	if freedom <= len(few) {
		return few[freedom-1]
	}
	const z = 1.959964
	const (
		z3 = z * z * z
		z5 = z3 * z * z
		z7 = z5 * z * z
	)
	n := float64(freedom)
	return z + (z3+z)/4/n + (5*z5+16*z3+3*z)/96/float64(n*n) + (3*z7+19*z5+17*z3-15*z)/384/float64(n*n*n)
}
