package ratelimit

import (
	"math"
	"time"
)

// Micro is a token of a bucket that instances share: there tokens are counted in millionths, which is exact where
// floating point is not.
const Micro = 1_000_000

// Terms is a limit in the form in which the decisions about a shared bucket use it. It is immutable and safe for
// concurrent use. All amounts are in millionths of a token.
type Terms struct {
	config Config
	burst  int64
	rate   float64 // per nanosecond
}

// NewTerms returns the terms of a limit. Values of c outside their range are moved to its nearest end.
func NewTerms(c Config) *Terms {
	c = c.WithDefaults()
	t := &Terms{config: c, burst: int64(c.Burst) * Micro}
	if per := c.Limit.Per; per > 0 {
		t.rate = c.Limit.Tokens * Micro / float64(per)
	}
	return t
}

// Burst returns what a full bucket holds.
func (t *Terms) Burst() int64 { return t.burst }

// Rate returns what the bucket gets in a nanosecond.
func (t *Terms) Rate() float64 { return t.rate }

// Deepest returns how far below 0 debts can bring the bucket.
func (t *Terms) Deepest() int64 {
	return int64(max(math.Floor(Deepest(float64(t.burst), t.rate)), -1<<62))
}

// Need turns a cost in tokens into millionths. A cost below 0, or one that is not a number, is none.
func (t *Terms) Need(cost float64) int64 {
	switch {
	case !(cost > 0):
		return 0
	case cost > float64(t.config.Burst):
		return t.burst + 1
	}
	return int64(math.Ceil(cost * Micro))
}

// Settled decides what needs no look at a bucket: no limit, no cost, and what no bucket ever holds.
func (t *Terms) Settled(need int64) (Decision, bool) {
	switch {
	case !t.config.Enabled():
		return Decision{Allowed: true}, true
	case need == 0:
		return t.Allow(float64(t.burst)), true
	case need > t.burst || t.rate == 0:
		return t.Refuse(float64(t.burst), Never), true
	}
	return Decision{}, false
}

// Allow returns the answer to a request that passes and leaves have in its bucket.
func (t *Terms) Allow(have float64) Decision {
	have = min(max(have, 0), float64(t.burst))
	return Decision{
		Allowed: true, Limit: int64(t.config.Burst), Remaining: int64(have / Micro), Reset: t.wait(float64(t.burst) - have),
	}
}

// Refuse returns the answer to a request whose bucket holds have, and has enough for it after wait. In shadow mode it
// passes.
func (t *Terms) Refuse(have float64, wait time.Duration) Decision {
	d := t.Allow(have)
	d.Allowed, d.Over, d.RetryAfter = t.config.Shadow, true, wait
	return d
}

// wait is how long n take to come.
func (t *Terms) wait(n float64) time.Duration {
	if n <= 0 {
		return 0
	}
	if ns := n / t.rate; ns < float64(Never) {
		return time.Duration(math.Ceil(ns))
	}
	return Never
}

// pause is how long not to ask for a bucket that was found empty. Meanwhile it fills up to a quarter at most, so that
// nothing runs over. It is drawn, so that instances do not come together.
func (t *Terms) pause(rnd uint64) time.Duration {
	longest := min(longPause, t.wait(float64(t.burst))/4)
	return longest/2 + time.Duration(float64(longest/2+1)*(float64(rnd>>11)/(1<<53)))
}
