package core

import (
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/bulkhead"
)

// enter sends the next attempt if the call has, or gets, a permit of the bulkhead. If none is free it has to queue;
// whose time is too short to wait and then be answered is refused.
func (c *Call) enter(now time.Duration) Step {
	s := c.s
	switch {
	case s.bulkhead == nil, c.admitted:
	case s.bulkhead.TryAcquire(), s.learns && s.bulkhead.Widen(now):
		c.arrive()
	case s.policy.Bulkhead.Enabled() && (s.policy.Bulkhead.NoQueue && !c.away || c.patience(now) <= now):
		return c.stop(now, ErrBulkheadFull)
	default:
		return Step{Action: Queue}
	}
	return c.attempt(now)
}

// patience is until when the call may wait for a permit.
func (c *Call) patience(now time.Duration) time.Duration {
	s := c.s
	return s.policy.Bulkhead.Patience(now, c.deadline, NoDeadline, s.typical.load(), s.policy.AttemptTimeout)
}

// arrive notes that the call has a permit.
func (c *Call) arrive() {
	if c.admitted = true; c.away {
		c.away = false
		c.s.bulkhead.Back()
	}
}

// rest lets the permit go for a back-off.
func (c *Call) rest() {
	if b := &c.s.policy.Bulkhead; c.admitted && b.Enabled() && !b.HoldDuringBackoff {
		c.admitted, c.away = false, true
		c.s.bulkhead.Pause()
	}
}

// leave gives the permit back, unless the answer goes on and keeps it, see AnswerEnded.
func (c *Call) leave() {
	if c.away {
		c.away = false
		c.s.bulkhead.Back()
	}
	if c.admitted {
		c.admitted = false
		c.s.bulkhead.Release()
	}
}

// teach tells an adaptive limit how the attempt of a has ended.
func (c *Call) teach(now time.Duration, a *attemptCopy, class Class) {
	allowed := c.s.policy.AttemptTimeout
	if c.deadline != NoDeadline && (allowed == 0 || c.deadline-c.start < allowed) {
		allowed = c.deadline - c.start
	}
	c.s.bulkhead.Record(now, now-a.start, allowed, class == Success)
}

// keptPermit is a permit of the bulkhead that an answer keeps until it ends, for good or bad. It may be told more than
// once.
type keptPermit struct {
	from *bulkhead.Bulkhead
	over atomic.Bool
}

// keep leaves the permit of the call to the answer of copy n.
func (c *Call) keep(n int) {
	c.kept = &keptPermit{from: c.s.bulkhead}
	c.admitted = false
	c.copies[n].asked |= askedPermit
}

// release gives the permit back. A nil one is none.
func (k *keptPermit) release() {
	if k != nil && k.over.CompareAndSwap(false, true) {
		k.from.Release()
	}
}
