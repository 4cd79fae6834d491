package ratelimit

import (
	"math"
	"time"
)

// ShareAfter is how long after an outage each instance keeps to its share, and pays what it spends, before it has the
// whole bucket again: until the others are back as well. They must notice within two thirds of it.
const ShareAfter = 3 * time.Second

// Deepest returns how far below zero debts can bring a bucket, at rate tokens in a nanosecond: a debt that is paid
// twice, because an answer was lost, costs no more.
func Deepest(burst, rate float64) float64 { return -2*burst - rate*float64(ShareAfter) }

// Share is the part of a bucket of a whole fleet that one instance may spend while it cannot reach that bucket. It
// begins with a part of what the bucket held, and gets a part of its rate. What is spent is a debt, which is paid when
// the bucket is reached again: it is then where it would be had all of it been spent there.
//
// A debt shrinks with what the bucket has lost meanwhile because it was full: that is certain when it would be full
// even if it was empty when the share was opened, and leaves out the time in which others may have reached it already.
//
// Its state is a few numbers. It is used by one goroutine at a time, reads no clock and does no I/O. Tokens are counted
// in any unit. The zero Share is closed: it may spend nothing, and owes nothing.
type Share struct {
	burst, rate float64 // what it holds at most; per nanosecond
	full        float64 // how much must have come before the bucket is certain to be full
	have        float64
	least       float64 // what its part of the bucket has got since the share was opened, or paid last
	debt        float64
	at          time.Duration
	open        bool
}

// Open reports whether the share is in use.
func (s *Share) Open() bool { return s.open }

// Begin opens the share with what it may hold at most, what it gets in a nanosecond, and what it has. What was owed
// before is still owed.
func (s *Share) Begin(now time.Duration, burst, rate, have float64) {
	*s = Share{burst: burst, rate: rate, full: filled(burst, rate), have: between(have, burst), debt: s.debt, at: now,
		open: true}
}

// filled is how much must have come before the bucket is certain to be full: others may have taken from it for
// ShareAfter already.
func filled(burst, rate float64) float64 { return burst + rate*float64(ShareAfter) }

// Adjust changes an open share to another part of the bucket, when there are more instances or fewer, or another limit.
func (s *Share) Adjust(now time.Duration, burst, rate float64) {
	if burst == s.burst && rate == s.rate {
		return
	}
	s.earn(now)
	s.burst, s.rate, s.full = burst, rate, filled(burst, rate)
	s.have, s.least = between(s.have, burst), 0
}

// Take takes n if they are there. If not it takes nothing, and wait is how long they take to come: Never if they never
// do.
func (s *Share) Take(now time.Duration, n float64) (wait time.Duration, ok bool) {
	s.earn(now)
	if s.open && n <= s.have {
		s.have -= n
		s.debt += n
		return 0, true
	}
	if !s.open || n > s.burst || s.rate <= 0 {
		return Never, false
	}
	if ns := (n - s.have) / s.rate; ns < float64(Never) {
		return time.Duration(math.Ceil(ns)), false
	}
	return Never, false
}

// Have returns what the share holds.
func (s *Share) Have(now time.Duration) float64 {
	s.earn(now)
	return s.have
}

// Debt returns what has to be paid when the bucket is reached.
func (s *Share) Debt(now time.Duration) float64 {
	s.earn(now)
	return s.debt
}

// Paid takes in that the bucket has got what Debt said before. What was spent meanwhile is still owed.
func (s *Share) Paid(now time.Duration, debt float64) {
	s.earn(now)
	s.debt, s.least = max(s.debt-debt, 0), 0
}

// Close ends the use of the share. What is owed is still to be paid.
func (s *Share) Close(now time.Duration) { *s = Share{debt: s.Debt(now)} }

// earn brings the share up to now. A clock that jumps back earns nothing.
func (s *Share) earn(now time.Duration) {
	if !s.open || now <= s.at {
		return
	}
	more := s.rate * float64(now-s.at)
	s.at = now
	s.have = between(s.have+more, s.burst)
	over := max(s.least+more-s.full, 0) // which the bucket has lost in any case
	s.least = min(s.least+more, s.full)
	s.debt = max(s.debt-over, 0)
}

func between(n, most float64) float64 { return min(max(n, 0), most) }
