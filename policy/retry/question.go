package retry

import "time"

// A Question is what happened so far in one call, asked after a failed attempt.
// Fields outside their range are read as the nearest value inside it.
type Question struct {
	// Retries is how many retries this call has made, 0 after the first attempt.
	Retries int

	// Elsewhere is how many retries others have made for this call, behind the dependency. They count as retries, but
	// do not make the delay longer.
	Elsewhere int

	// Elapsed is the time since the call began, waits included.
	Elapsed time.Duration

	// Previous is the delay before the attempt that just failed, 0 after the first.
	// Only decorrelated jitter uses it.
	Previous time.Duration

	// Own reports whether the caller has a delay of its own, which takes the place of the
	// back-off: OwnDelay, moved into the range from 0 to MaxDelay. All else holds for it too.
	Own      bool
	OwnDelay time.Duration

	// RetryAfter is how long the server asked to wait, from now. Zero or less
	// means that it did not ask.
	RetryAfter time.Duration

	// NoRetry is true when the server said not to retry.
	NoRetry bool

	// Rand is a random number, uniform over all 64 bits, new for each question.
	Rand uint64
}
