package lint

import (
	"math"

	"github.com/abate-go/abate/topology"
)

// ours is the product whose layers share the allowance of a call tree.
const ours = "abate"

// allowances bounds the attempts by what a call tree may add, when the layer is one of ours, and says what the layer is
// to a tree that began further out. The rules are those of core.CallTree: the first call of a tree sets how many extra
// attempts there are, everyone takes from that number, and a layer keeps one for a callee that does not answer.
func (a *assumption) allowances(l *topology.Layer, out *state, tries, copies float64) {
	owner, known := l.Owner.Get()
	if l.Owner.IsUnknown() && !a.worst {
		owner, known = "nearest", true
	}
	if !known || owner == "none" {
		each := tries * (1 + copies)
		if out.base, out.best = product(out.base, each), product(out.best, each); known || l.Owner.IsUnknown() {
			out.base, _ = out.total() // what is behind begins trees of its own
			out.best = 0
		}
		return
	}
	first, unknown := 0.0, false // extra attempts that the layer's calls may make, when it is the first
	for i := range l.Repeats {
		r := &l.Repeats[i]
		if n, ok := r.Tries.Get(); ok && n < topology.Unbounded {
			first = max(first, float64(n-1))
		} else if ok {
			first = math.Inf(1)
		} else {
			unknown = unknown || r.Tries.IsUnknown()
		}
	}
	base, best, own := out.base, out.best, 0.0
	if owner == "edge" {
		best = 0
	}
	if tries > 1 {
		own = first
	}
	if tries > 1 || copies > 0 {
		out.best = max(base, best)
	} else {
		out.best = best
	}
	if unknown {
		if !a.worst {
			out.limit(base) // it may be one extra attempt, which is spent on nothing
		}
		return // it may be none, and what is behind begins trees of its own
	}
	if first == 0 && copies == 0 {
		return // it repeats nothing, so it owns nothing, and only passes on what it gets
	}
	most := base + product(product(base, copies), 1+own)
	if tries > 1 {
		most += product(first, max(base, best))
	} else {
		most += product(max(first-1, 0), best)
	}
	if first > 0 {
		out.limit(most)
	}
}
