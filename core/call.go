package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/bulkhead"
	"github.com/abate-go/abate/policy/retry"
)

// Call is one guarded call as a state machine. It is told what happened and when, and answers what to do next; it
// starts no goroutine, reads no clock and never blocks. Do and Run drive it with goroutines and timers, a simulator
// with an event queue. The order of its decisions is the pipeline:
//
//	deadline → bulkhead → retry loop { throttle → breaker → rate limit, pacing → hedge { the attempt } }
//
// A Call is used by one goroutine at a time, once. Begin starts it; every Call that began must come to Finish, or be
// given up with Abort, else its permits are lost. What is reported to a Call that has finished is ignored, and answered
// with Await: two events of a driver may cross.
type Call struct {
	// 128 bytes in all: a simulator has a hundred thousand calls at once, and memory is what it waits for.
	s        *settings
	start    time.Duration
	deadline time.Duration
	tree     *CallTree     // nil if nobody has said which
	delay    time.Duration // the last back-off, which decorrelated jitter grows from

	Caller    Caller // what the driver knows of it; it is set before Begin
	lastClass Class
	attempts  int16 // sent, hedges included; policies allow 101 attempts of 4 copies at most
	retries   int16
	below     int16 // extra attempts made behind the callee, or taken for made
	hedges    int8  // of the current attempt
	inAir     int8
	place     place // in the bulkhead
	over      bool
	repeat    repeat // whether somebody above has made it before, see Repeated
	told      bool   // by the callee: do not try again
	reserved  bool   // the next attempt's turn has been taken from the rate limit
	token     bool   // an extra attempt has been taken from the tree, and is not sent yet
	awaits    awaits // what it is to be put in a line for
	failed    failed
	main      attemptCopy // the current attempt
	last      error       // the last failed attempt's error
	held      *held       // in the line of the circuit; nil if not
	beside    *beside     // nil before the first hedge, which most calls never send
}

// failed reports whether a copy of the current attempt has failed while others were in the air.
type failed uint8

const (
	failedOnce  failed = iota + 1
	failedFinal        // one of those said that repeating cannot help
)

// Begin starts c under the guard's current policy. now is on any clock the caller likes, the same for all calls of the
// guard; deadline is when the caller stops waiting, on that clock, or NoDeadline.
func (g *Guard) Begin(c *Call, now, deadline time.Duration) Step {
	s := g.inForce()
	if c.s != nil { // left by Watch
		s = s.watchedBy(c.s)
	}
	c.s, c.start, c.deadline = s, now, deadline
	if s.policy.Timeout > 0 {
		c.deadline = min(c.deadline, clock.Later(now, s.policy.Timeout))
	}
	if s.observer != nil {
		s.emit(Event{Kind: CallBegan, At: now})
	}
	if now >= c.deadline {
		return c.stop(now, ErrDeadline)
	}
	if c.repeat != firstTime {
		if reason := c.draw(now); reason != nil {
			return c.stop(now, reason)
		}
	}
	return c.enter(now)
}

// refuse begins and ends a call whose caller had left before it began.
func (g *Guard) refuse(c *Call, now time.Duration, cause error) Step {
	s := g.inForce()
	if c.s != nil { // left by Watch
		s = s.watchedBy(c.s)
	}
	c.s, c.start = s, now
	s.emit(Event{Kind: CallBegan, At: now})
	return c.stop(now, cause)
}

// Enqueue puts the call in the queue that it needs a place of, after a Queue step: the bulkhead's, that of an open
// circuit, or that of those who wait for a sign of life. w must not move until the call leaves the queue.
func (c *Call) Enqueue(now time.Duration, w *bulkhead.Waiter) Step {
	if c.awaits != nothing {
		return hold(c, now, w)
	}
	w.Until, w.Again = c.s.patience(now, c.deadline), c.place == away
	switch c.s.bulkhead.Enqueue(now, w) {
	case bulkhead.Admitted:
		return c.Admitted(now)
	case bulkhead.Full:
		return c.stop(now, ErrBulkheadFull)
	}
	if c.s.observer != nil {
		c.tellQueued(now, w)
	}
	return Step{Action: Queued, Until: w.Until}
}

// tellQueued tells the observer that the call waits. If the observer ends the goroutine nobody is left who waits: then
// the call leaves the queue, or the permit that it was given meanwhile would be lost.
func (c *Call) tellQueued(now time.Duration, w *bulkhead.Waiter) {
	told := false
	defer func() {
		if !told && !c.over && !c.s.bulkhead.Abandon(w) {
			c.place.arrive(c.s) // Abort gives it back
		}
	}()
	c.s.emit(Event{Kind: CallQueued, At: now})
	told = true
}

// Admitted goes on after the queue: the waiter woke. It answers with Queued if it was too early.
func (c *Call) Admitted(now time.Duration) Step {
	switch {
	case c.over:
		return Step{Action: Await}
	case c.held != nil:
		return c.held.look(c, now)
	}
	c.place.arrive(c.s)
	if now >= c.deadline {
		return c.stop(now, ErrDeadline)
	}
	return c.attempt(now)
}

// LeaveQueue ends the wait: the time of the Queued step is up (cause nil) or the caller left (cause its context's
// error). If a permit arrived at the same moment, a call whose time was up goes on with it. It answers with Queued if
// the call only had to look.
func (c *Call) LeaveQueue(now time.Duration, w *bulkhead.Waiter, cause error) Step {
	switch {
	case c.held != nil:
		return c.held.end(c, now, cause)
	case c.over || c.place == inside || c.s.bulkhead == nil:
		return Step{Action: Await}
	}
	if !c.s.bulkhead.Abandon(w) {
		if c.place.arrive(c.s); cause == nil {
			return c.Admitted(now)
		}
	}
	switch {
	case cause != nil:
		return c.stop(now, cause)
	case now >= c.deadline:
		return c.stop(now, ErrDeadline)
	}
	return c.stop(now, ErrBulkheadFull)
}

// AttemptDone reports the outcome of copy n, 0 unless Hedge gave another number. A result that comes after the call has
// finished is ignored. A final outcome decides the call, and makes the copies still in the air neutral: the driver
// cancels them. A failure that another copy may still fix is an Await, and so is whatever a hedge brings that is not a
// success: a copy that was refused, or could not be sent, must not harm the first.
func (c *Call) AttemptDone(now time.Duration, n int, o Outcome) Step {
	if c.over || n > 0 && c.beside == nil || !copyOf(c, n).live {
		return Step{Action: Await}
	}
	begun := copyOf(c, n).asked&askedBegun != 0
	c.record(now, n, &o)
	if o.Class == Ignored && n > 0 { // a hedge that has nothing to say
		switch {
		case c.inAir > 0:
			return Step{Action: Await}
		case c.failed > 0: // the failure before it stands
			o = Outcome{Class: c.lastClass, Err: c.last}
		}
	}
	c.last, c.lastClass = o.Err, o.Class
	if o.Class == Success {
		if o.Unfinished {
			c.place.keep(c.s, copyOf(c, n))
		}
		return c.finish(now, nil, o.Err)
	}
	final := o.Class == Ignored || o.NoRetry || begun // what the caller has of it cannot be taken back
	if b := c.beside; b != nil {
		b.asked = max(b.asked, o.RetryAfter)
		o.RetryAfter = b.asked
	}
	if c.inAir > 0 && (!final || n > 0) {
		c.failed = max(c.failed, failedOnce)
		if final {
			c.failed = failedFinal
		}
		return Step{Action: Await}
	}
	if final || c.failed == failedFinal {
		return c.finish(now, nil, o.Err)
	}
	return c.afterFailure(now, &o)
}

// afterFailure decides whether a retryable failure is retried. Every no is said here, before any sleep, and keeps the
// attempt's error.
func (c *Call) afterFailure(now time.Duration, o *Outcome) Step {
	s := c.s
	if s.policy.MaxRetries == 0 {
		return c.finish(now, nil, o.Err)
	}
	if c.tree.empty() && s.obeys {
		return c.stop(now, ErrTreeExhausted)
	}
	if s.breaker != nil {
		switch {
		case s.breaker.Rejecting(now) && !hopeful(c, now) && (scarce(c) || !mayHold(c)):
			return c.stop(now, ErrCircuitOpen)
		}
		if step := doubted(c, now, o); step.Action != 0 {
			return step
		}
	}
	q := retry.Question{Retries: int(c.retries), Elsewhere: int(c.below), Elapsed: now - c.start, Previous: c.delay,
		RetryAfter: o.RetryAfter}
	if s.delays(o) {
		q.Rand = s.rnd()
	}
	if s.policy.Delay != nil && int(c.retries)+int(c.below) < s.policy.MaxRetries {
		q.Own, q.OwnDelay = true, s.policy.Delay(int(c.retries)+1, *o, q.Rand)
	}
	delay, verdict := s.retry.Next(q)
	switch verdict {
	case retry.AttemptsExhausted:
		return c.stop(now, ErrAttemptsExhausted)
	case retry.RetryAfterTooLong:
		return c.stop(now, ErrOverloaded)
	case retry.ElapsedExhausted:
		return c.stop(now, ErrDeadline)
	}
	if c.deadline != NoDeadline && clock.Later(now, delay) >= c.deadline-s.typical.load() {
		return c.stop(now, ErrDeadline)
	}
	if s.obeys && c.tree.take(1, true) == 0 { // another call of the tree was quicker
		return c.stop(now, ErrTreeExhausted)
	}
	if !s.withdraw(now, budgetCost(o.Class)) {
		c.returnToken()
		return c.stop(now, ErrBudgetExhausted)
	}
	c.token = true
	c.retries++
	c.delay = delay
	if s.observer != nil {
		s.emit(Event{Kind: RetryScheduled, At: now, Attempt: int(c.attempts), Retries: int(c.retries), Delay: delay,
			Err: o.Err})
	}
	if delay == 0 {
		return c.attempt(now)
	}
	c.place.rest(s)
	return Step{Action: Sleep, Until: clock.Later(now, delay)}
}

// Resume goes on after a Sleep.
func (c *Call) Resume(now time.Duration) Step {
	if c.over {
		return Step{Action: Await}
	}
	if now >= c.deadline {
		return c.stop(now, ErrDeadline)
	}
	return c.enter(now)
}

// Cancel ends the call because its caller left while it slept; cause is the caller's context error.
func (c *Call) Cancel(now time.Duration, cause error) Step {
	if c.over {
		return Step{Action: Await}
	}
	return c.stop(now, cause)
}

// Abort gives the call's permits back without a verdict on the dependency, when the driver cannot go on (a panic in the
// guarded function). It does nothing to a call that has finished.
func (c *Call) Abort(now time.Duration) {
	if !c.over && c.s != nil {
		c.lastClass = Ignored
		if c.held != nil {
			c.held.leave(c, now)
		}
		defer c.finish(now, nil, nil)
		defer c.AnswerEnded(now, nil) // which nobody will read
		c.dropCopies(now)             // also one that was let pass and is not sent
	}
}

// Attempts returns how many attempts have been sent so far, hedges included.
func (c *Call) Attempts() int { return int(c.attempts) }

// Glance reads what the next step of c will need, and says nothing about it. Drivers of very many calls glance at
// several that are due soon, so that memory is waited for once and not once each.
func Glance(c *Call) uint32 {
	n := uint32(c.start) + uint32(c.attempts) + uint32(c.main.number)
	if c.beside != nil {
		n++
	}
	return n
}

// stop finishes the call for a reason of the policy's.
func (c *Call) stop(now time.Duration, reason error) Step {
	if c.Caller&Terse != 0 {
		return c.finish(now, reason, reason)
	}
	if c.attempts == 0 && reason == ErrCircuitOpen {
		return c.finish(now, reason, c.s.opening.refuse(c, now))
	}
	return c.finish(now, reason, &Error{
		Guard: c.s.name, Reason: reason, Attempts: int(c.attempts), Elapsed: now - c.start, Err: c.last,
	})
}

// finish gives every permit back and ends the call.
func (c *Call) finish(now time.Duration, reason, err error) Step {
	c.over = true
	if c.inAir > 0 {
		return c.finishAll(now, reason, err)
	}
	c.conclude(reason)
	if c.token {
		c.token = false
		c.returnToken()
	}
	c.place.leave(c.s)
	if c.s.observer != nil {
		c.reportEnded(now, reason, err)
	}
	return Step{Action: Finish, Err: err}
}

// finishAll is finish with copies in the air. Dropping them may end in a panic of Policy.Rand: then nobody reads the
// answer of another.
func (c *Call) finishAll(now time.Duration, reason, err error) Step {
	defer c.finish(now, reason, err) // none is in the air by then
	dropped := false
	defer func() {
		if !dropped {
			c.AnswerEnded(now, nil)
		}
	}()
	c.dropCopies(now)
	dropped = true
	return Step{Action: Finish, Err: err}
}

// endClass returns the class of the attempt that decided a call.
func endClass(c *Call) Class {
	if c.attempts == 0 {
		return Ignored
	}
	return c.lastClass
}
