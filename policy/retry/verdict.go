package retry

// A Verdict is the answer to a [Question]: retry, or the reason not to.
type Verdict uint8

// The verdicts, in the order in which reasons are looked for: the first that
// applies is given.
const (
	Retry             Verdict = iota // retry after the delay
	ServerForbids                    // the server said not to retry
	AttemptsExhausted                // MaxRetries retries were made
	RetryAfterTooLong                // the server asked for more than MaxRetryAfter
	ElapsedExhausted                 // the delay would end after MaxElapsed
)

// String returns the verdict in words, for logs.
func (v Verdict) String() string {
	switch v {
	case Retry:
		return "retry"
	case ServerForbids:
		return "told not to retry"
	case AttemptsExhausted:
		return "attempts exhausted"
	case RetryAfterTooLong:
		return "retry-after too long"
	case ElapsedExhausted:
		return "elapsed time exhausted"
	default:
		return "unknown verdict"
	}
}
