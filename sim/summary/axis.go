package summary

import (
	"math"
	"slices"

	"github.com/abate-go/abate/sim/figures"
)

// axis is the scale of a chart's rows.
type axis struct {
	tops  [chartRows]float64 // what the upper edge of each row stands for, from the bottom
	steps bool               // a row is about twice the one below it; else all are of one height
}

// newAxis returns the axis for curves up to top. Rows of one height are the easiest to read. But beside a storm of
// 10,000 a second they show nothing of the 400 that a good policy sends; then they grow by steps.
func newAxis(top float64, curves []curve) axis {
	a := axis{steps: slices.ContainsFunc(curves, func(c curve) bool {
		few := c.few()
		return few > 0 && few < top/(2*chartRows) // less than half of the lowest row
	})}
	if !a.steps {
		top = roundUp(top)
		for i := range a.tops {
			a.tops[i] = top * float64(i+1) / chartRows
		}
		return a
	}
	k := 0
	for stepAt(k) < top {
		k++
	}
	for stepAt(k-1) >= top {
		k--
	}
	for i := range a.tops {
		a.tops[i] = stepAt(k - chartRows + 1 + i)
	}
	return a
}

// stepAt is the k-th of the numbers …, 1, 2, 5, 10, 20, 50, …; 1 for k = 0.
func stepAt(k int) float64 {
	decade := math.Floor(float64(k) / 3)
	return []float64{1, 2, 5}[k-3*int(decade)] * math.Pow(10, decade)
}

// few is how many attempts a second there are in the quieter columns, the lowest tenth of those that have any.
func (c *curve) few() float64 {
	some := slices.DeleteFunc(slices.Clone(c.attempts), func(n float64) bool { return n <= 0 })
	if len(some) == 0 {
		return 0
	}
	slices.Sort(some)
	return some[len(some)/10]
}

// height is how many rows a value fills.
func (a *axis) height(n float64) float64 {
	below := 0.0
	for i, top := range a.tops {
		if n <= top {
			return float64(i) + max(n-below, 0)/(top-below)
		}
		below = top
	}
	return chartRows
}

// label is the number beside a row: of steps each has one, at its upper edge.
func (a *axis) label(row int) string {
	switch {
	case a.steps, row == chartRows-1:
		return axisNumber(a.tops[row])
	case row == 0:
		return "0"
	}
	return ""
}

// about says how to read the axis, if that is not plain.
func (a *axis) about() string {
	if a.steps {
		return ". Each row is about twice the one below it"
	}
	return ""
}

// roundUp is the next number that is easy to read on an axis.
func roundUp(top float64) float64 {
	if top <= 0 || !figures.Finite(top) {
		return 1
	}
	step := math.Pow(10, math.Floor(math.Log10(top))) / 5
	return math.Ceil(top/step) * step
}
