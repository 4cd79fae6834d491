package report

import (
	"math"
	"strings"

	"github.com/abate-go/abate/sim/figures"
)

// resolution is how many steps the height of a chart has: the finest difference that a curve can show. Charts whose
// values are not read back need less.
const (
	resolution = 2000
	coarse     = 250
)

// tick is a mark on an axis, at a share of its length.
type tick struct {
	Share float64
	Text  string
	Minor bool // left out on narrow screens
}

// Class returns the style of a mark: those at the ends may have to stay within the chart.
func (t tick) Class() string {
	class := ""
	if t.Minor {
		class = "minor "
	}
	switch {
	case t.Share > 0.97:
		return class + "last"
	case t.Share < 0.03:
		return class + "first"
	}
	return strings.TrimSpace(class)
}

// At returns the place in percent, for a style.
func (t tick) At() string { return place(t.Share) }

// scale maps values to heights, linearly or by logarithm. Both ends are finite; of a logarithmic one, positive.
type scale struct {
	Log       bool
	Low, High float64
}

// tiny and huge bound what an axis shows: nothing that was measured lies beyond, and steps between them can be counted.
const (
	tiny = 1e-9
	huge = 1e15
)

func bounded(v float64) float64 { return math.Max(tiny, math.Min(v, huge)) }

// upTo returns a scale from 0 to top.
func upTo(top float64) scale {
	if !figures.Finite(top) {
		top = 1
	}
	return scale{High: bounded(top)}
}

// linear returns a scale from 0 that holds all values up to top.
func linear(top float64) scale {
	if !figures.Finite(top) || top <= 0 {
		top = 1
	}
	top = bounded(top)
	step := stepFor(top, 4)
	return scale{Low: 0, High: step * math.Ceil(float64(top/step)-1e-9)}
}

// stepFor returns the smallest of 1, 2, 2.5, 5 × 10^k with which at most n steps reach top.
func stepFor(top float64, n int) float64 {
	size := math.Pow(10, math.Floor(math.Log10(top/float64(n))))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if size*factor*float64(n) >= top*(1-1e-9) {
			return size * factor
		}
	}
	return size * 10
}

// logarithmic returns a scale that holds low to high, both widened to a neighbour in 1, 2, 5 × 10^k.
func logarithmic(low, high float64) scale {
	if !figures.Finite(low) || low <= 0 {
		low = 1e-3
	}
	if !figures.Finite(high) || high <= low {
		high = low
	}
	low, high = bounded(low), bounded(high)
	s := scale{Log: true, Low: roundTo125(low, false), High: roundTo125(high, true)}
	if s.High <= s.Low*1.5 {
		s.High = roundTo125(s.Low*1.5, true)
	}
	return s
}

// roundTo125 returns the next number of the form 1, 2, 5 × 10^k.
func roundTo125(v float64, up bool) float64 {
	size := math.Pow(10, math.Floor(math.Log10(v)))
	steps := []float64{0.5, 1, 2, 5, 10}
	if up {
		for _, step := range steps {
			if size*step >= v*(1-1e-9) {
				return size * step
			}
		}
		return size * 10
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if size*steps[i] <= v*(1+1e-9) {
			return size * steps[i]
		}
	}
	return size
}

// share returns how high a value lies, from 0 at the foot to 1 at the head; beyond them is cut off.
func (s scale) share(v float64) float64 {
	var at float64
	switch {
	case !figures.Finite(v):
		return 0
	case s.Log && v <= s.Low:
		return 0
	case s.Log:
		at = math.Log(v/s.Low) / math.Log(s.High/s.Low)
	default:
		at = (v - s.Low) / (s.High - s.Low)
	}
	return math.Max(0, math.Min(1, at))
}

// ticks returns the marks of the scale in a unit, in percent from the foot.
func (s scale) ticks(unit string) []tick {
	var values []float64
	if s.Log {
		values = s.logTicks()
	} else {
		step := stepFor(s.High-s.Low, 4)
		for i := range int((s.High-s.Low)/step+1e-9) + 1 {
			values = append(values, s.Low+float64(float64(i)*step))
		}
	}
	out := make([]tick, len(values))
	for i, v := range values {
		out[i] = tick{Share: s.share(v), Text: quantity(v, unit)}
	}
	return out
}

// logTicks returns powers of ten, and 2 and 5 between them where there is room.
func (s scale) logTicks() []float64 {
	factors := []float64{1, 2, 5}
	switch decades := math.Log10(s.High / s.Low); {
	case decades > 2.1:
		factors = factors[:1]
	case decades > 1.7:
		factors = []float64{1, 3}
	}
	var values []float64
	for size := math.Pow(10, math.Floor(math.Log10(s.Low))); size <= s.High*1.001; size *= 10 {
		for _, factor := range factors {
			if v := size * factor; v >= s.Low*0.999 && v <= s.High*1.001 {
				values = append(values, v)
			}
		}
	}
	return values
}

// place writes a share of a length in percent, for a style.
func place(share float64) string {
	if !figures.Finite(share) {
		share = 0
	}
	return figures.Decimals(float64(share*100), 2)
}

// timeStep returns the distance of marks on a time axis of so many seconds.
func timeStep(span float64, n int) float64 {
	for _, step := range []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
		3600, 7200, 10800, 21600, 43200, 86400} {
		if span <= step*float64(n) {
			return step
		}
	}
	return 86400 * math.Ceil(float64(span/float64(n)/86400))
}

// clock writes a moment of a run by the unit of its axis' step: "30 s", "5 min", "2 h".
func clock(at, span float64) string {
	switch {
	case at == 0:
		return "0"
	case span > 7200:
		return figures.Decimals(at/3600, 2) + space + "h"
	case span > 300:
		return figures.Decimals(at/60, 2) + space + "min"
	}
	return figures.Decimals(at, 2) + space + "s"
}

// timeTicks returns the marks of a time axis from from to to, both in seconds.
func timeTicks(from, to float64) []tick {
	span := to - from
	if !(span > tiny && math.Abs(from) < huge && math.Abs(to) < huge) {
		return nil
	}
	step := timeStep(span, 9)
	var out []tick
	for i := math.Ceil(float64(from/step) - 1e-9); ; i++ {
		at := float64(i * step)
		if at > to+step*1e-6 {
			return out
		}
		out = append(out, tick{Share: (at - from) / span, Text: clock(at, span), Minor: int64(i)%2 != 0})
	}
}
