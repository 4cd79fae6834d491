package ratelimit

import (
	"math"
	"math/bits"
	"time"
)

// settings is a Config as whole numbers. It never changes, so a bucket is read with the settings it was written with.
//
// A bucket is counted in units. One token is unit units, and by time x every bucket that was empty at time 0 has earned
// earned(x) of them: a whole number computed from the time itself, not added up, so that no rounding ever adds up.
type settings struct {
	on, shadow bool
	tokens     int64  // a full bucket
	unit       uint64 // units in a token
	burst      uint64 // units in a full bucket
	num, den   uint64 // units per nanosecond, at most 1, in lowest terms; 0/1 is closed
	fresh      uint64 // the tat of a bucket that is not kept; not 0 for a while after the burst was raised
	maxKeys    int64
}

// The clock of this package: nanoseconds since 146 years before the caller's origin, up to as long after it. With units
// per nanosecond at most 1 and a burst of at most maxBurst units nothing below can overflow.
const (
	horizon  = 1 << 63
	maxBurst = 1 << 61
	far      = math.MaxUint64 // a time that does not come
)

// tick puts the caller's time on the clock of this package.
func tick(now time.Duration) uint64 {
	return uint64(min(max(now, -horizon/2), horizon/2) + horizon/2)
}

// finest is the smallest part of a token that a Rate is read to: 1/finest.
const finest = 100_000

// ratio is r in lowest terms: n tokens in d nanoseconds, 1/finest of a token being the smallest that counts.
func (r Rate) ratio() (n, d uint64) {
	n, d = uint64(math.Round(r.Tokens*finest)), uint64(r.Per)*finest
	if n == 0 && r.Tokens > 0 {
		n = 1
	}
	g := gcd(n, d)
	return n / g, d / g
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func newSettings(c Config) *settings {
	c = c.WithDefaults()
	s := &settings{on: c.Enabled(), shadow: c.Shadow, tokens: int64(c.Burst), maxKeys: int64(c.MaxKeys)}
	if c.Limit.IsZero() {
		return s
	}
	n, d := c.Limit.ratio()
	most := maxBurst / uint64(c.Burst)
	switch {
	case n == 0:
		s.unit, s.num, s.den = 1000, 0, 1
	case d%n == 0 && d/n <= most && d/n%1000 == 0:
		s.unit, s.num, s.den = d/n, 1, 1 // a unit is a nanosecond: no division, and a cost like 0.001 is whole
	default:
		s.unit = 1
		for limit := min(d/n, most); s.unit <= limit/10; {
			s.unit *= 10 // costs are decimals
		}
		g := gcd(n*s.unit, d)
		s.num, s.den = n*s.unit/g, d/g
	}
	s.burst = uint64(c.Burst) * s.unit
	return s
}

// earned is how many units time has brought by x, rounded down.
func (s *settings) earned(x uint64) uint64 {
	if s.num == s.den {
		return x
	}
	hi, lo := bits.Mul64(x, s.num)
	q, _ := bits.Div64(hi, lo, s.den) // num is below den, so hi is too
	return q
}

// when is the first time by which units have been earned, or far.
func (s *settings) when(units uint64) uint64 {
	x := units
	if s.num != s.den {
		hi, lo := bits.Mul64(units, s.den)
		lo, carry := bits.Add64(lo, max(s.num, 1)-1, 0)
		if hi += carry; hi >= s.num {
			return far
		}
		x, _ = bits.Div64(hi, lo, s.num)
	}
	if x > horizon {
		return far
	}
	return x
}

// until is how long from time x until units have been earned.
func (s *settings) until(x, units uint64) time.Duration {
	at := s.when(units)
	switch {
	case at == far:
		return Never
	case at <= x:
		return 0
	}
	return time.Duration(min(at-x, uint64(Never)))
}

// tooMuch is a price that no bucket can pay.
const tooMuch = math.MaxUint64

// price is cost in units. What is less than a unit counts as one, and what is not a number cannot be paid.
func (s *settings) price(cost float64) uint64 {
	switch {
	case cost == 1:
		return s.unit
	case cost <= 0:
		return 0
	case !(cost <= float64(s.tokens)):
		return tooMuch
	}
	whole, part := math.Modf(cost)
	part *= float64(s.unit)
	near := math.Round(part)
	if math.Abs(near-part) > 1e-3 || near == 0 && part > 0 {
		near = math.Ceil(part) // otherwise only the representation of a decimal such as 0.29 keeps part from being whole
	}
	return uint64(whole)*s.unit + uint64(near)
}

// answer is what became of a request, in units and before anybody has asked what that means in tokens.
type answer struct {
	earned, full uint64        // by the time of the request; when the bucket will be full after it
	lack         time.Duration // until the bucket has what was asked for
	over         bool
}

// take answers a request for price units at time x from a bucket whose state is tat: the units that will have been
// earned when it is full again. The new state is full, unless the answer is over. own is x on the caller's clock, from
// which waits are counted.
func (s *settings) take(x, own, tat, price uint64, maxWait time.Duration) answer {
	earned := s.earned(x)
	full := max(tat, s.fresh, earned)
	if used := full - earned; used <= s.burst && price <= s.burst-used && s.num != 0 {
		return answer{earned: earned, full: full + price}
	}
	a := answer{earned, full, Never, true}
	if price != tooMuch && s.num != 0 {
		a.lack = s.until(own, full+price-s.burst)
	}
	if a.lack <= maxWait && a.lack != Never {
		a.full, a.over = full+price, false
	}
	return a
}

// explain says in tokens what a says in units. It fills d in place: returned by value it would be copied, which costs
// more than the arithmetic.
func (s *settings) explain(d *Decision, a *answer, own uint64) {
	d.Over, d.Allowed, d.RetryAfter = a.over, !a.over || s.shadow, a.lack
	if s.num == 0 {
		d.Reset = Never
		return
	}
	d.Limit = s.tokens
	if used := a.full - a.earned; used < s.burst {
		d.Remaining = int64((s.burst - used) / s.unit)
	}
	d.Reset = s.until(own, a.full)
}

// spare reports whether a bucket with state tat is as good as one that is not kept.
func (s *settings) spare(x, tat uint64) bool { return tat <= max(s.fresh, s.earned(x)) }

// sameBucket reports whether a state means the same under both settings.
func (s *settings) sameBucket(old *settings) bool {
	return s.unit == old.unit && s.burst == old.burst && s.num == old.num && s.den == old.den
}

// adopt is the state at time x under s of a bucket that was tat under old. It holds as many tokens as before, or a full
// bucket if that is less; what it owes to reservations it goes on owing.
func (s *settings) adopt(old *settings, x, tat uint64) uint64 {
	if old.unit == 0 { // there was no limit yet: the bucket is full
		return 0
	}
	earned := old.earned(x)
	used := max(tat, old.fresh, earned) - earned
	if used > old.burst {
		owed := scale(used-old.burst, s.unit, old.unit, old.unit-1)
		return s.earned(x) + s.burst + min(owed, maxBurst)
	}
	has := scale(old.burst-used, s.unit, old.unit, 0)
	return s.earned(x) + s.burst - min(has, s.burst)
}

// scale is (n*to + add)/from, or the largest number if it does not fit.
func scale(n, to, from, add uint64) uint64 {
	hi, lo := bits.Mul64(n, to)
	lo, carry := bits.Add64(lo, add, 0)
	if hi += carry; hi >= from {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, from)
	return q
}
