package main

import (
	"slices"
	"time"
)

// good is the share of answered requests from which on a service counts as back.
const good = 0.95

// result is one contender's day.
type result struct {
	asked, answered []int   // requests by the bucket in which they came
	sent            []int64 // attempts that arrived at the service, by bucket
	late            lateness
}

// share is how many of all requests were answered, 0 to 1.
func (r result) share() float64 {
	asked, answered := 0, 0
	for i := range r.asked {
		asked, answered = asked+r.asked[i], answered+r.answered[i]
	}
	return ratio(answered, asked)
}

func ratio(part, of int) float64 {
	if of == 0 {
		return 1
	}
	return float64(part) / float64(of)
}

// never stands for a service that was not back when the day ended.
const never = time.Duration(-1)

// back is how long after the end of the trouble, in whole buckets, requests came for the last time of which fewer than
// 95 % in a bucket were answered; 0 if that was not the case at all, never if it still was in the last bucket.
func (r result) back(ended time.Duration) time.Duration {
	for i := len(r.asked) - 1; i >= int(ended/bucket); i-- {
		if ratio(r.answered[i], r.asked[i]) >= good {
			continue
		}
		if i == len(r.asked)-1 {
			return never
		}
		return time.Duration(i+1)*bucket - ended
	}
	return 0
}

// amplification is how many attempts arrived at the service for each request.
func (r result) amplification() float64 {
	var sent int64
	asked := 0
	for i := range r.asked {
		sent, asked = sent+r.sent[i], asked+r.asked[i]
	}
	if asked == 0 {
		return 0
	}
	return float64(sent) / float64(asked)
}

// cell is what all passes of one contender's day came to.
type cell struct {
	results   []result
	repeated  int    // disturbed runs that were thrown away
	absent    string // why there is none
	failed    error  // what went wrong
	contender string
	day       day
}

// share is the median over the passes; ok is false when there was none.
func (c cell) share() (share float64, ok bool) {
	all := make([]float64, len(c.results))
	for i, r := range c.results {
		all[i] = r.share()
	}
	return median(all), len(all) > 0
}

// back is the median over the passes, where never is longer than any other time.
func (c cell) back() time.Duration {
	all := make([]float64, len(c.results))
	for i, r := range c.results {
		all[i] = float64(r.back(faultEnd))
		if all[i] < 0 {
			all[i] = float64(2 * dayLength)
		}
	}
	m := time.Duration(median(all))
	if m > dayLength {
		return never
	}
	return m
}

// amplification is the median over the passes.
func (c cell) amplification() float64 {
	all := make([]float64, len(c.results))
	for i, r := range c.results {
		all[i] = r.amplification()
	}
	return median(all)
}

// disturbed reports whether one of the runs that count was.
func (c cell) disturbed() bool {
	return slices.ContainsFunc(c.results, func(r result) bool { return r.late.disturbs() })
}

// median is the middle of some numbers, the mean of the two in the middle if there is no one; 0 of none.
func median(all []float64) float64 {
	n := len(all)
	if n == 0 {
		return 0
	}
	all = slices.Sorted(slices.Values(all))
	return (all[(n-1)/2] + all[n/2]) / 2
}

// curve is the share answered in each bucket of all passes together.
func (c cell) curve() []float64 {
	all := make([]float64, dayLength/bucket)
	for i := range all {
		asked, answered := 0, 0
		for _, r := range c.results {
			asked, answered = asked+r.asked[i], answered+r.answered[i]
		}
		all[i] = ratio(answered, asked)
	}
	return all
}

// attempts is how many a second arrived at the service in each bucket, in the mean of the passes.
func (c cell) attempts() []float64 {
	all := make([]float64, dayLength/bucket)
	for i := range all {
		for _, r := range c.results {
			all[i] += float64(r.sent[i]) / bucket.Seconds() / float64(len(c.results))
		}
	}
	return all
}
