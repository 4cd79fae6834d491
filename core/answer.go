package core

import (
	"time"

	"github.com/abate-go/abate/policy/breaker"
)

// answer is what is left of a call that has succeeded with an answer that goes on. The zero answer is over.
type answer struct {
	s        *settings
	permit   breaker.Permit
	start    time.Duration // of the attempt
	deadline time.Duration // of the call
	number   int32
	judged   bool // the breaker waits to hear of it
	kept     *keptPermit
}

// answer returns what is left of c.
func (c *Call) answer() answer {
	if a := c.goesOn(); a != nil {
		rest := answer{s: c.s, permit: a.permit, start: a.start, deadline: c.deadline, number: a.number,
			judged: a.asked&askedAnswer != 0}
		if a.asked&askedPermit != 0 {
			rest.kept = &keptPermit{s: c.s}
		}
		return rest
	}
	return answer{}
}

// goesOn returns the copy whose answer goes on, nil if there is none.
func (c *Call) goesOn() *attemptCopy {
	for n := range int(c.hedges) + 1 {
		if a := copyOf(c, n); a.asked&(askedAnswer|askedPermit) != 0 {
			return a
		}
	}
	return nil
}

// AnswerEnded reports how the answer of an attempt ended that was reported as Unfinished: nil if it came to its end, or
// if its caller did not want the rest; else why it broke off, which is a failure of the dependency now. Report it once,
// after the call has finished. For any other call it does nothing.
func (c *Call) AnswerEnded(now time.Duration, err error) {
	if a := c.goesOn(); a != nil {
		rest := c.answer()
		a.asked &^= askedAnswer | askedPermit
		rest.end(now, err)
	}
}

// AnswerBegan reports that the answer of the attempt of c that is in the air has begun and goes on to the caller, while
// how the attempt ends is not known yet: a stream, whose verdict stands at its end. It is a success for all who learn
// from attempts, with the time that it took so far: a dependency whose streams last for hours is neither silent nor
// slow. AttemptDone has to follow, with which the call finishes; a failure that it reports counts as an answer that
// broke off. The call keeps its permit of the bulkhead until then only with HoldDuringBody. It does nothing for an
// attempt that has copies beside it, and the second time.
func AnswerBegan(c *Call, now time.Duration) {
	a := &c.main
	if c.over || !a.live || c.inAir != 1 || a.asked&askedBegun != 0 {
		return
	}
	a.asked |= askedBegun
	a.start = min(a.start, now) // see HandedOver
	c.s.sent(now, a.start, a)
	learn(now, c, a, Success)
	c.place.begun(c.s)
	if a.asked&askedBreaker != 0 {
		a.asked &^= askedBreaker
		a.permit = c.s.breaker.Answered(now, a.permit)
		a.asked |= askedAnswer
	}
}

// Outlived reports whether an answer of c that has begun ends at now because the time of the call is up: how long a
// caller wants a stream says nothing about the dependency, so that is no failure. timedOut is whether it ends as what
// runs out of time does, whoever noticed first: a dependency that was told may be quicker than the caller.
func Outlived(c *Call, now time.Duration, timedOut bool) bool { return timedOut && now >= c.deadline }

// endBegun records the end of an attempt whose answer had begun.
func endBegun(now time.Duration, c *Call, a *attemptCopy, o *Outcome, class Class) {
	s := c.s
	if s.observer != nil {
		defer s.emit(Event{Kind: AttemptEnded, At: now, Attempt: int(a.number), Class: o.Class, Latency: now - a.start,
			Err: o.Err})
	}
	judged := a.asked&askedAnswer != 0
	a.asked &^= askedBegun | askedAnswer
	failed := class == Failure || class == Overload
	if failed {
		s.resulted(now, false)
	}
	switch {
	case !judged:
	case !failed:
		s.breaker.Ended(now, a.permit, breaker.Success)
	default:
		s.breaker.Ended(now, a.permit, breaker.Failure)
		if o.Err != nil && s.breaker.State() == breaker.Open && !s.shadowed() {
			s.opening.failed(o.Err)
		}
	}
}

// reportEnded tells the observer that the call has ended. If the observer ends the goroutine nobody is left who reads
// the answer.
func (c *Call) reportEnded(now time.Duration, reason, err error) {
	told := false
	defer func() {
		if !told {
			c.AnswerEnded(now, nil)
		}
	}()
	c.s.emit(Event{
		Kind:    CallEnded,
		At:      now,
		Attempt: int(c.attempts),
		Retries: int(c.retries),
		Class:   endClass(c),
		Latency: now - c.start,
		Reason:  reason,
		Err:     err,
	})
	told = true
}

// end is AnswerEnded.
func (a answer) end(now time.Duration, err error) {
	defer a.kept.release()
	s := a.s
	switch {
	case s == nil, !a.judged:
		return
	case err == nil, now >= a.deadline && a.deadline-a.start < s.typical.load(): // the caller's impatience
		s.breaker.Ended(now, a.permit, breaker.Success)
		return
	}
	s.breaker.Ended(now, a.permit, breaker.Failure)
	if s.breaker.State() == breaker.Open && !s.shadowed() {
		s.opening.failed(err)
	}
	s.resulted(now, false)
	s.emit(Event{Kind: AnswerBroke, At: now, Attempt: int(a.number), Class: Failure, Latency: now - a.start, Err: err})
}
