package dlq

import "time"

const arrivalSlots = 24

// arrivals counts times in at most 2×arrivalSlots slots of 2^shift seconds, which are aligned to the origin of time, so
// that those of two groups can be brought to one width exactly. The width grows with the range.
type arrivals struct {
	shift  uint
	base   int64 // absolute number of the first slot
	counts []int
}

func (a *arrivals) add(t time.Time) {
	slot := t.Unix() >> a.shift
	if len(a.counts) == 0 {
		a.base, a.counts = slot, []int{1}
		return
	}
	for max(slot, a.base+int64(len(a.counts))-1)-min(slot, a.base) >= 2*arrivalSlots {
		a.halve()
		slot = t.Unix() >> a.shift
	}
	if slot < a.base {
		a.counts = append(make([]int, a.base-slot, 2*arrivalSlots), a.counts...)
		a.base = slot
	}
	for slot >= a.base+int64(len(a.counts)) {
		a.counts = append(a.counts, 0)
	}
	a.counts[slot-a.base]++
}

// halve doubles the width of the slots.
func (a *arrivals) halve() {
	a.shift++
	base := a.base >> 1
	merged := make([]int, (a.base+int64(len(a.counts))-1)>>1-base+1)
	for i, n := range a.counts {
		merged[(a.base+int64(i))>>1-base] += n
	}
	a.base, a.counts = base, merged
}

// between brings a to the slots that the others use: from first, each 2^shift seconds.
func (a *arrivals) between(first int64, shift uint, slots int) []int {
	for a.shift < shift {
		a.halve()
	}
	list := make([]int, slots)
	for i, n := range a.counts {
		list[a.base+int64(i)-first] += n
	}
	return list
}

// common finds slots for all times from first to last, and for arrivals that are as coarse as coarsest already.
func common(first, last time.Time, coarsest uint) (begin int64, shift uint, slots int) {
	shift = coarsest
	for last.Unix()>>shift-first.Unix()>>shift >= arrivalSlots {
		shift++
	}
	begin = first.Unix() >> shift
	return begin, shift, int(last.Unix()>>shift-begin) + 1
}
