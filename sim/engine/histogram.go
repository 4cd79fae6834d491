package engine

import (
	"math"
	"math/bits"
)

// A Histogram counts times in buckets that each are at most 1/16 wider than the one before: a quantile is right to
// about 3 %. The zero value is empty. Quantiles are counted, never made from a mean.
type Histogram struct {
	Counts [bucketCount]uint32
	Total  int64
	Sum    int64 // ns
	Max    int64 // ns
}

const (
	subBits     = 4
	bucketCount = (44 - subBits) << subBits // up to 2⁴³ units, about 104 days; longer times count in the last one
	shift       = 10                        // a unit is 2¹⁰ ns
)

// bucketOf numbers the bucket of a time: linear up to 16 units, then 16 per doubling.
func bucketOf(ns int64) int {
	v := uint64(max(ns, 0)) >> shift
	if v < 1<<subBits {
		return int(v)
	}
	exponent := bits.Len64(v) - subBits - 1
	return min(exponent<<subBits+int(v>>exponent), bucketCount-1)
}

// lowOf is the least time of a bucket.
func lowOf(bucket int) int64 {
	if bucket < 2<<subBits {
		return int64(bucket) << shift
	}
	exponent := bucket>>subBits - 1
	return int64(bucket-exponent<<subBits) << exponent << shift
}

// Add counts one time, in ns.
func (h *Histogram) Add(ns int64) {
	h.Counts[bucketOf(ns)]++
	h.Total++
	h.Sum += ns
	h.Max = max(h.Max, ns)
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Total += o.Total
	h.Sum += o.Sum
	h.Max = max(h.Max, o.Max)
}

// Quantile returns the time, in seconds, that a share q of the counted times does not exceed; NaN of none.
func (h *Histogram) Quantile(q float64) float64 {
	if h.Total == 0 {
		return math.NaN()
	}
	rank := max(q*float64(h.Total), 1)
	var below float64
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		if below+float64(n) >= rank {
			low, high := lowOf(i), min(lowOf(i+1), h.Max)
			within := (rank - below) / float64(n)
			return (float64(low) + float64(float64(max(high-low, 0))*within)) / 1e9
		}
		below += float64(n)
	}
	return float64(h.Max) / 1e9
}

// Mean returns the mean in seconds; NaN of none.
func (h *Histogram) Mean() float64 {
	if h.Total == 0 {
		return math.NaN()
	}
	return float64(h.Sum) / float64(h.Total) / 1e9
}
