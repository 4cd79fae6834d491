package engine

import (
	"math"
	"slices"
	"time"

	"github.com/abate-go/abate/sim/scenario"
)

// load is a fleet's rate over time, in requests per second: straight lines between points. Arrivals are counted in
// operational time: one request of a steady clock per unit of the area under the curve.
type load struct {
	points []loadPoint // times from the start of the warm-up
}

// loadPoint begins a segment.
type loadPoint struct {
	from  int64   // ns
	rate  float64 // per second, at from
	slope float64 // per second, per second
	area  float64 // below the curve, up to from
}

// daySteps is how many straight lines a day's sine is drawn with.
const daySteps = 288

// newLoad draws the curve of a fleet, with its surges.
func newLoad(s *scenario.Scenario, f *scenario.Fleet) load {
	if !f.Open() {
		return load{}
	}
	warm, end := int64(s.WarmUp), int64(s.WarmUp+s.Duration)
	cuts := []int64{0, warm}
	for _, p := range f.Curve {
		cuts = append(cuts, warm+int64(p.At))
	}
	for i := range s.Faults {
		if x := &s.Faults[i]; x.Surge == f.Name {
			cuts = append(cuts, warm+int64(x.At), warm+int64(x.At+x.For))
		}
	}
	if f.Daily.Swing > 0 {
		for at := int64(0); at < end; at += int64(24*time.Hour) / daySteps {
			cuts = append(cuts, at)
		}
	}
	cuts = append(cuts, end)
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var l load
	for i, from := range cuts {
		if from >= end || i+1 == len(cuts) {
			break
		}
		to := min(cuts[i+1], end)
		p := loadPoint{from: from, rate: rateAt(s, f, from, from)}
		seconds := float64(to-from) / 1e9
		p.slope = (rateAt(s, f, to, from) - p.rate) / seconds
		if n := len(l.points); n > 0 {
			last := &l.points[n-1]
			p.area = last.area + last.below(float64(from-last.from)/1e9)
		}
		l.points = append(l.points, p)
	}
	return l
}

// rateAt is the rate at a moment, as seen from a moment of the same segment: steps and surges change at their begin.
func rateAt(s *scenario.Scenario, f *scenario.Fleet, at, segment int64) float64 {
	rate := f.Rate
	now, from := time.Duration(at)-s.WarmUp, time.Duration(segment)-s.WarmUp
	if len(f.Curve) > 0 {
		rate = curveAt(f, now, from)
	}
	if f.Daily.Swing > 0 {
		day := (f.Daily.Starts + now - f.Daily.Peak).Seconds() / (24 * time.Hour).Seconds()
		rate *= 1 + float64(f.Daily.Swing*math.Cos(2*math.Pi*day))
	}
	for i := range s.Faults {
		if x := &s.Faults[i]; x.Surge == f.Name && from >= x.At && from < x.At+x.For {
			rate *= x.Factor
		}
	}
	return rate
}

// curveAt reads the curve: before its first point it is level.
func curveAt(f *scenario.Fleet, now, segment time.Duration) float64 {
	i := len(f.Curve) - 1
	for i > 0 && f.Curve[i].At > segment {
		i--
	}
	p := f.Curve[i]
	if f.Between != scenario.Ramps || i+1 == len(f.Curve) || now <= p.At {
		return p.Rate
	}
	next := f.Curve[i+1]
	way := float64(now-p.At) / float64(next.At-p.At)
	return p.Rate + float64((next.Rate-p.Rate)*way)
}

// below is the area under the segment over its first seconds.
func (p *loadPoint) below(seconds float64) float64 {
	return float64(p.rate*seconds) + float64(p.slope*seconds*seconds/2)
}

// when returns the moment at which the area under the curve reaches a value; false when it never does. at is the
// segment in which the last value was found: values must not fall between calls.
func (l *load) when(area float64, at *int32) (int64, bool) {
	for int(*at)+1 < len(l.points) && l.points[*at+1].area <= area {
		*at++
	}
	p := &l.points[*at]
	rest := area - p.area
	var seconds float64
	switch {
	case rest <= 0:
	case p.slope == 0 && p.rate == 0:
		return 0, false
	case p.slope == 0:
		seconds = rest / p.rate
	default: // rest = rate t + slope t²/2
		root := float64(p.rate*p.rate) + float64(2*p.slope*rest)
		if root < 0 {
			return 0, false
		}
		seconds = 2 * rest / (p.rate + math.Sqrt(root))
	}
	if seconds > 1e9 {
		return 0, false
	}
	return p.from + int64(seconds*1e9), true
}

// total is the number of requests up to a moment.
func (l *load) total(to int64) float64 {
	var sum float64
	for i := range l.points {
		p := &l.points[i]
		if p.from >= to {
			break
		}
		upTo := to
		if i+1 < len(l.points) {
			upTo = min(to, l.points[i+1].from)
		}
		sum += p.below(float64(upTo-p.from) / 1e9)
	}
	return sum
}
