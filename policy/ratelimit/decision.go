package ratelimit

import "time"

// Decision is the answer of a limiter, with what a client wants to know about its bucket.
type Decision struct {
	// Allowed reports whether the request may pass. In shadow mode it always may.
	Allowed bool
	// Over reports whether the bucket had too little: the request was refused, or would have been but for the shadow mode.
	// Nothing was taken.
	Over bool
	// Limit is what a full bucket holds, Remaining what is left in this one after the request, both in whole tokens. Both
	// are 0 if the limit is closed or off.
	Limit, Remaining int64
	// Reset is how long until the bucket is full again if nothing else is taken; Never if the limit is closed, or if that
	// is more than 146 years away.
	Reset time.Duration
	// RetryAfter is how long until the bucket has what was asked for: the same request succeeds then and not a
	// nanosecond earlier, if nothing else is taken. It is 0 if the bucket had it. Never means that it will never have
	// it: the limit is closed, or the cost is above the burst.
	RetryAfter time.Duration
}

// Never is a time that does not come.
const Never time.Duration = 1<<63 - 1
