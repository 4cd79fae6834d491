package population

import (
	"cmp"
	"math"
	"slices"

	"github.com/abate-go/abate/policy/retry"
)

// probes is in how many parts of equal probability a delay is cut to find its distribution.
const probes = 64

// piece is a part of a distribution of delays: a share of them lies evenly between low and high, in ns.
type piece struct{ low, high, share float64 }

// delayAfter asks the policy for the distribution of its delay after so many retries; nil when it makes no further one.
// The policy's delay grows with its random number, so evenly spaced numbers give its quantiles.
func delayAfter(p *retry.Policy, retries int) []piece {
	var at [probes + 1]float64
	for i := range at {
		rnd := uint64(math.MaxUint64)
		if i < probes {
			rnd = uint64(i) * (1 << 64 / probes)
		}
		delay, verdict := p.Next(retry.Question{Retries: retries, Rand: rnd})
		if verdict != retry.Retry {
			return nil
		}
		at[i] = float64(delay)
	}
	slices.Sort(at[:])
	var pieces []piece
	for i := range probes {
		pieces = join(pieces, piece{at[i], at[i+1], 1.0 / probes})
	}
	return pieces
}

// join appends a piece, as a part of the last one when they are equally dense: delays are whole nanoseconds, so that
// widths differ by one or two.
func join(pieces []piece, next piece) []piece {
	if len(pieces) > 0 {
		last := &pieces[len(pieces)-1]
		expected := float64((last.high - last.low) * (next.share / last.share))
		if math.Abs(next.high-next.low-expected) <= 2 {
			last.high = next.high
			last.share += next.share
			return pieces
		}
	}
	return append(pieces, next)
}

// mean returns the mean of a distribution, in ns.
func mean(pieces []piece) float64 {
	total := 0.0
	for _, p := range pieces {
		total += float64(p.share * (p.low + p.high) / 2)
	}
	return total
}

// change says by how much the number of clients that come in one slot differs from the slot before, so many slots from
// now, per client that waits. An even distribution over thousands of slots is six changes.
type change struct {
	slots  int
	weight float64
}

// spread returns the changes that come of clients who begin to wait at moments spread evenly over one slot, first for a
// fixed time in ns, then for a delay. What would come again in the very same slot comes in the next one: a cohort has
// left its slot when it is sent away.
func spread(pieces []piece, fixed, slot float64) []change {
	const atom = 1e-3 // of a slot: too narrow to be distinguished from a single moment
	var changes []change
	for _, p := range pieces {
		low, high := (fixed+p.low)/slot, (fixed+p.high)/slot
		if high-low < atom {
			changes = append(changes, moment((low+high)/2, p.share)...)
			continue
		}
		density := p.share / (high - low)
		changes = append(changes, rise(low, density)...)
		changes = append(changes, rise(high, -density)...)
	}
	return tidy(changes)
}

// moment is a slot's width of clients, moved by x slots: it lies in two slots.
func moment(x, weight float64) []change {
	first := math.Floor(x)
	late := x - first
	early := float64(weight * (1 - late))
	rest := weight - early
	return []change{{int(first), early}, {int(first) + 1, rest - early}, {int(first) + 2, -rest}}
}

// rise is a density that begins at x for clients of one slot: the sum over clients spread evenly within it is a curve
// that grows over three slots.
func rise(x, density float64) []change {
	first := math.Floor(x)
	rest := 1 - (x - first) // of the first slot
	a := float64(rest * rest / 2)
	b := float64((1 - rest) * (1 - rest) / 2)
	one, three := float64(density*a), float64(density*b)
	return []change{{int(first), one}, {int(first) + 1, density - one - three}, {int(first) + 2, three}}
}

// tidy adds up the changes of each slot, in order, and moves what falls into slot 0 to slot 1.
func tidy(changes []change) []change {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.slots, b.slots) })
	var sums []change
	for _, c := range changes {
		if n := len(sums); n > 0 && sums[n-1].slots == c.slots {
			sums[n-1].weight += c.weight
			continue
		}
		sums = append(sums, c)
	}
	if len(sums) == 0 || sums[0].slots > 0 {
		return sums
	}
	now := sums[0].weight
	return tidy(append(sums[1:], change{1, 2 * now}, change{2, -now}))
}
