package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Reasons why a call ended without success, for errors.Is. Each is found on the *Error that a call returns.
var (
	// ErrCircuitOpen: the circuit breaker refused the attempt.
	ErrCircuitOpen = errors.New("circuit open")
	// ErrSilent: the attempt failed, and was not tried again, because nothing shows that another one would be answered.
	ErrSilent = errors.New("retry held back")
	// ErrBudgetExhausted: the attempt failed and the retry budget had nothing left for another.
	ErrBudgetExhausted = errors.New("retry budget exhausted")
	// ErrAttemptsExhausted: all attempts that maxRetries allows have failed.
	ErrAttemptsExhausted = errors.New("attempts exhausted")
	// ErrTreeExhausted: the attempt failed, and the call tree has no extra attempts left: another layer owns retries.
	ErrTreeExhausted = errors.New("call tree has no retries left")
	// ErrBulkheadFull: too many calls are running and the queue is full, or the wait in it took too long.
	ErrBulkheadFull = errors.New("bulkhead full")
	// ErrRateLimited: the rate limit or the pacing refused the attempt, or at a gate the request.
	ErrRateLimited = errors.New("rate limited")
	// ErrThrottled: the throttle refused the attempt, because the dependency has been refusing too many.
	ErrThrottled = errors.New("throttled")
	// ErrOverloaded: the dependency asked for a longer pause than maxRetryAfter. At a gate: the service cannot do the
	// request now.
	ErrOverloaded = errors.New("overloaded")
	// ErrDeadline: no time is left, or the next attempt would not fit in what is left. It is also a
	// context.DeadlineExceeded for errors.Is, and a timeout for net.Error users.
	ErrDeadline error = deadlineError{}
)

type deadlineError struct{}

func (deadlineError) Error() string        { return "deadline" }
func (deadlineError) Timeout() bool        { return true }
func (deadlineError) Temporary() bool      { return true }
func (deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }

// Error is what a guarded call returns when the policy, and not only the dependency, had a say in how it ended.
// errors.Is and errors.As find both the reason and the last attempt's error in it. A failure that was never a candidate
// for another attempt (Permanent, Ignore, maxRetries 0) is returned as it is, without an Error around it.
//
// Get at it with errors.As, not with a type assertion: the calls that an open circuit refuses share one error, which
// nobody can change, and errors.As copies it into an *Error that is the caller's own.
type Error struct {
	Guard    string        // the guard's name
	Reason   error         // one of the Err… values, or the caller's context error
	Attempts int           // attempts sent, hedges included; 0 when the call was refused
	Elapsed  time.Duration // from the call's begin to its end, waits included
	Err      error         // the last attempt's error; nil when there was none
	// Opened is why the circuit is open, when it refused a call that has sent nothing: "consecutive failures, the last:
	// connection refused". The text is all that is kept of that failure, which was another call's, and at most 200 bytes
	// of it. Empty else.
	Opened string
}

// Error reads, for instance, `payment-service: retry budget exhausted after 2 attempts in 310ms: connection refused`.
func (e *Error) Error() string {
	msg := e.Guard + ": " + e.Reason.Error()
	switch { // "deadline after 1 attempt in 5ms" would read as if 5 ms had been the deadline
	case e.Reason == ErrDeadline && e.Attempts == 0:
		msg += " passed"
	case e.Reason == ErrDeadline:
		msg += " leaves no time for another attempt,"
	}
	switch e.Attempts {
	case 0:
		msg += ", call refused"
		if e.Opened != "" {
			msg += " (" + e.Opened + ")"
		}
	case 1:
		msg += fmt.Sprintf(" after 1 attempt in %v", e.Elapsed.Round(time.Microsecond))
	default:
		msg += fmt.Sprintf(" after %d attempts in %v", e.Attempts, e.Elapsed.Round(time.Microsecond))
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Unwrap gives both the reason and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// Timeout tells users of net.Error, *url.Error among them, whether the call ran out of time.
func (e *Error) Timeout() bool {
	t, ok := e.Reason.(interface{ Timeout() bool })
	return ok && t.Timeout()
}

// asOutcome is how an outer guard sees the end of a guarded call inside it: what an inner policy refused says nothing
// about the dependency, and what an inner policy already repeated must not be repeated again (3 × 3 × 3 = 27).
func (e *Error) asOutcome() Outcome {
	if e.Attempts == 0 {
		return Outcome{Class: Ignored, NoRetry: true, Err: e}
	}
	return Outcome{Class: Failure, Neutral: e.Err != nil && isPending(e.Err), NoRetry: true, Err: e}
}
