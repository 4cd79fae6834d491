package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/bulkhead"
)

// Caller says what a driver knows of whoever makes a call, in bits.
type Caller uint8

const (
	// Scarce: while the call waits, it holds something of which its caller has little, such as one of a few workers. It is
	// refused by an open circuit rather than held, and slow attempts are not tried again.
	Scarce Caller = 1 << iota
	// ComesBack: what failed is tried again by the caller sooner or later, as a message of a queue is. The failure of its
	// first attempt counts against the circuit breaker also if it came at once, and an open circuit refuses it at once.
	ComesBack
)

// By notes who makes the call, before Begin.
func (c *Call) By(caller Caller) { c.caller = caller }

// by is By for an operation that says by a method Caller who makes it.
func (c *Call) by(op any) {
	if o, ok := op.(interface{ Caller() Caller }); ok {
		c.caller = o.Caller()
	}
}

// scarce reports whether waiting holds what others need.
func (c *Call) scarce() bool { return c.caller&Scarce != 0 || c.admitted }

// mayWait reports whether the call may wait for an open circuit.
func (c *Call) mayWait() bool {
	return c.caller&ComesBack == 0 && c.s.breaker.Holds()
}

// held is what a call needs while it waits for the circuit.
type held struct {
	waiter breaker.Waiter
	until  time.Duration // how long it waits
}

// hold puts the call in the line of those who wait for the circuit: until its deadline at the latest, and no longer than
// an attempt may take, for which its caller is prepared.
func (c *Call) hold(now time.Duration, w *bulkhead.Waiter) Step {
	c.barred = false
	until := min(c.deadline, clock.Later(now, c.s.breaker.Patience(c.s.policy.AttemptTimeout, c.scarce())))
	c.held = &held{breaker.Waiter{Wake: w.Wake}, until}
	permit, verdict, at := c.s.breaker.Hold(now, c.deadline, c.s.policy.AttemptTimeout, &c.held.waiter)
	step := c.turn(now, permit, verdict, at)
	if step.Action == Queued && c.s.observer != nil {
		c.tellHeld(now)
	}
	return step
}

// tellHeld tells the observer that the call waits. If the observer ends the goroutine nobody is left who waits.
func (c *Call) tellHeld(now time.Duration) {
	told := false
	defer func() {
		if !told {
			c.unhold(now) // Abort gives the permit back, if there is one
		}
	}()
	c.s.emit(Event{Kind: CallQueued, At: now})
	told = true
}

// look asks the circuit what has become of a call that waits for it.
func (c *Call) look(now time.Duration) Step {
	permit, verdict, at := c.s.breaker.Look(now, &c.held.waiter)
	return c.turn(now, permit, verdict, at)
}

// turn carries out what the circuit answers to a call that waits for it.
func (c *Call) turn(now time.Duration, permit breaker.Permit, verdict breaker.Verdict, at time.Duration) Step {
	switch verdict {
	case breaker.Admitted:
		c.take(permit)
		return c.admittedByCircuit(now)
	case breaker.Refused:
		c.held = nil
		return c.stop(now, ErrCircuitOpen)
	}
	return Step{Action: Queued, Until: min(at, c.held.until)}
}

// take notes the permit that the circuit has given the call.
func (c *Call) take(p breaker.Permit) {
	c.held = nil
	c.copies[0].permit = p
	c.copies[0].asked = askedBreaker
}

// admittedByCircuit sends the attempt for which the call has waited, if the throttle and the deadline allow.
func (c *Call) admittedByCircuit(now time.Duration) Step {
	s, a := c.s, &c.copies[0]
	var reason error
	switch {
	case now >= c.deadline:
		reason = ErrDeadline
	case s.throttle != nil && !s.throttled(now, a):
		reason = ErrThrottled
	default:
		return c.dispatch(now, a)
	}
	s.giveBack(now, a)
	return c.stop(now, reason)
}

// leaveCircuit ends the wait for the circuit, or goes on with it if the time has only come to look.
func (c *Call) leaveCircuit(now time.Duration, cause error) Step {
	if cause == nil && now < c.held.until {
		return c.look(now)
	}
	if c.unhold(now) {
		if cause == nil {
			return c.admittedByCircuit(now)
		}
		c.s.giveBack(now, &c.copies[0])
	}
	if cause == nil {
		cause = ErrCircuitOpen
	}
	return c.stop(now, cause)
}

// unhold takes the call out of the line, and reports whether it has been given a permit, which it holds then.
func (c *Call) unhold(now time.Duration) bool {
	if c.held == nil {
		return false
	}
	permit, admitted := c.s.breaker.Leave(now, &c.held.waiter)
	if c.held = nil; admitted {
		c.take(permit)
	}
	return admitted
}
