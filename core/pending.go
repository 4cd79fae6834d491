package core

import "context"

// ErrPending is the error of an answer that is not there yet: "the job is still running". A guarded function returns
// it, alone or in a tree of errors, to be called again after the policy's delay, or after the one that RetryAfter asks
// for. That counts as a retry everywhere, in maxRetries, deadline and budget, but neither for nor against the
// dependency: no policy that counts outcomes learns anything. A call that ends on it returns the last answer beside it,
// so that errors.Is(err, ErrPending) tells "not done" from "failed".
var ErrPending error = pendingError{}

type pendingError struct{}

func (pendingError) Error() string { return "pending" }

func isPending(err error) bool {
	var o Outcome
	return findMark(err, &o) && o.Neutral
}

// RetryIf returns fn with a judge of its results: an answer for which pending is true, and which came without an error,
// is returned with ErrPending. It fits Do, DoHedged and those with a fallback:
//
//	job, err := abate.Do(ctx, guard, abate.RetryIf(getJob, func(j Job) bool { return j.State == "running" }))
//
// pending may be called by several goroutines at once under DoHedged. An answer that is asked for again is not closed.
func RetryIf[T any](fn func(context.Context) (T, error), pending func(T) bool) func(context.Context) (T, error) {
	return func(ctx context.Context) (T, error) {
		v, err := fn(ctx)
		if err == nil && pending(v) {
			err = ErrPending
		}
		return v, err
	}
}
