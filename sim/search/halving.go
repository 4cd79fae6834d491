// Package search finds the best of many alternatives with few runs. It is strategy only: somebody else makes the runs
// and says how bad each was.
//
// It is successive halving (Z. Karnin, T. Koren, O. Somekh: Almost optimal exploration in multi-armed bandits, ICML
// 2013): every alternative has a few runs, the better part has some more, and so on. All alternatives meet the same
// runs (common random numbers), so that what differs between them is the alternatives.
package search

import (
	"cmp"
	"math"
	"slices"
)

// Options say how a search spends its runs. Zero fields mean the default.
type Options struct {
	Runs   int // of all alternatives together, at most. Zero means no bound
	First  int // of each alternative in the first round. Default: 1
	Factor int // by which the alternatives get fewer, and their runs more, from round to round. Default: 3
	Last   int // alternatives that are left in the end. Default: 12
	Depth  int // runs that each of them has by then, at least. Default: 9

	// Kinds has the kind of each alternative; nil for all of one kind. While others are left, at most two of a kind stay
	// in the search: what is best may be there in ten shades.
	Kinds []string
}

const ofAKind = 2

// Halving is one search. It is a state machine: Next says what to run, Add hears what came of it.
type Halving struct {
	o     Options
	left  []int // in the search yet, the best first
	out   []int // no longer, those that left last first
	sum   []float64
	runs  []int
	spent int
	tried int
	done  bool
}

// Round is what to run next: each of the alternatives, with the seeds From, From + 1, ... To - 1, counted from 0.
type Round struct {
	Alternatives []int
	From, To     int
}

// New begins a search among so many alternatives, those that are preferred first: of two that are as good, the earlier
// one wins. If the bound on runs is below one run for each, the last ones are not tried.
func New(alternatives int, o Options) *Halving {
	o.First, o.Factor = cmp.Or(max(o.First, 0), 1), max(cmp.Or(o.Factor, 3), 2)
	o.Last, o.Depth = cmp.Or(max(o.Last, 0), 12), cmp.Or(max(o.Depth, 0), 9)
	if o.Runs <= 0 {
		o.Runs = math.MaxInt
	}
	h := &Halving{o: o, tried: min(alternatives, o.Runs/o.First), sum: make([]float64, alternatives),
		runs: make([]int, alternatives)}
	for i := range h.tried {
		h.left = append(h.left, i)
	}
	return h
}

// Next returns the next round, and whether there is one. Between two calls every run of a round has to be added, or the
// search ends.
func (h *Halving) Next() (Round, bool) {
	if h.done || len(h.left) == 0 {
		return Round{}, false
	}
	from := h.runs[h.left[0]]
	if from == 0 {
		return h.round(0, h.o.First)
	}
	for _, i := range h.left {
		if h.runs[i] != from { // somebody stopped
			h.done = true
			return Round{}, false
		}
	}
	h.rank()
	keep := max(h.o.Last, (len(h.left)+h.o.Factor-1)/h.o.Factor)
	if keep < len(h.left) {
		h.mix(keep)
		h.out = append(slices.Clone(h.left[keep:]), h.out...)
		h.left = h.left[:keep]
	} else if from >= h.o.Depth {
		h.done = true
		return Round{}, false
	}
	return h.round(from, from*h.o.Factor)
}

// mix moves those that are more than enough of a kind behind the others, so far as that many are to be kept.
func (h *Halving) mix(keep int) {
	if h.o.Kinds == nil {
		return
	}
	var first, rest []int
	seen := map[string]int{}
	for _, i := range h.left {
		if seen[h.o.Kinds[i]]++; seen[h.o.Kinds[i]] <= ofAKind && len(first) < keep {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	h.left = append(first, rest...)
}

func (h *Halving) round(from, to int) (Round, bool) {
	to = min(to, max(h.o.Depth, h.o.First))
	if to <= from || h.spent+len(h.left)*(to-from) > h.o.Runs {
		h.done = true
		return Round{}, false
	}
	h.spent += len(h.left) * (to - from)
	return Round{slices.Clone(h.left), from, to}, true
}

// Add hears how bad one run of an alternative was; 0 is as good as can be. What is not a number is as bad as can be.
func (h *Halving) Add(alternative int, loss float64) {
	if math.IsNaN(loss) {
		loss = math.Inf(1)
	}
	h.sum[alternative] += loss
	h.runs[alternative]++
}

// rank sorts those left by their mean loss.
func (h *Halving) rank() {
	slices.SortFunc(h.left, func(a, b int) int {
		return cmp.Or(cmp.Compare(h.Loss(a), h.Loss(b)), cmp.Compare(a, b))
	})
}

// Loss returns the mean loss of an alternative over its runs; +Inf without any.
func (h *Halving) Loss(alternative int) float64 {
	if h.runs[alternative] == 0 {
		return math.Inf(1)
	}
	return h.sum[alternative] / float64(h.runs[alternative])
}

// Ranking returns the alternatives that were tried, the best first. One that was looked at longer goes before one that
// was not.
func (h *Halving) Ranking() []int {
	h.rank()
	return append(slices.Clone(h.left), h.out...)
}

// Tried returns how many alternatives were run at all.
func (h *Halving) Tried() int { return h.tried }

// Spent returns how many runs the rounds so far asked for.
func (h *Halving) Spent() int { return h.spent }
