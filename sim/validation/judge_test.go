package validation_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/abate-go/abate/sim/validation"
)

func number(n int) string { return strconv.Itoa(n) }

func TestJudge(t *testing.T) {
	ten := []float64{9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11, 9, 11} // mean 10, sd 1.0328, standard error 0.2582
	for _, tt := range []struct {
		name                             string
		published                        float64
		how                              validation.Comparison
		within, deviation, alike, margin float64
		trials                           int
		values                           []float64
		pass                             bool
	}{
		{name: "mean within four errors", published: 11.03, how: validation.Mean, values: ten, pass: true},
		{name: "mean outside", published: 11.04, how: validation.Mean, values: ten},
		{name: "mean below", published: 8.96, how: validation.Mean, values: ten},
		{name: "with its own error", published: 11.4, how: validation.Mean, deviation: 0.2582, values: ten, pass: true},
		{name: "outside of both errors", published: 11.5, how: validation.Mean, deviation: 0.2582, values: ten},
		{name: "one run like ours", published: 14.2, how: validation.Mean, alike: 1, values: ten, pass: true},
		{name: "four runs like ours", published: 14.2, how: validation.Mean, alike: 4, values: ten},
		{name: "with a stated precision", published: 11.5, how: validation.Stated, within: 0.5, values: ten, pass: true},
		{name: "outside of that", published: 11.6, how: validation.Stated, within: 0.5, values: ten},
		{name: "exact", published: 7, how: validation.Exact, values: []float64{7, 7, 7}, pass: true},
		{name: "exact but for one", published: 7, how: validation.Exact, values: []float64{7, 7, 7.001}},
		{name: "always", published: 1, how: validation.Wilson, values: []float64{1, 1, 1, 1}, pass: true},
		{name: "not always", published: 1, how: validation.Wilson, values: []float64{1, 1, 1, 0}},
		{name: "never", published: 0, how: validation.Wilson, values: []float64{0, 0, 0}, pass: true},
		{name: "not never", published: 0, how: validation.Wilson, values: []float64{0, 1, 0}},
		{name: "shares of many trials", published: 0.24, how: validation.Wilson, trials: 1000,
			values: []float64{0.25, 0.27, 0.23, 0.25}, pass: true},
		{name: "outside with many trials", published: 0.22, how: validation.Wilson, trials: 1000,
			values: []float64{0.25, 0.27, 0.23, 0.25}},
		{name: "not measured", published: 10, how: validation.Mean, within: 100, values: []float64{10, math.NaN(), 10}},
		{name: "infinite", published: 10, how: validation.Mean, within: 100, values: []float64{10, math.Inf(1), 10}},
		{name: "no runs", published: 0, how: validation.Mean, within: 100},
	} {
		r := validation.Judge(tt.published, tt.how, tt.within, tt.deviation, tt.alike, tt.trials, tt.values)
		if r.Pass != tt.pass || r.Pass != r.Fits(tt.published) {
			t.Errorf("%s: pass %v, want %v; %v fits from %v to %v", tt.name, r.Pass, tt.pass, tt.published, r.Low, r.High)
		}
	}
}
