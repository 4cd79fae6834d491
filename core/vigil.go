package core

import (
	"math"
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// mayWatch reports whether a call whose attempt has failed with o may wait for a sign of life, instead of ending or of
// being tried again in vain. It has to have a retry left, time and budget for it, and to be free to go at any moment. A
// dependency that has too much to do is no dead one: who does not know how long he is waited for does not wait for it.
func mayWatch(c *Call, now time.Duration, o *Outcome) bool {
	s := c.s
	switch {
	case !mayHold(c), o.RetryAfter > 0, s.policy.Delay != nil, int(c.retries)+int(c.below) >= s.policy.MaxRetries:
		return false
	case c.deadline == NoDeadline && o.Class == Overload:
		return false
	}
	return now < lastMoment(c) && s.balance(now) >= 1
}

// lastMoment is until when a call may wait for a retry that is still answered in time: or, if there is none, for its
// caller to hear of the failure before he leaves.
func lastMoment(c *Call) time.Duration {
	last := c.deadline
	if last != NoDeadline {
		last -= c.s.typical.load()
	}
	if most := c.s.policy.MaxElapsed; most > 0 {
		last = min(last, clock.Later(c.start, most))
	}
	return last
}

// watch prepares the wait for a sign of life: no longer than an attempt may take, for which its caller is prepared; or
// where nobody has said how long he waits, no longer than it takes to find a false alarm out. No more wait than retries
// can be paid for.
func (h *held) watch(c *Call, now, timeout time.Duration) {
	patience := c.s.breaker.Patience(timeout, c.deadline == NoDeadline)
	h.until = min(lastMoment(c), clock.Later(now, patience))
	h.waiter.Last = int(c.retries)+int(c.below)+1 >= c.s.policy.MaxRetries
	h.waiter.Sign, h.waiter.Among = true, int(min(c.s.balance(now), math.MaxInt32))
}

// reason is why a call ends that has waited in vain. Its last attempt's error is beside it, if it has made one.
func (h *held) reason() error {
	if h.waiter.Sign {
		return ErrSilent
	}
	return ErrCircuitOpen
}

// pay pays for the retry of a call for which a sign of life has come; a first attempt costs nothing.
func (h *held) pay(c *Call, now time.Duration) error {
	s := c.s
	switch {
	case !h.waiter.Sign:
		return nil
	case s.obeys && c.tree.take(1, true) == 0:
		return ErrTreeExhausted
	case !s.withdraw(now, budgetCost(c.lastClass)):
		c.returnToken()
		return ErrBudgetExhausted
	}
	c.token = true
	c.retries++
	s.emit(Event{Kind: RetryScheduled, At: now, Attempt: int(c.attempts), Retries: int(c.retries), Err: c.last})
	return nil
}
