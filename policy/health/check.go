package health

import (
	"math"
	"time"
)

// Result is the outcome of one question.
type Result uint8

const (
	// Passing is a yes.
	Passing Result = 0
	// Refusing is an answer that says no: another status, NOT_SERVING.
	Refusing Result = 1
	// Silent is no answer: no connection, no answer in time, or one that nobody can read.
	Silent Result = 2
)

// Check is what is known of one endpoint. It is not safe for concurrent use.
type Check struct {
	due      time.Duration // when to look
	askAt    time.Duration // when to ask in any case
	answered uint64        // calls, at the last result
	seen     Calls         // at the last look
	row      int32         // results in a row that are not what is believed
	passed   int32         // checks in a row, without any other
	known    bool          // there was a result
	out      bool
	asking   bool
}

// Calls are what became of the calls at an endpoint, ever.
type Calls struct{ Answered, Failed uint64 }

// New returns the check of an endpoint that nobody has asked yet. rnd are 64 uniform random bits. c has its defaults.
func New(c Config, now time.Duration, rnd uint64) Check {
	first := later(now, time.Duration(float64(c.Interval)/quick*float64(rnd>>11)/(1<<53)))
	return Check{due: first, askAt: first}
}

const quick = 4 // part of the interval after which a surprising answer is asked for again

// Healthy reports whether the endpoint is believed to be well. One of which nothing is known is.
func (k *Check) Healthy() bool { return !k.out }

// Known reports whether there has been a result.
func (k *Check) Known() bool { return k.known }

// Due is when to call Ask. While a result is awaited it is the end of time.
func (k *Check) Due() time.Duration {
	if k.asking {
		return math.MaxInt64
	}
	return k.due
}

// Ask reports whether to send the question now, for Take to have its result: it is time to, or calls have failed and
// none was answered since the last look. Else Due says when to look again.
func (k *Check) Ask(c Config, now time.Duration, calls Calls, rnd uint64) bool {
	fail := k.known && calls.Failed != k.seen.Failed && calls.Answered == k.seen.Answered
	k.seen = calls
	if k.asking = now >= k.askAt || fail; !k.asking {
		k.due = min(k.askAt, later(now, jittered(c.Interval, rnd)))
	}
	return k.asking
}

// Take notes the result of a question and reports whether it changes what is believed of the endpoint. rnd are 64
// uniform random bits. c has its defaults.
func (k *Check) Take(c Config, now time.Duration, r Result, calls Calls, rnd uint64) (changed bool) {
	proof := calls.Answered != k.answered && k.known
	k.asking, k.answered, k.seen = false, calls.Answered, calls
	doubt := r == Silent && proof
	passes := r == Passing || doubt
	first := !k.known
	k.known = true
	if passes == k.out {
		k.row++
	} else {
		k.row = 0
	}
	threshold := c.UnhealthyThreshold
	if k.out {
		threshold = c.HealthyThreshold
	}
	if changed = k.row > 0 && (first || int(k.row) >= threshold); changed {
		k.out, k.row, k.passed = !k.out, 0, 0
	}
	wait := c.Interval
	switch {
	case k.row > 0 || doubt:
		k.passed = 0
		wait /= quick
	case k.out:
	case proof:
		wait = c.MaxInterval
	default:
		for range k.passed {
			if wait = min(2*wait, c.MaxInterval); wait == c.MaxInterval {
				break
			}
		}
		k.passed = min(k.passed+1, 64)
	}
	k.askAt = later(now, jittered(wait, rnd))
	k.due = min(k.askAt, later(now, jittered(c.Interval, rnd)))
	return changed
}

// jittered is d, up to a quarter shorter or longer.
func jittered(d time.Duration, rnd uint64) time.Duration {
	return time.Duration(float64(d) * (0.75 + float64(rnd>>11)/(1<<54)))
}

// later is t + d, or the end of time.
func later(t, d time.Duration) time.Duration {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}
