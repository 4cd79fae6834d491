package breaker

import (
	"sync/atomic"
	"time"
)

// evidence is what a breaker has seen of its dependency since the state last began anew. A later generation
// gets new evidence, so a result that arrives late cannot reach what decides by then.
type evidence struct {
	row   row
	works atomic.Bool // a call succeeded since Advise last asked
	// pending: a rate is over its threshold, but on too few calls. Then a success can be what opens the
	// breaker, and successes must look too.
	pending atomic.Bool
	byTime  *timeWindow  // one of the windows, or neither when no rate is watched
	byCount *countWindow //
	hanging *hanging     // nil without slow-call detection
}

// newEvidence returns evidence in the shape c needs. What old holds in the same shape is kept; old may be nil.
func newEvidence(c, was *Config, old *evidence) *evidence {
	e := &evidence{}
	if old == nil {
		old, was = e, &Config{}
	}
	e.row.take(&old.row)
	e.works.Store(old.works.Load())
	switch sameWindow := c.watchesRates() && was.watchesRates() && c.SlidingWindow == was.SlidingWindow; {
	case sameWindow:
		e.byTime, e.byCount = old.byTime, old.byCount
	case c.watchesRates() && c.SlidingWindow.Calls > 0:
		e.byCount = newCountWindow(c.SlidingWindow.Calls)
	case c.watchesRates():
		e.byTime = newTimeWindow(c.SlidingWindow.Duration)
	}
	switch {
	case c.sameHanging(was):
		e.hanging = old.hanging
	case c.SlowCallRateThreshold > 0:
		e.hanging = newHanging(c.SlowCallDurationThreshold)
	}
	// The thresholds may be new: have the next result looked at whatever it is.
	e.pending.Store(old != e)
	return e
}

func (e *evidence) tally(now time.Duration) tally {
	switch {
	case e.byTime != nil:
		return e.byTime.sum(now)
	case e.byCount != nil:
		return e.byCount.sum()
	}
	return tally{}
}

// hangingAt counts the calls running longer than the slow threshold.
func (e *evidence) hangingAt(now time.Duration) int64 {
	if e.hanging == nil {
		return 0
	}
	return e.hanging.at(now)
}

// verdict returns why the breaker should open, or "". pending reports that a rate is over its threshold and
// only the number of calls is missing. A hanging call is slow, but whether it fails is not known yet: it is
// part of the slow-call rate and its minimum, not of the failure rate.
func (e *evidence) verdict(now time.Duration, c *Config, minimum int64) (reason string, pending bool) {
	if c.FailureThreshold > 0 && e.row.length() >= int64(c.FailureThreshold) {
		return reasonConsecutive, false
	}
	if !c.watchesRates() {
		return "", false
	}
	t := e.tally(now)
	hanging := e.hangingAt(now) // after the tally: a call that ends in between is missed, not counted twice
	failing := c.FailureRateThreshold > 0 && rate(t.failed, t.calls) >= c.FailureRateThreshold
	slow := c.SlowCallRateThreshold > 0 && rate(t.slow+hanging, t.calls+hanging) >= c.SlowCallRateThreshold
	switch {
	case failing && t.calls >= minimum:
		return reasonFailureRate, false
	case slow && t.calls+hanging >= minimum:
		return reasonSlowRate, false
	}
	return "", failing || slow
}
