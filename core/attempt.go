package core

import (
	"fmt"
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policy/ratelimit"
	"github.com/abate-go/abate/policy/throttle"
)

// attemptCopy is one attempt in the air.
type attemptCopy struct {
	live   bool
	asked  uint8 // who has let it pass, and has not heard of its end
	handed int16 // what its callee was told it may use of the tree's extra attempts
	number int32 // of the attempt, from 1
	start  time.Duration
	permit breaker.Permit
}

// beside is what only a call needs that sends hedges.
type beside struct {
	asked  time.Duration // the longest Retry-After that a copy of the current attempt brought
	copies [MaxCopies - 1]attemptCopy
}

// copyOf returns copy n of the current attempt. Only a call with something beside it has others than 0.
func copyOf(c *Call, n int) *attemptCopy {
	if n == 0 {
		return &c.main
	}
	return &c.beside.copies[n-1]
}

// copiesOf is how many copies c has room for.
func copiesOf(c *Call) int {
	if c.beside == nil {
		return 1
	}
	return MaxCopies
}

// The bits of asked. A throttle that is only a shadow, and would not have let the attempt pass, does not count it.
const (
	askedThrottle = 1 << iota
	askedBreaker
	askedAnswer // the breaker, which knows that the answer has begun
	askedOpener
	waitsForPace // since start; nobody's answer
	askedPermit  // the bulkhead, whose permit the answer keeps
	askedBegun   // nobody but the breaker: AnswerBegan has told the others. How the attempt ends is not known yet
	askedSends   // the bulkhead and the throttle, which have been told that the client is still sending
)

// attempt asks the throttle, the breaker, the rate limit and the pacer, and sends the next attempt.
func (c *Call) attempt(now time.Duration) Step {
	s := c.s
	a := &c.main
	if reason := s.allow(now, a, s.within(now, c.deadline)); reason != nil {
		switch {
		case reason == ErrCircuitOpen && hopeful(c, now):
			return comeAgain(c, now, untilProbe(c, now), reason)
		case reason == ErrCircuitOpen && mayHold(c):
			c.awaits = openCircuit
			return Step{Action: Queue}
		}
		return c.stop(now, reason)
	}
	return c.dispatch(now, a)
}

// dispatch asks the rate limit and the pacer, and sends the attempt of a, which the throttle and the breaker let pass.
func (c *Call) dispatch(now time.Duration, a *attemptCopy) Step {
	s := c.s
	if (s.limiter != nil || s.pacer != nil) && !c.reserved {
		wait, ok := c.tokenIn(now, a)
		if !ok || wait > 0 {
			s.giveBack(now, a)
		}
		if !ok {
			return c.stop(now, ErrRateLimited)
		}
		if wait > 0 {
			c.reserved = true
			return Step{Action: Sleep, Until: clock.Later(now, wait)}
		}
	}
	if s.opener != nil {
		if wait := s.opener.Enter(now, waitsSince(c, now), s.rnd(), s.probing(a)); wait > 0 {
			s.giveBack(now, a)
			c.reserved = s.limiter != nil
			return comeAgain(c, now, wait, ErrRateLimited)
		}
		a.asked |= askedOpener
	}
	c.reserved = false
	if c.attempts == 0 && c.repeat == firstTime {
		if s.budget != nil {
			s.budget.Deposit(now)
		}
		if s.shared != nil {
			s.shared.Deposit(now)
		}
	}
	if c.token {
		c.token = false
		c.tree.count(1)
	}
	c.hedges, c.failed = 0, 0
	if c.beside != nil {
		c.beside.asked = 0
	}
	return Step{Action: Attempt, Until: c.send(0, now, AttemptBegan)}
}

// tokenIn asks the rate limit and the pacer how long the attempt of a has to wait; false if it would be too long. A
// probe waits for no pace: it is what the pace after it depends on.
func (c *Call) tokenIn(now time.Duration, a *attemptCopy) (wait time.Duration, ok bool) {
	s, patience := c.s, NoDeadline
	pacer := s.pacer
	if s.probing(a) {
		pacer = nil
	}
	if c.deadline != NoDeadline { // a turn that comes too late for a typical attempt would be lost
		patience = c.deadline - now - s.typical.load() - 1
	}
	if s.limiter != nil {
		if pacer != nil { // neither gives back what it gave: ask before anything is taken
			if far := pacer.State(now).Wait; far > 0 && far > min(patience, s.policy.Pacing.MaxWait) {
				return tooFar(c, far)
			}
		}
		var d ratelimit.Decision
		if d, wait = s.limiter.Reserve(now, "", 1, min(s.policy.RateLimit.MaxWait, patience)); !d.Allowed {
			return 0, false
		}
	}
	if pacer != nil { // one after the other from when the rate limit lets them go
		more, ok := pacer.Take(clock.Later(now, wait), s.rnd(), patience-wait)
		if !ok {
			return tooFar(c, more)
		}
		wait = clock.Later(wait, more)
	}
	return wait, true
}

// patience returns for how long a call that waits since then would wait for an adaptive pace.
func patience(c *Call, since time.Duration) time.Duration {
	most := c.s.policy.Pacing.MaxWait
	if c.deadline == NoDeadline { // else an attempt that comes too late for a typical answer would be lost
		return most
	}
	return min(most, c.deadline-since-c.s.typical.load()-1)
}

// times reports whether the end of a successful attempt has a time: whether somebody needs to know it.
func (s *settings) times(deadline time.Duration) bool {
	return s.timed || deadline != NoDeadline && s.policy.MaxRetries > 0
}

// probing reports whether the attempt of a is a probe of a half-open circuit.
func (s *settings) probing(a *attemptCopy) bool {
	return s.breaker != nil && !s.shadowed() && !a.permit.WouldReject() && s.breaker.State() == breaker.HalfOpen
}

// tooFar refuses an attempt of a call whose turn would have come too late, and has the call's error say so if it has
// nothing else to say.
func tooFar(c *Call, wait time.Duration) (time.Duration, bool) {
	if c.last == nil {
		c.last = TooFar(wait)
	}
	return 0, false
}

// TooFar is the error of a call whose first attempt was refused because its slot was too far away: how far that was.
type TooFar time.Duration

// Error says how far, and which limits there are.
func (d TooFar) Error() string {
	return fmt.Sprintf("the turn of the next attempt was %v away, later than pacing.maxWait or the deadline allows",
		time.Duration(d).Round(time.Millisecond))
}

// allow asks the throttle and the breaker for one attempt, which may take patience, and notes in a what they said.
func (s *settings) allow(now time.Duration, a *attemptCopy, patience time.Duration) error {
	if s.throttle != nil && !s.throttled(now, a) {
		return ErrThrottled
	}
	if s.breaker != nil {
		var ok bool
		if a.permit, ok = s.breaker.AllowFor(now, patience); !ok {
			s.recordThrottle(now, now, a, throttle.Neutral)
			return ErrCircuitOpen
		}
		a.asked |= askedBreaker
	}
	return nil
}

// throttled asks the throttle for one attempt, and reports whether it lets it pass.
func (s *settings) throttled(now time.Duration, a *attemptCopy) (passes bool) {
	passes, uncounted := s.throttle.Allow(now, s.rnd())
	if passes && !uncounted {
		a.asked |= askedThrottle
	}
	return passes
}

// within returns how long an attempt that begins now may take; 0 for no limit.
func (s *settings) within(now, deadline time.Duration) time.Duration {
	limit := s.policy.AttemptTimeout
	if deadline == NoDeadline {
		return limit
	}
	if left := deadline - now; limit == 0 || left < limit {
		return left
	}
	return limit
}

// giveBack undoes allow for an attempt that is not sent.
func (s *settings) giveBack(now time.Duration, a *attemptCopy) {
	s.recordThrottle(now, now, a, throttle.Neutral)
	s.recordOpener(now, now, a, Ignored)
	s.recordBreaker(now, a, breaker.Neutral)
}

// recordThrottle tells the throttle what became of an attempt that was begun then, if it waits to hear.
func (s *settings) recordThrottle(now, began time.Duration, a *attemptCopy, r throttle.Result) {
	if a.asked&askedThrottle != 0 {
		a.asked &^= askedThrottle
		s.throttle.Record(now, began, r)
	}
}

// recordBreaker tells the breaker what became of an attempt, if it waits to hear.
func (s *settings) recordBreaker(now time.Duration, a *attemptCopy, r breaker.Result) {
	if a.asked&askedBreaker != 0 {
		a.asked &^= askedBreaker
		s.breaker.Record(now, a.permit, r)
	}
}

// send notes copy n as sent and returns its deadline.
func (c *Call) send(n int, now time.Duration, kind EventKind) time.Duration {
	c.attempts++
	c.inAir++
	a := copyOf(c, n)
	a.live, a.number, a.start = true, int32(c.attempts), now
	a.asked &^= waitsForPace
	if c.s.observer != nil {
		c.s.emit(Event{Kind: kind, At: now, Attempt: int(c.attempts)})
	}
	if t := c.s.policy.AttemptTimeout; t > 0 {
		return min(c.deadline, clock.Later(now, t))
	}
	return c.deadline
}

// HedgeDelay reports how long after sending one copy the next may follow; false when no (further) copy may.
func (c *Call) HedgeDelay(now time.Duration) (time.Duration, bool) {
	if c.s.hedge == nil || int(c.hedges) >= c.s.policy.Hedge.MaxHedges { // as it was when the call began
		return 0, false
	}
	return c.s.hedge.Delay(now)
}

// Hedge asks to send one more copy of the attempt in the air, after HedgeDelay has passed. It answers with the copy's
// number for AttemptDone and its deadline. A refusal leaves the running copies alone.
func (c *Call) Hedge(now time.Duration) (n int, deadline time.Duration, ok bool) {
	s := c.s
	if c.over || c.inAir == 0 || s.hedge == nil || int(c.hedges) >= min(s.policy.Hedge.MaxHedges, MaxCopies-1) ||
		now >= c.deadline || c.main.asked&askedBegun != 0 {
		return 0, 0, false
	}
	if c.beside == nil {
		c.beside = new(beside)
	}
	n = int(c.hedges) + 1
	a := copyOf(c, n)
	reason := s.allow(now, a, s.within(now, c.deadline))
	if reason != nil {
		s.emit(Event{Kind: HedgeDenied, At: now, Reason: reason})
		return 0, 0, false
	}
	switch {
	case s.obeys && c.tree.empty():
		reason = ErrTreeExhausted
	case s.budgeted && s.balance(now) < 1: // before the rate limit, which gives nothing back
		reason = ErrBudgetExhausted
	case !s.turnNow(now, a):
		reason = ErrRateLimited
	case s.obeys && c.tree.take(1, true) == 0:
		reason = ErrTreeExhausted
	case !s.withdraw(now, budget.Hedge):
		c.returnToken()
		reason = ErrBudgetExhausted
	}
	if reason != nil {
		s.giveBack(now, a)
		s.emit(Event{Kind: HedgeDenied, At: now, Reason: reason})
		return 0, 0, false
	}
	c.hedges++
	c.tree.count(1)
	return n, c.send(n, now, HedgeSent), true
}

// turnNow asks the pacer and the rate limit for an attempt that cannot wait.
func (s *settings) turnNow(now time.Duration, a *attemptCopy) bool {
	if s.opener != nil {
		if s.opener.Enter(now, now, s.rnd(), s.probing(a)) > 0 {
			return false
		}
		a.asked |= askedOpener
	}
	if s.pacer != nil && s.pacer.State(now).Wait > 0 {
		return false
	}
	if s.limiter != nil && !s.limiter.Allow(now, "", 1).Allowed {
		return false
	}
	if s.pacer == nil {
		return true
	}
	_, ok := s.pacer.Take(now, s.rnd(), 0)
	return ok
}
