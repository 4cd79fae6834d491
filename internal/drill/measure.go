package drill

import (
	"math"
	"slices"
	"time"
)

// recovery finds the time from the end of the outage until goodput is back: the first moment from which on it stays at
// Threshold of normal, what it was before, over the next Hold, and on average until the end of the record. The average
// keeps a lull in a storm from counting as its end. Goodput is a share of the requests that offered counts, so that a
// moment in which few arrive is no relapse.
func recovery(bins []Bin, offered func(from, to time.Duration) int, outageEnd time.Duration, normal float64) (time.Duration, bool) {
	end := time.Duration(len(bins)) * fineBin
	back := func(from, to time.Duration) bool {
		return share(bins, offered, from, to) >= Threshold*normal
	}
	if normal <= 0 {
		return 0, false
	}
	for at := roundUp(outageEnd, fineBin); at+Hold <= end; at += fineBin {
		if back(at, at+Hold) && back(at, end) {
			return at - outageEnd, true
		}
	}
	return 0, false
}

// share is the goodput within from..to, as a share of the requests offered.
func share(bins []Bin, offered func(from, to time.Duration) int, from, to time.Duration) float64 {
	return ratio(float64(sum(bins, from, to).Answered), float64(offered(from, to)))
}

func roundUp(d, unit time.Duration) time.Duration { return (d + unit - 1) / unit * unit }

// quantile returns the smallest value that is not below a share q of the sorted values; 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// latenciesOf returns how long the calls took that keep says yes to, sorted.
func latenciesOf(calls []call, keep func(call) bool) []time.Duration {
	var took []time.Duration
	for _, c := range calls {
		if keep(c) {
			took = append(took, c.took)
		}
	}
	slices.Sort(took)
	return took
}

// coarse merges fine bins into bins of the given width, a multiple of fineBin. The last may be cut short.
func coarse(bins []Bin, width time.Duration) []Bin {
	per := max(int(width/fineBin), 1)
	merged := make([]Bin, (len(bins)+per-1)/per)
	for i, b := range bins {
		merged[i/per].add(b)
	}
	return merged
}

// plotWidth is how many columns of bins a plot has at most.
const plotWidth = 64

// coarseWidth returns the width of a bin that shows length in at most plotWidth columns: half a second, or a multiple of it.
func coarseWidth(length time.Duration) time.Duration {
	const half = 500 * time.Millisecond
	return max(half, roundUp((length+plotWidth-1)/plotWidth, half))
}

// ratio is a / b, and 0 where there is no b.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
