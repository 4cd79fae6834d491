package breaker

import (
	"math"
	"sync/atomic"
	"time"
)

// cacheLine keeps what every call reads apart from what every call writes.
const cacheLine = 64

// pace cuts time into steps of one width and knows when the current one ends. It is what lets a call compare
// two numbers instead of dividing. Time that runs backwards belongs to the current step.
type pace struct {
	width time.Duration
	end   atomic.Int64
}

// unset is the end before the first call: any time is past it.
const unset = math.MinInt64

func (p *pace) init(span time.Duration, parts int64) {
	p.width = (span + time.Duration(parts) - 1) / time.Duration(parts)
	p.end.Store(unset)
}

func (p *pace) due(now time.Duration) bool { return int64(now) >= p.end.Load() }

// passed is how many steps after the current one the time has reached, at most most.
func (p *pace) passed(now time.Duration, most int64) uint32 {
	end := p.end.Load()
	if int64(now) < end {
		return 0
	}
	n := (int64(now) - end) / int64(p.width)
	if end == unset || n < 0 || n >= most { // below zero: the difference overflowed
		return uint32(most)
	}
	return uint32(n) + 1
}

// advance moves on by the n steps that passed returned for most. The breaker's lock is held.
func (p *pace) advance(now time.Duration, n uint32, most int64) {
	if int64(n) == most { // nothing of the old steps is left to line up with
		p.end.Store(int64(after(now, p.width)))
		return
	}
	p.end.Store(int64(after(time.Duration(p.end.Load()), time.Duration(n)*p.width)))
}

// after is now + d, at most the end of time.
func after(now, d time.Duration) time.Duration {
	if sum := now + d; sum >= now {
		return sum
	}
	return math.MaxInt64
}
