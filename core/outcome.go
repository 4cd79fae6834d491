package core

import (
	"context"
	"errors"
	"time"
)

// Class says what an attempt tells us about the dependency.
type Class uint8

const (
	// Success: the dependency did what was asked.
	Success Class = iota
	// Failure: the dependency, or the way to it, failed. Counts against the circuit breaker; retried unless NoRetry is
	// set.
	Failure
	// Overload: the dependency refused for load (429, 503, RESOURCE_EXHAUSTED). Like Failure, but a retry draws the
	// budget's overload cost and Outcome.RetryAfter is honoured.
	Overload
	// Ignored: the attempt says nothing about the dependency (the caller left, or the answer is a business error).
	// Never retried, counted neither way.
	Ignored
)

// String returns the lower-case name used in logs and metrics.
func (c Class) String() string {
	return [...]string{"success", "failure", "overload", "ignored"}[c&3]
}

// Outcome is what one attempt came to. Adapters and Policy.Classify make it; a Call decides on it.
type Outcome struct {
	Class Class
	// Neutral keeps the attempt from the policies that count outcomes, whatever its class: the dependency has refused
	// it because it is at work on an earlier copy of the same call, which says nothing of how it is.
	Neutral bool
	// Left reports that the caller gave the attempt up, of an Ignored one. It says something of the dependency if an
	// answer was due.
	Left bool
	// NoRetry forbids another attempt: the answer is final, repeating is not safe, or the server asked for it.
	NoRetry bool
	// RetryAfter is how long the dependency asked to be left alone; 0 when it did not say.
	RetryAfter time.Duration
	// Below is what the dependency said about extra attempts that were made behind it.
	Below Below
	// Unsent reports that the request has certainly not reached the dependency: no connection was made, or it was
	// refused unread.
	Unsent bool
	// Gone reports a failure of one instance, of which the dependency has others, to which another attempt goes: its
	// connection ended without an answer, as happens when it is replaced. It says nothing of how the others are, so that
	// a dependency whose answers have become slow is tried again all the same.
	Gone bool
	// Begun reports that the answer has only begun, as that of a stream has with its first message: what the dependency
	// has to say about extra attempts comes with the end, so that its silence means nothing, and it is taken to use all
	// that it was told.
	Begun bool
	// Unfinished reports a success whose answer goes on, such as the body of an HTTP response: how it ended comes
	// later, in Call.AnswerEnded or through the Release of Run, and an answer that breaks off makes of the success a
	// failure.
	Unfinished bool
	// Resent is how many extra attempts something below the guard may have caused by sending the request again by
	// itself, as http.Transport does when a kept-alive connection dies. The call tree pays for them.
	Resent int
	// Err is the attempt's error: what the caller gets, alone or inside an *Error, if the call ends here.
	// An adapter whose failures are values (an HTTP response) may leave it nil.
	Err error
}

// Permanent marks err as a failure that another attempt cannot fix. The call returns err itself, at once. It still
// counts as a failure of the dependency; for an answer that is nobody's failure ("card declined"), use Ignore. Marks
// hold for the innermost guard around the function; if there is another one further out, mark what Do returned again.
func Permanent(err error) error { return mark(err, Outcome{Class: Failure, NoRetry: true}) }

// Ignore marks err as an answer rather than a failure: the call returns err itself, at once, and neither the circuit
// breaker nor the retry budget counts it.
func Ignore(err error) error { return mark(err, Outcome{Class: Ignored}) }

// RetryAfter marks err as a refusal for load whose sender asked for a pause of d. The next attempt waits at least d,
// or the call ends when d is above the policy's maxRetryAfter or does not fit the deadline.
func RetryAfter(err error, d time.Duration) error {
	o := Outcome{Class: Overload, RetryAfter: max(d, 0)}
	if err != nil && isPending(err) {
		o.Class, o.Neutral = Failure, true
	}
	return mark(err, o)
}

// marked carries an outcome on an error from the guarded function to the driver, which takes it off again.
type marked struct {
	error
	outcome Outcome
}

func mark(err error, o Outcome) error {
	if err == nil {
		return nil
	}
	o.Err = err
	return &marked{error: err, outcome: o}
}

func (m *marked) Unwrap() error { return m.error }

// classify judges an attempt of Do's function, which ended with err. ctx is the caller's context.
func (s *settings) classify(ctx context.Context, err error) (o Outcome) {
	if s.settled(ctx, err, &o) {
		return o
	}
	if s.policy.Classify != nil {
		o = s.policy.Classify(err)
		if o.Err == nil { // also of a Success: Do returns what the function returned
			o.Err = err
		}
		o.NoRetry = o.NoRetry || s.retries.forbid(err)
		return o
	}
	return Outcome{Class: Failure, NoRetry: !s.retries.allow(0, err, true), Err: err}
}

// Judge reports what err comes to if a function under the guard returns it: by its mark (Permanent, Ignore, RetryAfter)
// or by the policy's Classify. It leaves out retryOn and neverRetryOn, which say whether another attempt is worth it at
// once: it is for adapters that can come back to a failure much later, and need to know whether it is for good.
func (g *Guard) Judge(err error) (o Outcome) {
	if err == nil {
		return o
	}
	classify := g.inForce().policy.Classify
	switch {
	case findMark(err, &o):
	case classify != nil:
		o = classify(err)
	default:
		o.Class = Failure
	}
	if o.Err == nil {
		o.Err = err
	}
	return o
}

// answers reports whether an error of Do's function is an answer: ignored, and not because a guard inside refused the
// call.
func (s *settings) answers(err error) bool {
	o := s.classify(context.Background(), err)
	var refusal *Error
	return o.Class == Ignored && !(errors.As(err, &refusal) && refusal.Attempts == 0)
}

// settled judges what no classifier may judge otherwise: no error at all, the caller's cancellation, which is nobody's
// failure, and a mark on the error. It looks at the caller's context, not the attempt's: an attempt that ran into our
// own time limit is a failure.
//
// It writes to o, which is zero before: outcomes are too large to be handed around for nothing.
func (s *settings) settled(ctx context.Context, err error, o *Outcome) bool {
	if err == nil {
		return true
	}
	ok := findMark(err, o)
	if m, outermost := err.(*marked); outermost {
		err = m.error
	}
	if ctx.Err() == context.Canceled {
		*o = Outcome{Class: Ignored, Left: true, NoRetry: true, Err: err}
		return true
	}
	if ok {
		o.Err = err
		o.NoRetry = o.NoRetry || s.retries.forbid(err)
	}
	return ok
}

// findMark looks for an outcome in err's tree. It is errors.As without the reflection: a failed attempt costs no
// allocation.
func findMark(err error, o *Outcome) bool {
	for err != nil {
		switch e := err.(type) {
		case *marked:
			*o = e.outcome
			return true
		case *Error:
			*o = e.asOutcome()
			return true
		case *refusal:
			*o = Outcome{Class: Ignored, NoRetry: true, Err: e}
			return true
		case pendingError:
			*o = Outcome{Class: Failure, Neutral: true}
			return true
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				if findMark(inner, o) {
					return true
				}
			}
			return false
		default:
			return false
		}
	}
	return false
}

// Answers reports whether an error of an attempt is an answer, and no failure: see Ignore.
func (g *Guard) Answers(err error) bool { return g.inForce().answers(err) }
