package population

import (
	"math"
	"time"
)

// Curve is what happened over time: one member per slot in each series. Exact returns whole numbers, Cohort expected
// ones. Requests and attempts are counted apart: a request is offered once, attempted any number of times, and then
// served, given up, or still waiting at the end of the run.
type Curve struct {
	// Slot is the time that one member stands for.
	Slot time.Duration
	// Offered requests, by the time of their first attempt.
	Offered []float64
	// Attempts, first ones included, by the time of their begin.
	Attempts []float64
	// Served requests, by the time of the answer.
	Served []float64
	// Failed requests: those given up, by the time of that.
	Failed []float64
	// Waiting is how many requests had no end yet at the end of the run.
	Waiting float64
	// Events is how many events it took; 0 from Cohort.
	Events int64
}

func newCurve(c *Config) *Curve {
	n := c.slots()
	all := make([]float64, 4*n)
	return &Curve{Slot: c.Slot, Offered: all[:n:n], Attempts: all[n : 2*n : 2*n], Served: all[2*n : 3*n : 3*n],
		Failed: all[3*n:]}
}

// Totals are sums over a run. Offered = Served + Failed + Waiting.
type Totals struct{ Offered, Attempts, Served, Failed, Waiting float64 }

// Totals returns the sums of the curve's series.
func (c *Curve) Totals() Totals {
	return Totals{sum(c.Offered), sum(c.Attempts), sum(c.Served), sum(c.Failed), c.Waiting}
}

// sum keeps what the additions lose (Neumaier's way), so that a million small numbers do not add up to a wrong digit.
func sum(list []float64) float64 {
	total, lost := 0.0, 0.0
	for _, x := range list {
		t := total + x
		if math.Abs(total) >= math.Abs(x) {
			lost += (total - t) + x
		} else {
			lost += (x - t) + total
		}
		total = t
	}
	return total + lost
}

// ServedBy returns the end of the slot by which a share, 0 to 1, of all offered requests had been served. ok is false
// when the run ended before that.
func (c *Curve) ServedBy(share float64) (at time.Duration, ok bool) {
	const rounding = 1e-9 // of numbers that Cohort adds up
	offered := sum(c.Offered)
	needed := float64((share - rounding) * offered)
	served := 0.0
	for i, n := range c.Served {
		served += n
		if served >= needed {
			return time.Duration(i+1) * c.Slot, true
		}
	}
	return 0, false
}

// PerSecond adds the members of a series of the curve up in bins of one second; of one slot if that is longer. The last
// bin may be a part of a second.
func (c *Curve) PerSecond(series []float64) []float64 {
	slots := max(1, int((time.Second+c.Slot/2)/c.Slot))
	bins := make([]float64, (len(series)+slots-1)/slots)
	for i, n := range series {
		bins[i/slots] += n
	}
	return bins
}

// L1 returns how far the attempts of the curve are from those of another one of the same run, per second: the sum of
// all differences as a share of the other's attempts. 0 is no difference; without any attempts in either it is 0, and
// +Inf without any in the other alone.
func (c *Curve) L1(other *Curve) float64 {
	a, b := c.PerSecond(c.Attempts), other.PerSecond(other.Attempts)
	differ := 0.0
	for i := range max(len(a), len(b)) {
		var x, y float64
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		differ += math.Abs(x - y)
	}
	if differ == 0 {
		return 0
	}
	return differ / sum(b)
}
