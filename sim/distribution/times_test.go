package distribution_test

import (
	"math"
	"testing"

	"github.com/abate-go/abate/sim/distribution"
	"github.com/abate-go/abate/sim/kernel"
)

func TestTimesScalesEveryShape(t *testing.T) {
	for _, text := range []string{
		"50ms", "exponential 50ms", "lognormal median 50ms p99 400ms", "lognormal mean 50ms cv 2",
		"uniform 10ms..20ms", "normal 50ms sd 5ms", "99% 5ms, 1% exponential 1s", "quantiles p0 1ms p50 5ms p100 1s"} {
		d, err := distribution.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		longer := d.Times(3)
		if mean, want := longer.Mean().Seconds(), 3*d.Mean().Seconds(); math.Abs(mean-want) > 1e-6*want {
			t.Errorf("%s: mean %v, want %v", text, mean, want)
		}
		a, b := kernel.NewStream(1, 2), kernel.NewStream(1, 2)
		for range 100 {
			x, y := float64(d.Sample(&a)), float64(longer.Sample(&b))
			if math.Abs(y-3*x) > 3+1e-6*x {
				t.Fatalf("%s: a draw of %v became %v", text, x, y)
			}
		}
		if _, err := distribution.Parse(longer.String()); err != nil {
			t.Errorf("%s: %v", longer, err)
		}
	}
	d, _ := distribution.Parse("50ms")
	for _, factor := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if d.Times(factor).Mean() != d.Mean() {
			t.Errorf("factor %v changes it", factor)
		}
	}
}
