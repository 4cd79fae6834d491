package abate

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
	// Failure: the dependency, or the way to it, failed. Counts against the circuit breaker; retried unless NoRetry is set.
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
	// NoRetry forbids another attempt: the answer is final, repeating is not safe, or the server asked for it.
	NoRetry bool
	// RetryAfter is how long the dependency asked to be left alone; 0 when it did not say.
	RetryAfter time.Duration
	// Err is the attempt's error: what the caller gets, alone or inside an *Error, if the call ends here.
	// An adapter whose failures are values (an HTTP response) may leave it nil.
	Err error
}

// Permanent marks err as a failure that another attempt cannot mend. The call returns err itself, at once. It still
// counts as a failure of the dependency; for an answer that is nobody's failure ("card declined"), use Ignore. Marks
// hold for the innermost guard around the function; if there is another one further out, mark what Do returned again.
func Permanent(err error) error { return mark(err, Outcome{Class: Failure, NoRetry: true}) }

// Ignore marks err as an answer rather than a failure: the call returns err itself, at once, and neither the circuit
// breaker nor the retry budget counts it.
func Ignore(err error) error { return mark(err, Outcome{Class: Ignored}) }

// RetryAfter marks err as a refusal for load whose sender asked for a pause of d. The next attempt waits at least d,
// or the call ends when d is above the policy's maxRetryAfter or does not fit the deadline.
func RetryAfter(err error, d time.Duration) error {
	return mark(err, Outcome{Class: Overload, RetryAfter: max(d, 0)})
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
func (s *settings) classify(ctx context.Context, err error) Outcome {
	if o, ok := s.settled(ctx, err); ok {
		return o
	}
	if s.policy.Classify != nil {
		o := s.policy.Classify(err)
		if o.Err == nil { // also of a Success: Do returns what the function returned
			o.Err = err
		}
		o.NoRetry = o.NoRetry || s.retries.forbid(err)
		return o
	}
	return Outcome{Class: Failure, NoRetry: !s.retries.allow(0, err, true), Err: err}
}

// answers tells whether an error of Do's function is an answer: ignored, and not because a guard inside refused the call.
func (s *settings) answers(err error) bool {
	o := s.classify(context.Background(), err)
	var refusal *Error
	return o.Class == Ignored && !(errors.As(err, &refusal) && refusal.Attempts == 0)
}

// settled judges what no classifier may judge otherwise: no error at all, the caller's cancellation, which is nobody's
// failure, and a mark on the error. It looks at the caller's context, not the attempt's: an attempt that ran into our
// own time limit is a failure.
func (s *settings) settled(ctx context.Context, err error) (Outcome, bool) {
	if err == nil {
		return Outcome{}, true
	}
	o, ok := findMark(err)
	if m, outermost := err.(*marked); outermost {
		err = m.error
	}
	if ctx.Err() == context.Canceled {
		return Outcome{Class: Ignored, NoRetry: true, Err: err}, true
	}
	o.Err = err
	o.NoRetry = o.NoRetry || ok && s.retries.forbid(err)
	return o, ok
}

// findMark looks for an outcome in err's tree. It is errors.As without the reflection: a failed attempt costs no allocation.
func findMark(err error) (Outcome, bool) {
	for err != nil {
		switch e := err.(type) {
		case *marked:
			return e.outcome, true
		case *Error:
			return e.asOutcome(), true
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner := range e.Unwrap() {
				if o, ok := findMark(inner); ok {
					return o, true
				}
			}
			return Outcome{}, false
		default:
			return Outcome{}, false
		}
	}
	return Outcome{}, false
}
