package ratelimit

import (
	"math"
	"time"
)

// Pool is a bucket that a fleet shares, beside what its instances hold. In production it is kept by Redis, by a script
// that does the same, step by step; this one is for whoever plays a fleet in one process. The zero Pool is one that
// nobody has asked about yet, or that was lost with what kept it. It is used by one goroutine at a time.
type Pool struct {
	known  bool
	tokens float64 // millionths
	at     int64   // microseconds
}

// Take takes in what a question brings and pays, and returns what it gets, which is 0 or at least what it needs, and
// what is left: below 0 while more was spent without the bucket than it had.
func (p *Pool) Take(now time.Duration, t *Terms, q Question) (given, left int64) {
	micros := now.Microseconds()
	burst, rate := float64(t.burst), t.rate*1000
	if !p.known {
		*p = Pool{known: true, tokens: min(burst, math.Trunc(q.Most)), at: micros}
	}
	tokens := min(burst, p.tokens+float64(max(micros-p.at, 0))*rate+float64(q.Back))
	tokens = max(tokens-math.Ceil(q.Debt), float64(t.Deepest()))
	if tokens >= float64(q.Need) && tokens > 0 {
		given = min(q.Want, int64(math.Floor(tokens)))
		tokens -= float64(given)
	}
	p.tokens, p.at = tokens, micros
	p.known = tokens < burst // a full bucket is what no bucket means
	return given, int64(math.Floor(tokens))
}
