package validation

import (
	"math"

	"github.com/abate-go/abate/sim/expect"
)

// Comparison is how a row is judged: see the package.
type Comparison string

// The comparisons.
const (
	Mean   Comparison = "4 sd/√R" // the mean of runs on independent seeds
	Stated Comparison = "± given" // the same, on top of the precision in which the number was published
	Wilson Comparison = "Wilson"  // a probability, by its score interval
	Exact  Comparison = "exact"   // arithmetic: every run
)

// Row is one number of somebody else's, and what the simulator makes of it.
type Row struct {
	ID        string     // unique and stable, such as "erlang-c/0.8-1-1/wait"
	Source    string     // who says so
	What      string     // what was counted, and under which parameters
	Published float64    // by the source
	Measured  float64    // mean over the runs
	Error     float64    // standard error of Measured, that of Published included where it is a mean of runs
	Low, High float64    // what fits: published values from Low to High. For Exact: the least and the largest run
	Runs      int        // independent seeds
	Compared  Comparison // how
	Pass      bool       // whether Published fits
}

// deviations is how many standard errors still fit.
const deviations = 4

// Fits reports whether a published value would agree with the runs.
func (r *Row) Fits(published float64) bool {
	if r.Compared == Exact {
		const rounding = 1e-9
		slack := float64(rounding * max(1, math.Abs(published)))
		return math.Abs(r.Low-published) <= slack && math.Abs(r.High-published) <= slack
	}
	return r.Low <= published && published <= r.High
}

// judge makes the row of a claim, given what each run measured.
func judge(source string, c *claim, values []float64) Row {
	sample := expect.NewSample(values)
	r := Row{
		ID:        c.id,
		Source:    source,
		What:      c.what,
		Published: c.published,
		Measured:  sample.Mean(),
		Runs:      len(values),
		Compared:  c.how,
		Low:       math.Inf(1),
		High:      math.Inf(-1), // nothing fits what could not be measured
	}
	if sample.N() == len(values) && !math.IsInf(r.Measured, 0) {
		r.interval(c, &sample)
	}
	r.Pass = r.Fits(r.Published)
	return r
}

// interval sets what fits.
func (r *Row) interval(c *claim, sample *expect.Sample) {
	n := float64(sample.N())
	switch c.how {
	case Exact:
		r.Low, r.High = sample.Quantile(0), sample.Quantile(1)
	case Wilson:
		n *= float64(max(c.trials, 1))
		r.Error = math.Sqrt(float64(r.Measured*(1-r.Measured)) / n)
		r.Low, r.High = wilson(r.Measured, n)
	default:
		se := sample.SD() / math.Sqrt(n)
		theirs := c.deviation
		if c.alike > 0 {
			theirs = sample.SD() / math.Sqrt(c.alike)
		}
		r.Error = math.Sqrt(float64(se*se) + float64(theirs*theirs))
		half := float64(deviations*r.Error) + c.within
		r.Low, r.High = r.Measured-half, r.Measured+half
	}
}

// wilson is the score interval of a probability with the deviations of this package, given the share of n trials that
// held; see expect.Wilson, whose interval is that of 95 %.
func wilson(share, n float64) (low, high float64) {
	const zz = deviations * deviations
	h := float64(share * n)
	half := float64(deviations * math.Sqrt(float64(h*(1-share))+zz/4))
	low, high = (h+zz/2-half)/(n+zz), (h+zz/2+half)/(n+zz)
	if share == 0 {
		low = 0
	}
	if share == 1 {
		high = 1
	}
	return low, high
}
