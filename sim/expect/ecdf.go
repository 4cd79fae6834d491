package expect

import (
	"math"
	"slices"
)

// Sample is a set of measured values, for instance the recovery of every run. The zero value is an empty one. Nothing
// of it depends on the order in which the values came.
type Sample struct{ sorted []float64 }

// NewSample copies values. NaN, which stands for "not measured", is left out; infinities count.
func NewSample(values []float64) Sample {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(sorted)
	return Sample{sorted}
}

// N is the number of values.
func (s Sample) N() int { return len(s.sorted) }

// At is the share of values that are at most x: the empirical distribution function. It is 0 without values.
func (s Sample) At(x float64) float64 {
	if len(s.sorted) == 0 {
		return 0
	}
	above, _ := slices.BinarySearchFunc(s.sorted, x, func(v, x float64) int {
		if v <= x {
			return -1
		}
		return 1
	})
	return float64(above) / float64(len(s.sorted))
}

// Quantile is the least value that has at least the share q of all values at or below it; q is moved into 0..1, where
// 0 gives the least value and 1 the largest. It is always one of the values, never a mean of two: definition 1 of
// R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, The American Statistician 50 (1996) 361–365.
// It is 0 without values.
func (s Sample) Quantile(q float64) float64 {
	n := len(s.sorted)
	if n == 0 {
		return 0
	}
	rank := 1
	if q > 0 {
		// 0.07·100 is 7.000000000000001 in float64, and is rank 7.
		const slack = 1e-9
		rank = int(math.Ceil(min(q, 1)*float64(n) - slack))
	}
	return s.sorted[min(max(rank, 1), n)-1]
}

// Mean is the arithmetic mean; infinite if a value is, 0 without values.
func (s Sample) Mean() float64 {
	n := len(s.sorted)
	if n == 0 {
		return 0
	}
	if math.IsInf(s.sorted[n-1], 1) {
		return math.Inf(1)
	}
	sum := 0.0
	for _, v := range s.sorted {
		sum += v
	}
	return sum / float64(n)
}

// SD is the standard deviation of the distribution that the values came from, estimated with n−1; 0 for fewer than two
// values, infinite if a value is.
func (s Sample) SD() float64 {
	n := len(s.sorted)
	if n < 2 {
		return 0
	}
	mean := s.Mean()
	if math.IsInf(mean, 0) {
		return math.Inf(1)
	}
	squares := 0.0
	for _, v := range s.sorted {
		squares += float64((v - mean) * (v - mean))
	}
	return math.Sqrt(squares / float64(n-1))
}

// Within reports whether the mean of n independent values with standard deviation sd fits a true mean: whether it is
// within 4·sd/√n of it. A fair test fails once in about 16,000 times. Without values nothing fits.
func Within(mean, sd float64, n int, truth float64) bool {
	return n > 0 && math.Abs(mean-truth) <= float64(4*sd)/math.Sqrt(float64(n))
}

// BinomialTail is the probability that at least k of n independent trials succeed, each with probability p. It is
// accurate to about 1e-10 of its value, but its last bits differ between machines: it is meant for tests.
func BinomialTail(n, k int, p float64) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n || !(p > 0):
		return 0
	case p >= 1:
		return 1
	}
	if float64(k) <= float64(float64(n)*p) { // sum the smaller side
		return 1 - binomialSum(n, 0, k-1, p)
	}
	return binomialSum(n, k, n, p)
}

// binomialSum is the probability of from..to successes.
func binomialSum(n, from, to int, p float64) float64 {
	logFactorial := func(n int) float64 {
		v, _ := math.Lgamma(float64(n) + 1)
		return v
	}
	sum := 0.0
	for k := from; k <= to; k++ {
		ways := logFactorial(n) - logFactorial(k) - logFactorial(n-k)
		sum += math.Exp(ways + float64(float64(k)*math.Log(p)) + float64(float64(n-k)*math.Log1p(-p)))
	}
	return min(sum, 1)
}
