package engine_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/kernel"
)

// Shapes from 20 µs to a day. A quantile is right to 3.5 %.
func TestQuantilesAreRightToAFewPercent(t *testing.T) {
	stream := kernel.NewStream(1, 1)
	for name, draw := range map[string]func() float64{
		"uniform":     func() float64 { return stream.Float64() * 1e9 },
		"exponential": func() float64 { return stream.Exp() * 50e6 },
		"wide":        func() float64 { return 20e3 * math.Exp(stream.Float64()*math.Log(86400e9/20e3)) },
		"constant":    func() float64 { return 123456789 },
	} {
		var h engine.Histogram
		var all []float64
		for range 20_000 {
			v := math.Floor(draw())
			h.Add(int64(v))
			all = append(all, v)
		}
		slices.Sort(all)
		for _, q := range []float64{0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1} {
			want := all[int(math.Ceil(q*float64(len(all))))-1]
			got := h.Quantile(q) * 1e9
			if want > 20e3 && math.Abs(got-want) > 0.035*want {
				t.Errorf("%s: quantile %v is %v, want %v", name, q, time.Duration(got), time.Duration(want))
			}
			if got > all[len(all)-1] || got < 0 {
				t.Errorf("%s: quantile %v is %v, beyond the largest value", name, q, time.Duration(got))
			}
		}
	}
}

func TestQuantilesNeverFall(t *testing.T) {
	var h engine.Histogram
	for _, ns := range []int64{0, 1, 1023, 1024, 5e6, 5e6, 7e6, 9e9, 3600e9, math.MaxInt64 / 4} {
		h.Add(ns)
	}
	before := 0.0
	for q := 0.0; q <= 1; q += 0.01 {
		v := h.Quantile(q)
		if !(v >= before) {
			t.Fatalf("quantile %v is %v, below %v", q, v, before)
		}
		before = v
	}
}

func TestMergedHistogramsAreOne(t *testing.T) {
	var a, b, both engine.Histogram
	stream := kernel.NewStream(1, 1)
	for i := range 1000 {
		ns := int64(stream.Exp() * 1e8)
		if i%3 == 0 {
			a.Add(ns)
		} else {
			b.Add(ns)
		}
		both.Add(ns)
	}
	a.Merge(&b)
	if a != both {
		t.Error("two halves merged are not the whole")
	}
	equal(t, "mean", a.Mean(), float64(both.Sum)/1000/1e9)
}

func TestAnEmptyHistogramHasNoQuantile(t *testing.T) {
	var h engine.Histogram
	if text := fmt.Sprint(h.Quantile(0.5), h.Mean()); text != "NaN NaN" {
		t.Errorf("quantile and mean of nothing are %s", text)
	}
	h.Merge(new(engine.Histogram))
	equal(t, "total", h.Total, 0)
	h.Add(-5)
	equal(t, "quantile of a negative time", h.Quantile(0.5), 0)
}
