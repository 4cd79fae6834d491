package audit

import (
	"cmp"
	"math"

	"github.com/abate-go/abate/lint"
)

// length is how long the paths of a form are: the worst of them, for how many failures they have no bound, and what the
// others have beyond enough.
type length struct {
	worst   float64
	endless int
	beyond  float64
}

func (l length) below(other length) bool {
	return cmp.Or(cmp.Compare(l.worst, other.worst), cmp.Compare(l.endless, other.endless),
		cmp.Compare(l.beyond, other.beyond)) < 0
}

func lengthOf(a *lint.Amplified) (l length) {
	const longest = 1e9 // so that short paths count beside it
	for _, b := range a.Bounds {
		for _, r := range b.Roots {
			if w := worstOf(b, r); w != nil {
				if l.worst = max(l.worst, w.certain()); math.IsInf(w.certain(), 1) {
					l.endless += len(b.Outcomes)
					continue
				}
				l.beyond += max(0, min(w.certain(), longest)-enough)
			}
		}
	}
	return l
}

// boundless is what no number in the files bounds once the changes are made, and how long the other paths are then.
type boundless struct {
	circle []string // a way round that calls go
	others float64  // 1 if they repeat nothing
}

func boundlessIn(a *lint.Amplified) boundless {
	b := boundless{circle(a), 1}
	for _, bound := range a.Bounds {
		for _, root := range bound.Roots {
			if w := worstOf(bound, root); w != nil && !math.IsInf(w.certain(), 1) {
				b.others = max(b.others, w.certain())
			}
		}
	}
	return b
}
