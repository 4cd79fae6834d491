package budget

import (
	"math"
	"time"
)

// bucket holds the tokens of the kind "tokens". Guarded by the budget's lock.
type bucket struct {
	tokens int64
	part   float64 // of a millionth, earned by time
	last   time.Duration
	timed  bool // last is set
}

// refill adds what the time since the last call earned. Time that runs backwards earns
// nothing and is not counted again when it comes back.
func (k *bucket) refill(now time.Duration, s *settings) {
	if !k.timed {
		k.last, k.timed = now, true
	}
	if now <= k.last {
		return
	}
	passed := now - k.last
	if passed < 0 {
		passed = math.MaxInt64
	}
	k.last = now
	earned := passed.Seconds()*s.perSecond + k.part
	if earned >= float64(s.floor-k.tokens) {
		k.tokens, k.part = s.floor, 0
		return
	}
	whole := math.Floor(earned)
	k.tokens += int64(whole)
	k.part = earned - whole
}

func (k *bucket) put(n int64, s *settings) { k.tokens = min(k.tokens+n, s.floor) }

func (k *bucket) take(cost int64) bool {
	if k.tokens < cost {
		return false
	}
	k.tokens -= cost
	return true
}
