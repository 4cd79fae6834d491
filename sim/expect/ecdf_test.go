package expect_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/abate-go/abate/sim/expect"
)

func TestSample(t *testing.T) {
	s := expect.NewSample([]float64{3, 1, math.NaN(), 2, 10})
	if s.N() != 4 || s.Mean() != 4 || math.Abs(s.SD()-math.Sqrt(50.0/3)) > 1e-12 {
		t.Errorf("n %d, mean %v, sd %v", s.N(), s.Mean(), s.SD())
	}
	for q, want := range map[float64]float64{
		-1: 1, 0: 1, 0.25: 1, 0.26: 2, 0.5: 2, 0.75: 3, 0.76: 10, 1: 10, 2: 10, math.Inf(1): 10,
	} {
		if got := s.Quantile(q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := s.Quantile(math.NaN()); got != 1 {
		t.Errorf("quantile NaN is %v", got)
	}
}

func TestQuantileIsTheRankThatItsNameSays(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[99-i] = float64(i + 1)
	}
	s := expect.NewSample(values)
	for k := 1; k <= 100; k++ {
		if got := s.Quantile(float64(k) / 100); got != float64(k) {
			t.Errorf("p%d of 1..100 is %v", k, got)
		}
	}
}

func TestSampleOfRunsThatNeverRecover(t *testing.T) {
	inf := math.Inf(1)
	s := expect.NewSample([]float64{inf, 5, inf, 7})
	if s.Quantile(0.5) != 7 || s.Quantile(0.51) != inf || s.Mean() != inf || s.SD() != inf {
		t.Errorf("p50 %v, p51 %v, mean %v, sd %v", s.Quantile(0.5), s.Quantile(0.51), s.Mean(), s.SD())
	}
	both := expect.NewSample([]float64{-inf, inf})
	if math.IsNaN(both.Mean()) || math.IsNaN(both.SD()) {
		t.Errorf("mean %v, sd %v", both.Mean(), both.SD())
	}
	var none expect.Sample
	if none.N() != 0 || none.Mean() != 0 || none.SD() != 0 || none.Quantile(0.5) != 0 {
		t.Error("an empty sample is not all zero")
	}
	if one := expect.NewSample([]float64{3}); one.SD() != 0 || one.Mean() != 3 {
		t.Errorf("one value: mean %v, sd %v", one.Mean(), one.SD())
	}
}

func TestSampleDoesNotDependOnOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, 1000)
	for i := range values {
		values[i] = r.ExpFloat64() * math.Pow(10, float64(i%12))
	}
	first := expect.NewSample(values)
	for range 20 {
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
		if s := expect.NewSample(values); s.Mean() != first.Mean() || s.SD() != first.SD() {
			t.Fatal("another order, another result")
		}
	}
	before := values[0]
	expect.NewSample(values)
	if values[0] != before {
		t.Error("NewSample sorts its argument")
	}
}

// within reports whether the mean of n independent values with standard deviation sd fits a true mean: whether it is
// within 4·sd/√n of it. A fair test fails once in about 16,000 times. Without values nothing fits.
func within(mean, sd float64, n int, truth float64) bool {
	return n > 0 && math.Abs(mean-truth) <= float64(4*sd)/math.Sqrt(float64(n))
}

func TestWithinFourStandardErrors(t *testing.T) {
	tests := []struct {
		mean, sd float64
		n        int
		truth    float64
		want     bool
	}{
		{10.25, 1, 256, 10, true}, {10.2501, 1, 256, 10, false}, {9.75, 1, 256, 10, true}, {9.7499, 1, 256, 10, false},
		{10, 0, 5, 10, true}, {10.1, 0, 5, 10, false}, {10, 1, 0, 10, false}, {math.NaN(), 1, 5, 10, false},
		{10, math.NaN(), 5, 10, false},
	}
	for _, tt := range tests {
		if within(tt.mean, tt.sd, tt.n, tt.truth) != tt.want {
			t.Errorf("%+v: %v", tt, !tt.want)
		}
	}
}
