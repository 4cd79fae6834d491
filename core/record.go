package core

import (
	"time"

	"github.com/abate-go/abate/internal/exhausted"
	"github.com/abate-go/abate/policy/breaker"
	"github.com/abate-go/abate/policy/throttle"
)

// record takes copy n out of the air and tells everyone who counts.
func (c *Call) record(now time.Duration, n int, o *Outcome) {
	s, a := c.s, copyOf(c, n)
	a.live = false
	a.start = min(a.start, now) // later while a client sends, see HandedOver
	s.sent(now, a.start, a)
	c.inAir--
	if a.handed != 0 || o.Resent > 0 || o.Below.Said || o.Below.Final { // else there is nothing to settle
		c.settle(n, o)
	}
	class, left := classOf(c, now, a, o)
	if a.asked&askedBegun != 0 {
		endBegun(now, c, a, o, class)
		return
	}
	learn(now, c, a, class)
	// After the others: what follows from a change of state may end in a panic of Policy.Rand.
	switch {
	case s.observer != nil:
		s.recordedSeen(now, a, o, c.Caller.verdict(class, left, c.attempts == 1), c.Caller)
	case s.breaker == nil:
	case class == Success && !o.Unfinished:
		a.asked &^= askedBreaker
		s.breaker.Record(now, a.permit, breaker.Success)
	default:
		s.recorded(now, a, o, c.Caller.verdict(class, left, c.attempts == 1), c.Caller)
	}
}

// classOf returns what the outcome of an attempt is to those who count, and whether its caller has left.
func classOf(c *Call, now time.Duration, a *attemptCopy, o *Outcome) (class Class, left bool) {
	class, left = o.Class, o.Left
	if class == Failure && now >= c.deadline && c.deadline-a.start < c.s.typical.load() {
		class, left = Ignored, true // it never had the time that an answer takes: that is its caller's impatience
	}
	// this process ran out of something: nobody's failure but its own
	if o.Neutral || class != Success && exhausted.Own(o.Err) {
		class = Ignored
	}
	return class, left
}

// learn tells those who learn from attempts, the breaker aside, that one came to class now.
func learn(now time.Duration, c *Call, a *attemptCopy, class Class) {
	s := c.s
	s.recordThrottle(now, a.start, a, throttleResult[class&3])
	s.recordOpener(now, a.start, a, class)
	if class != Ignored {
		s.resulted(now, class == Success)
	}
	if s.learns {
		s.teach(now, a.start, c.start, c.deadline, class)
	}
	if class == Success && s.times(c.deadline) {
		s.typical.record(now - a.start)
		if s.hedge != nil {
			// From the first copy on, whichever copy won: else the cancelled slow ones would be missing from the
			// estimate, and the delay would creep down.
			s.hedge.Record(now, now-c.main.start)
		}
	}
}

// recordedSeen is recorded for a guard with an observer, which hears of the end whatever becomes of Policy.Rand.
func (s *settings) recordedSeen(now time.Duration, a *attemptCopy, o *Outcome, r breaker.Result, by Caller) {
	defer s.emit(Event{Kind: AttemptEnded, At: now, Attempt: int(a.number), Class: o.Class, Latency: now - a.start,
		Err: o.Err})
	if s.breaker != nil {
		s.recorded(now, a, o, r, by)
	}
}

// recorded tells the breaker what an attempt came to. Of a success whose answer goes on it hears the end later.
func (s *settings) recorded(now time.Duration, a *attemptCopy, o *Outcome, result breaker.Result, by Caller) {
	if a.asked&askedBreaker != 0 {
		a.asked &^= askedBreaker
		if result == breaker.Success && o.Unfinished {
			a.permit = s.breaker.Answered(now, a.permit)
			a.asked |= askedAnswer
			return
		}
		s.breaker.Record(now, a.permit, result)
	}
	failed := result == breaker.Failure || result == breaker.Costly
	if failed && o.Err != nil && by&Terse == 0 && s.breaker.State() == breaker.Open && !s.shadowed() {
		s.opening.failed(o.Err)
	}
}

// HandedOver reports at what time the dependency had the request of the attempt of c that is in the air: when the last
// byte of a body that a client sends was handed over, or, while the client is waited for, a time that is later than now
// and than the next report. What came before is the client's time, and nobody who learns from attempts counts it:
// neither as latency nor as silence. A dependency that does not take what it is sent has the time since it was handed
// something last.
//
// A driver reports it as often as there is news, and once more before AttemptDone or AnswerBegan. It does nothing for
// an attempt that has copies beside it, or whose answer has begun. An attempt that ends before at has taken no time.
func HandedOver(c *Call, now, at time.Duration) {
	a := &c.main
	if c.over || !a.live || c.inAir != 1 || a.asked&askedBegun != 0 {
		return
	}
	if c.s.sends(now, a); at <= now {
		c.s.sent(now, at, a)
	}
	a.start = at
	if a.asked&askedBreaker != 0 {
		a.permit = breaker.Restart(c.s.breaker, now, a.permit, at)
	}
}

// sends tells those who count attempts in the air that the client of a is still sending, until sent tells them more.
func (s *settings) sends(now time.Duration, a *attemptCopy) {
	if a.asked&askedSends != 0 {
		return
	}
	a.asked |= askedSends
	if a.asked&askedThrottle != 0 {
		s.throttle.Record(now, a.start, throttle.Neutral)
	}
	if s.bulkhead != nil {
		s.bulkhead.Suspend(a.start)
	}
}

// sent tells them, if they wait to hear, that the client of a had sent all at at, or that the attempt ends. Its time
// begins at at.
func (s *settings) sent(now, at time.Duration, a *attemptCopy) {
	if a.asked&askedSends == 0 {
		return
	}
	a.asked &^= askedSends
	if a.asked&askedThrottle != 0 {
		s.throttle.Count(now, at)
	}
	if s.bulkhead != nil {
		s.bulkhead.Resume(at)
	}
}

// dropCopies makes the copies still in the air neutral, and one that was let pass and is not sent. If an observer ends
// the goroutine in the middle of that, or Policy.Rand panics, the others are dropped all the same.
func (c *Call) dropCopies(now time.Duration) {
	done := false
	defer func() {
		if !done {
			c.dropCopies(now) // the rest
		}
	}()
	for n := range copiesOf(c) {
		a := copyOf(c, n)
		live, began := a.live, now
		if a.live = false; live {
			c.inAir--
			a.start = min(a.start, now)
			c.s.sent(now, a.start, a)
			c.settle(n, &Outcome{Class: Ignored})
			began = a.start
		}
		// first: nobody knows any more when it began if the observer ends the goroutine
		c.s.recordThrottle(now, began, a, throttle.Neutral)
		c.s.recordOpener(now, began, a, Ignored)
		if live {
			c.s.emit(Event{Kind: AttemptEnded, At: now, Attempt: int(a.number), Class: Ignored, Latency: now - a.start})
		}
		if c.Caller&Gone != 0 && live {
			c.s.recordBreaker(now, a, breaker.Abandoned)
		}
		c.s.recordBreaker(now, a, breaker.Neutral)
	}
	done = true
}

var breakerResult = [...]breaker.Result{Success: breaker.Success, Failure: breaker.Failure, Overload: breaker.Failure,
	Ignored: breaker.Neutral}

var throttleResult = [...]throttle.Result{Success: throttle.Accepted, Failure: throttle.Rejected,
	Overload: throttle.Rejected, Ignored: throttle.Neutral}
