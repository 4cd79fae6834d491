package core

import (
	"sync/atomic"
	"time"
)

// place is what a call has of its bulkhead.
type place uint8

const (
	outside place = iota
	inside        // it holds a permit
	away          // it has let its permit go, and comes back for another
)

// enter sends the next attempt if the call has, or gets, a permit of the bulkhead. If none is free it has to queue;
// whose time is too short to wait and then be answered is refused.
func (c *Call) enter(now time.Duration) Step {
	s := c.s
	switch {
	case s.bulkhead == nil, c.place == inside:
	case s.bulkhead.TryAcquire(), s.learns && s.bulkhead.Widen(now):
		c.place.arrive(s)
	case s.policy.Bulkhead.Enabled() &&
		(s.policy.Bulkhead.NoQueue && c.place != away || s.patience(now, c.deadline) <= now):
		return c.stop(now, ErrBulkheadFull)
	default:
		return Step{Action: Queue}
	}
	return c.attempt(now)
}

// patience is until when a call may wait for a permit.
func (s *settings) patience(now, deadline time.Duration) time.Duration {
	return s.policy.Bulkhead.Patience(now, deadline, NoDeadline, s.typical.load(), s.policy.AttemptTimeout)
}

// arrive notes that the call has a permit.
func (p *place) arrive(s *settings) {
	if *p == away {
		s.bulkhead.Back()
	}
	*p = inside
}

// rest lets the permit go for a back-off.
func (p *place) rest(s *settings) {
	if b := &s.policy.Bulkhead; *p == inside && b.Enabled() && !b.HoldDuringBackoff {
		*p = away
		s.bulkhead.Pause()
	}
}

// leave gives the permit back.
func (p *place) leave(s *settings) {
	was := *p
	switch *p = outside; was {
	case inside:
		s.bulkhead.Release()
	case away:
		s.bulkhead.Back()
	}
}

// keep leaves the permit to the answer of a, which goes on, if the policy says so.
func (p *place) keep(s *settings, a *attemptCopy) {
	if *p == inside && s.policy.Bulkhead.HoldDuringBody {
		*p = outside
		a.asked |= askedPermit
	}
}

// begun gives the permit back when the answer begins, unless the policy says that it is kept.
func (p *place) begun(s *settings) {
	if !s.policy.Bulkhead.HoldDuringBody {
		p.leave(s)
	}
}

// keptPermit is a permit that an answer keeps until it ends, for good or bad. It may be told so more than once.
type keptPermit struct {
	s    *settings
	over atomic.Bool
}

// release gives the permit back. A nil one is none.
func (k *keptPermit) release() {
	if k != nil && k.over.CompareAndSwap(false, true) {
		k.s.bulkhead.Release()
	}
}

// teach tells an adaptive limit how an attempt has ended that was begun then, of a call of that time.
func (s *settings) teach(now, began, start, deadline time.Duration, class Class) {
	allowed := s.policy.AttemptTimeout
	if deadline != NoDeadline && (allowed == 0 || deadline-start < allowed) {
		allowed = deadline - start
	}
	s.bulkhead.Record(now, now-began, allowed, class == Success)
}
