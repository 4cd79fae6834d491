package core

// refusal is the error of calls that an open circuit has refused. All of them share one, so that a refusal allocates
// nothing; what one caller did to it all others would see. So nobody can reach what is in it: errors.As makes an *Error
// of the caller's own.
type refusal struct{ of Error }

// Error is that of an *Error.
func (r *refusal) Error() string { return r.of.Error() }

// Is finds the reason without an allocation.
func (r *refusal) Is(target error) bool { return target == r.of.Reason }

// As makes an *Error of the caller's own.
func (r *refusal) As(target any) bool {
	e, ok := target.(**Error)
	if ok {
		own := r.of
		*e = &own
	}
	return ok
}

// Unwrap gives the reason.
func (r *refusal) Unwrap() []error { return r.of.Unwrap() }

// Timeout is that of an *Error.
func (r *refusal) Timeout() bool { return r.of.Timeout() }

// Reason returns why a guard's policy ended a call with err: the Reason of the *Error that err is, nil if it is none.
// It looks at err alone and not at what it wraps, and it allocates nothing, where errors.As makes an *Error for a call
// that an open circuit has refused.
func Reason(err error) error {
	switch e := err.(type) {
	case *Error:
		return e.Reason
	case *refusal:
		return e.of.Reason
	}
	return nil
}
