package validation_test

import (
	"math"
	"testing"
)

// binomialTail is the probability that at least k of n independent trials succeed, each with probability p. It is
// accurate to about 1e-10 of its value; its last bits differ between machines.
func binomialTail(n, k int, p float64) float64 {
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

// The values stand in the research notes (false trips of a breaker with a window of n that opens at k failures).
func TestBinomialTailMatchesPublishedValues(t *testing.T) {
	tests := []struct {
		n, k    int
		p, want float64
	}{
		{10, 5, 0.1, 0.00163494}, {20, 10, 0.3, 0.0479619}, {20, 10, 0.4, 0.244663}, {100, 50, 0.45, 0.182728},
		{5, 0, 0.3, 1}, {5, 6, 0.3, 0}, {5, 5, 0, 0}, {5, 5, 1, 1}, {5, 0, 0, 1}, {5, 5, math.NaN(), 0}, {2, 1, 0.5, 0.75},
		{1000, 1, 1e-3, 0.6323045752290363},
	}
	for _, tt := range tests {
		if got := binomialTail(tt.n, tt.k, tt.p); math.Abs(got-tt.want) > 1e-5*tt.want {
			t.Errorf("P(X >= %d of %d, p %v) = %v, want %v", tt.k, tt.n, tt.p, got, tt.want)
		}
	}
}
