package distribution

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/kernel"
)

// Times returns the distribution of a duration that is factor times as long. A factor of 0 or less, or one that is no
// number, changes nothing.
func (d Distribution) Times(factor float64) Distribution {
	if !(factor > 0) || math.IsInf(factor, 1) {
		return d
	}
	longer := func(t time.Duration) time.Duration {
		return time.Duration(math.Round(min(float64(t)*factor, float64(Longest))))
	}
	d.a, d.b = longer(d.a), longer(d.b)
	switch d.kind {
	case lognormalMedian, lognormalMean:
		d.x += kernel.Log(factor)
	case exponential, uniform, normal:
		d.x, d.y = d.x*factor, d.y*factor
	}
	points, parts := d.points, d.parts
	d.points, d.parts = nil, nil
	for _, p := range points {
		p.value = longer(p.value)
		p.slope *= factor
		d.points = append(d.points, p)
	}
	for _, p := range parts {
		p.d = p.d.Times(factor)
		d.parts = append(d.parts, p)
	}
	return d
}
