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
	// ComesBack: what failed is tried again by the caller sooner or later, as a message of a queue is. An open circuit
	// refuses it at once.
	ComesBack Caller = 1 << iota
	// Fresh, of a call that comes back: it is made for the first time. The failure of its first attempt counts against
	// the circuit breaker also if it came at once; later ones may be the message's own fault.
	Fresh
	// Gone: the caller has given the call up. Abort says so to the circuit breaker, if an answer was due.
	Gone
	// Terse: nobody reads how the call ended, only why. Step.Err of a call that the policy ends is the reason itself,
	// where it would be an *Error, and costs no memory. What its attempts fail with while the circuit is open is not
	// written down for those whom the circuit refuses.
	Terse
)

// callerOf returns what an operation says by a method Caller of who makes it.
func callerOf(op any) Caller {
	if o, ok := op.(interface{ Caller() Caller }); ok {
		return o.Caller()
	}
	return 0
}

// verdict returns what an attempt is to the breaker. left: its caller gave it up.
func (k Caller) verdict(class Class, left, first bool) breaker.Result {
	switch {
	case class == Ignored && left:
		return breaker.Abandoned
	case class != Success && class != Ignored && k&Fresh != 0 && first:
		return breaker.Costly
	}
	return breakerResult[class&3]
}

// Places is a number of places of which a caller holds one while its calls last, such as the slots of a gate or the
// workers of a service.
type Places interface {
	// Scarce reports whether little is left of them, as far as that is known. While it is so, a call waits for an open
	// circuit only as long as it takes to find a false alarm out, and slow attempts are not tried again: whoever waits
	// would hold what others need. It is asked when a call would wait or an attempt has failed, must be quick and safe for
	// concurrent use, and must not ask the guard.
	Scarce() bool
}

// scarce reports whether waiting holds what others need: of the caller, or a permit.
func scarce(c *Call) bool {
	if c.place == inside && c.s.bulkhead.Scarce() {
		return true
	}
	places := c.s.policy.Places
	return places != nil && places.Scarce()
}

// held is what a call needs while it waits for its circuit. It does not know the call, so that calls need no heap.
type held struct {
	waiter breaker.Waiter
	until  time.Duration // how long it waits
	check  time.Duration // when it may have to go before that, because little is left of what its caller holds
}

// awaits says what a call is to be put in a line for.
type awaits uint8

const (
	nothing awaits = iota
	openCircuit
	signOfLife
)

// doubted decides about a failure of which the circuit doubts that it is worth another attempt; the zero Step if it
// does not. What has certainly not been sent, or went to one that is gone, is tried again all the same by who may not
// wait.
func doubted(c *Call, now time.Duration, o *Outcome) Step {
	switch doubt := c.s.breaker.Discourages(now, c.main.start, scarce(c)); {
	case doubt == breaker.Lifeless && mayWatch(c, now, o):
		c.awaits = signOfLife
		return Step{Action: Queue}
	case doubt == breaker.NoDoubt || o.Unsent || o.Gone:
		return Step{}
	case now >= c.deadline:
		return c.stop(now, ErrDeadline)
	}
	return c.stop(now, ErrSilent)
}

// mayHold reports whether a call may wait for an open circuit.
func mayHold(c *Call) bool { return c.Caller&ComesBack == 0 && c.s.breaker.Holds() }

// hold puts a call in a line. It waits for the circuit until its deadline at the latest, and no longer than an attempt
// may take, for which its caller is prepared.
func hold(c *Call, now time.Duration, w *bulkhead.Waiter) Step {
	b, timeout := c.s.breaker, c.s.policy.AttemptTimeout
	h := &held{waiter: breaker.Waiter{Wake: w.Wake}}
	if c.awaits == signOfLife {
		h.watch(c, now, timeout)
	} else {
		h.until = min(c.deadline, clock.Later(now, b.Patience(timeout, false)))
	}
	h.stay(c, now)
	c.awaits, c.held = nothing, h
	permit, verdict, at := b.Hold(now, c.deadline, timeout, &h.waiter)
	step := h.turn(c, now, permit, verdict, at)
	if step.Action == Queued && c.s.observer != nil {
		h.tell(c, now)
	}
	return step
}

// stay has the call wait as long as it takes to find a false alarm out, before it looks again at what its caller has
// left: that changes while calls wait.
func (h *held) stay(c *Call, now time.Duration) {
	if h.check = NoDeadline; c.place != inside && c.s.policy.Places == nil {
		return // nobody knows
	}
	h.check = clock.Later(now, c.s.breaker.Patience(c.s.policy.AttemptTimeout, true))
}

// tell tells the observer that the call waits. If the observer ends the goroutine nobody is left who waits.
func (h *held) tell(c *Call, now time.Duration) {
	told := false
	defer func() {
		if !told {
			h.leave(c, now) // Abort gives the permit back, if there is one
		}
	}()
	c.s.emit(Event{Kind: CallQueued, At: now})
	told = true
}

// look asks the circuit what has become of the call.
func (h *held) look(c *Call, now time.Duration) Step {
	permit, verdict, at := c.s.breaker.Look(now, &h.waiter)
	return h.turn(c, now, permit, verdict, at)
}

// turn carries out what the circuit answers.
func (h *held) turn(c *Call, now time.Duration, p breaker.Permit, v breaker.Verdict, at time.Duration) Step {
	switch v {
	case breaker.Admitted:
		h.take(c, p)
		return h.admitted(c, now)
	case breaker.Refused:
		c.held = nil
		return c.stop(now, h.reason())
	}
	return Step{Action: Queued, Until: min(at, h.until, h.check)}
}

// take notes the permit that the circuit has given the call.
func (h *held) take(c *Call, p breaker.Permit) {
	a := &c.main
	c.held, a.permit, a.asked = nil, p, a.asked|askedBreaker
}

// admitted sends the attempt for which the call has waited, if the throttle and the deadline allow.
func (h *held) admitted(c *Call, now time.Duration) Step {
	s, a := c.s, &c.main
	var reason error
	switch {
	case now >= c.deadline:
		reason = ErrDeadline
	case s.throttle != nil && !s.throttled(now, a):
		reason = ErrThrottled
	default:
		if reason = h.pay(c, now); reason == nil {
			return c.dispatch(now, a)
		}
	}
	s.giveBack(now, a)
	return c.stop(now, reason)
}

// end ends the wait, or goes on with it if the time has only come to look.
func (h *held) end(c *Call, now time.Duration, cause error) Step {
	if cause == nil && now < h.until && (now < h.check || !scarce(c)) {
		if now >= h.check {
			h.stay(c, now)
		}
		return h.look(c, now)
	}
	if h.leave(c, now) {
		if cause == nil {
			return h.admitted(c, now)
		}
		c.s.giveBack(now, &c.main)
	}
	if cause == nil {
		cause = h.reason()
	}
	return c.stop(now, cause)
}

// leave takes the call out of the line, and reports whether it has been given a permit, which it holds then.
func (h *held) leave(c *Call, now time.Duration) bool {
	permit, admitted := c.s.breaker.Leave(now, &h.waiter)
	if c.held = nil; admitted {
		h.take(c, permit)
	}
	return admitted
}
