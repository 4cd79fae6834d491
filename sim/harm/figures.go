package harm

import (
	"math"

	"github.com/abate-go/abate/sim/expect"
)

// Limits of what counts.
const (
	leastHarm    = 3.0    // requests: less is no scandal,
	leastShare   = 0.0005 // of those offered: nor is less than that
	worseRatio   = 1.02
	betterRatio  = 0.9
	worsePoints  = 0.1  // of a healthy day
	mostUnwell   = 0.01 // harm without any policy on a day that is healthy
	quick        = 1.0  // seconds
	leastToBack  = 20.0 // requests within Hold, for recovery to mean anything
	leastNormal  = 0.9  // goodput before the trouble, the same
	busyRate     = 10.0 // calls a second of one instance: it can know within a second
	none, naive  = 0, 1 // policies that others are compared with
	perHundred   = 100.0
	noMeasure    = -1.0
	neverSeconds = 1e9
)

// Ratio returns the harm under a policy divided by that under another one, over all seeds.
func (c *Case) Ratio(policy, other int) float64 {
	var with, without, floor float64
	for i := range c.Runs[policy] {
		with += c.Runs[policy][i].Harm()
		without += c.Runs[other][i].Harm()
		floor += math.Max(leastHarm, leastShare*c.Runs[other][i].Offered)
	}
	return (with + floor) / (without + floor)
}

// Points returns how many of a hundred requests are harmed under a policy.
func (c *Case) Points(policy int) float64 {
	var harm, offered float64
	for i := range c.Runs[policy] {
		harm += c.Runs[policy][i].Harm()
		offered += c.Runs[policy][i].Offered
	}
	if offered == 0 {
		return 0
	}
	return perHundred * harm / offered
}

// Healthy reports whether the case is a healthy day: of a healthy kind, and nearly all requests are answered in time
// without any policy.
func (c *Case) Healthy() bool {
	return c.System.Kind.Healthy() && c.Points(none) <= perHundred*mostUnwell
}

// measurable reports whether there are enough requests to see when goodput is back.
func (c *Case) measurable() bool {
	s := c.System
	return !s.Kind.Healthy() && s.Rate*s.Hold.Seconds() >= leastToBack
}

// recovery returns the seconds until goodput is back in one run, and noMeasure where that cannot be said.
func (c *Case) recovery(policy, seed int) float64 {
	r := c.Runs[policy][seed].Recovery
	switch {
	case math.IsNaN(r):
		return noMeasure
	case math.IsInf(r, 1):
		return neverSeconds
	}
	return r
}

// Figures are what came of one policy over many systems.
type Figures struct {
	Policy      string
	ToNothing   Comparison
	ToNaive     Comparison
	SlowRuns    int     // runs in which nothing needs more than a second to be back
	Back        float64 // and the median of the seconds that the policy needs there
	BusyRuns    int     // of those: where an instance makes ten calls a second or more
	BusyBack    float64
	QuickRuns   int     // runs in which nothing is back within a second
	Late        int     // and in how many of them the policy is not
	HealthyDays int     // systems
	Hurt        int     // of those: more than 0.1 point worse than without any policy
	MostHurt    float64 // points
}

// Comparison is a policy and another one on all systems that are not healthy days.
type Comparison struct {
	Systems                  int
	P50, P75, P95, P99, Most float64 // of the ratio of their harms
	Worse                    int     // systems with a ratio above 1.02
	Low, High                float64 // the 95 % interval of their share
	Better                   int     // systems with a ratio below 0.9
	Excess                   float64 // mean harm more than under the other one, in points
}

// compare compares a policy with another one.
func compare(cases []Case, policy, other int) Comparison {
	var x Comparison
	var ratios []float64
	for i := range cases {
		c := &cases[i]
		if c.Healthy() {
			continue
		}
		ratio := c.Ratio(policy, other)
		ratios = append(ratios, ratio)
		x.Worse += one(ratio > worseRatio)
		x.Better += one(ratio < betterRatio)
		x.Excess += c.Points(policy) - c.Points(other)
	}
	x.Systems = len(ratios)
	x.Excess /= float64(max(x.Systems, 1))
	x.Low, x.High = expect.Wilson(x.Worse, x.Systems)
	s := expect.NewSample(ratios)
	x.P50, x.P75, x.P95 = s.Quantile(0.5), s.Quantile(0.75), s.Quantile(0.95)
	x.P99, x.Most = s.Quantile(0.99), s.Quantile(1)
	return x
}

// Sum sums up the cases of one policy.
func Sum(cases []Case, name string, policy int) Figures {
	f := Figures{Policy: name, ToNothing: compare(cases, policy, none), ToNaive: compare(cases, policy, naive)}
	var backs, busy []float64
	for i := range cases {
		c := &cases[i]
		if c.Healthy() {
			f.healthy(c, policy)
			continue
		}
		before := len(backs)
		backs = f.recoveries(c, policy, backs)
		if c.System.Rate >= busyRate*float64(c.System.Instances) {
			busy = append(busy, backs[before:]...)
		}
	}
	f.Back, f.BusyBack = expect.NewSample(backs).Quantile(0.5), expect.NewSample(busy).Quantile(0.5)
	f.BusyRuns = len(busy)
	return f
}

// healthy counts a healthy day.
func (f *Figures) healthy(c *Case, policy int) {
	points := c.Points(policy) - c.Points(none)
	f.HealthyDays++
	f.Hurt += one(points > worsePoints)
	f.MostHurt = math.Max(f.MostHurt, points)
}

// recoveries counts how soon the runs of a case are back.
func (f *Figures) recoveries(c *Case, policy int, backs []float64) []float64 {
	if !c.measurable() {
		return backs
	}
	for seed := range c.Runs[policy] {
		if !(c.Runs[none][seed].Normal >= leastNormal) { // or not a number: nothing was offered
			continue
		}
		without, with := c.recovery(none, seed), c.recovery(policy, seed)
		switch {
		case without == noMeasure || with == noMeasure:
		case without > quick:
			f.SlowRuns++
			backs = append(backs, with)
		default:
			f.QuickRuns++
			f.Late += one(with > quick)
		}
	}
	return backs
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
