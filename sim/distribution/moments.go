package distribution

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/kernel"
)

// Draws reports whether a sample takes random numbers, whatever comes of them.
func (d *Distribution) Draws() bool { return d.kind != fixed }

// IsZero reports whether every sample is 0.
func (d Distribution) IsZero() bool {
	v, always := d.Constant()
	return always && v == 0
}

// Constant returns the value of every sample in ns; ok is false when samples differ.
func (d Distribution) Constant() (ns int64, ok bool) {
	switch d.kind {
	case fixed:
		return int64(d.a), true
	case quantiles:
		low, high := d.points[0].value, d.points[len(d.points)-1].value
		return int64(low), low == high
	case mixture:
		for i := range d.parts {
			v, always := d.parts[i].d.Constant()
			if !always || i > 0 && v != ns {
				return 0, false
			}
			ns = v
		}
		return ns, true
	}
	return 0, false
}

// Max returns the largest possible sample. It returns 0 when there is none, and for
// what is always 0.
func (d Distribution) Max() time.Duration {
	switch d.kind {
	case fixed:
		return d.a
	case uniform:
		return d.b
	case quantiles:
		return d.points[len(d.points)-1].value
	case mixture:
		longest := time.Duration(0)
		for _, p := range d.parts {
			if p.d.Max() == 0 && !p.d.IsZero() {
				return 0
			}
			longest = max(longest, p.d.Max())
		}
		return longest
	}
	return 0
}

// Mean returns the mean, by formula and to the nearest nanosecond.
func (d Distribution) Mean() time.Duration {
	m, _ := d.moments()
	return time.Duration(nanoseconds(m))
}

// CV2 returns the squared coefficient of variation, by formula: variance divided by
// the square of the mean. It is 0 for a constant and 1 for an exponential.
func (d Distribution) CV2() float64 {
	if _, always := d.Constant(); always {
		return 0
	}
	m, v := d.moments()
	return v / m / m
}

// moments returns the mean in ns and the variance.
func (d Distribution) moments() (mean, variance float64) {
	switch d.kind {
	case fixed:
		return float64(d.a), 0
	case exponential:
		return d.x, float64(d.x * d.x)
	case lognormalMedian:
		ss := float64(d.y * d.y)
		mean = kernel.Exp(d.x + float64(ss/2))
		return mean, float64(float64(mean*mean) * (kernel.Exp(ss) - 1))
	case lognormalMean:
		mean = float64(d.a)
		sd := float64(mean * d.cv)
		return mean, float64(sd * sd)
	case uniform:
		return d.x + float64(d.y/2), float64(d.y*d.y) / 12
	case normal:
		return foldedNormal(d.x, d.y)
	case quantiles:
		return d.quantileMoments()
	}
	return d.mixtureMoments()
}

// foldedNormal returns the moments of the absolute value of a normal variate.
func foldedNormal(mean, sd float64) (m, variance float64) {
	z := mean / sd
	m = float64(mean*errorFunction(z/math.Sqrt2)) +
		float64(sd*math.Sqrt(2/math.Pi)*kernel.Exp(-float64(z*z)/2))
	return m, max(0, float64(mean*mean)+float64(sd*sd)-float64(m*m))
}

// errorFunction is erf for x >= 0 by its series of positive terms; the bits are the
// same on every processor, which math.Erf does not promise.
func errorFunction(x float64) float64 {
	if x > 6 {
		return 1
	}
	xx := float64(x * x)
	term, sum := x, 0.0
	for n := 1.0; sum+term != sum; n += 2 {
		sum += term
		term = float64(term*xx) * 2 / (n + 2)
	}
	return min(1, float64(2/math.Sqrt(math.Pi)*kernel.Exp(-xx)*sum))
}

// quantileMoments adds up pieces of constant density.
func (d Distribution) quantileMoments() (mean, variance float64) {
	last := len(d.points) - 1
	for i, p := range d.points[:last] {
		a, b := float64(p.value), float64(d.points[i+1].value)
		mean += float64((d.points[i+1].share - p.share) * (a + b) / 2)
	}
	for i, p := range d.points[:last] {
		a, b := float64(p.value)-mean, float64(d.points[i+1].value)-mean
		square := (float64(a*a) + float64(a*b) + float64(b*b)) / 3
		variance += float64((d.points[i+1].share - p.share) * square)
	}
	return mean, variance
}

// mixtureMoments adds the variance inside the parts to that between their means.
func (d Distribution) mixtureMoments() (mean, variance float64) {
	for _, p := range d.parts {
		m, _ := p.d.moments()
		mean += float64(p.percent / 100 * m)
	}
	for _, p := range d.parts {
		m, v := p.d.moments()
		m -= mean
		variance += float64(p.percent / 100 * (v + float64(m*m)))
	}
	return mean, variance
}
