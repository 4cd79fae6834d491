package budget

import (
	"math"
	"time"
)

// Pool is the budget that a fleet has in common, beside what its instances hold: what each earns and does not need goes
// in, what others lack comes out. In production it is kept by Redis, by a script that does the same, step by step; this
// one is for whoever plays a fleet in one process. The zero Pool is one that nobody has asked yet.
//
// Its balance is at most what never expires and what was earned within the window. It is used by one goroutine at a
// time, and its methods take a time that may not be older than one they have seen by more than a tenth of the window.
type Pool struct {
	known   bool
	in, out int64 // that came and went; only the difference counts
	slot    int64
	tenth   int64     // of the window, in microseconds
	marks   [10]int64 // what in stood at when each of the last ten tenths began
}

// Exchange takes in what an instance offers, and returns what it gets of what it wants. begins says that the instance
// has not asked before: if nobody has, the pool begins with its reserve.
func (p *Pool) Exchange(now time.Duration, o Offer, begins bool) (granted int64) {
	tenth := max(1, o.Window.Microseconds()/int64(len(p.marks)))
	slot := int64(math.Floor(float64(now.Microseconds()) / float64(tenth)))
	if !p.known {
		*p = Pool{known: true, tenth: -1}
		if begins {
			p.in = o.Reserve
		}
	}
	steps := slot - p.slot
	if p.tenth != tenth || steps < -1 { // new, of another window, or from before the clock went back
		p.tenth, steps = tenth, int64(len(p.marks))
		p.slot = slot
	}
	shift := int(max(0, min(steps, int64(len(p.marks)))))
	for i := range p.marks {
		if i+shift < len(p.marks) {
			p.marks[i] = p.marks[i+shift]
		} else {
			p.marks[i] = p.in
		}
	}
	p.slot = max(slot, p.slot)
	p.in += o.Earned
	p.out = max(p.out-o.Back, p.marks[0]-o.Floor)
	granted = max(0, min(o.Want, p.in-p.out))
	p.out += granted
	return granted
}
