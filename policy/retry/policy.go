package retry

import "time"

// maxRetries is the most retries a Config may ask for. The table of a Policy is
// as long, so that Next never computes a power.
const maxRetries = 100

// A Policy decides about retries. It never changes after [New] and holds no
// state of a call, so one Policy serves any number of calls at once.
type Policy struct {
	config Config

	// spans[i] is what the delay of retry i+1 is drawn from. The table ends
	// where the interval stops growing, or after maxRetries.
	spans []span

	steady       bool // retries past the end of the table repeat its last span
	decorrelated bool // the span comes from the previous delay, not from the table
}

// New returns the policy of c. It fills in defaults and moves values outside
// their range to the nearest end, words outside their list to the default. It
// never fails; errors are found where the configuration is read.
func New(c Config) *Policy {
	p := &Policy{config: c.WithDefaults().bounded()}
	p.decorrelated = p.config.Jitter == DecorrelatedJitter && p.config.Backoff != NoBackoff
	for retry := 1; retry <= maxRetries && !p.steady; retry++ {
		interval := p.config.interval(retry)
		p.spans = append(p.spans, p.config.span(interval))
		p.steady = !p.config.grows(interval)
	}
	return p
}

// Config returns the configuration in effect: with defaults, in range.
func (p *Policy) Config() Config { return p.config }

// Next decides about the next retry of a call, after a failed attempt and before
// any wait. With the verdict [Retry] it returns how long to wait first: more than
// zero (other than with backoff "none" or a delay of the caller's own), and at most MaxDelay or the server's
// RetryAfter plus its jitter, whichever is longer. With any other verdict the delay
// is zero, and the call ends with the error it already has.
//
// Next is safe for concurrent use and allocates nothing.
func (p *Policy) Next(q Question) (time.Duration, Verdict) {
	c := &p.config
	retries := max(q.Retries, 0)
	switch {
	case q.NoRetry:
		return 0, ServerForbids
	case retries >= c.MaxRetries-max(q.Elsewhere, 0):
		return 0, AttemptsExhausted
	case q.RetryAfter > c.MaxRetryAfter:
		return 0, RetryAfterTooLong
	}
	var delay time.Duration
	if q.Own {
		delay = clamp(q.OwnDelay, 0, c.MaxDelay)
	} else {
		delay = p.Delay(retries+1, q.Previous, q.Rand)
	}
	if q.RetryAfter > 0 {
		// One random number is enough for both draws: only one of them counts.
		extra := span{hi: time.Duration(float64(q.RetryAfter) * c.RetryAfterJitter)}
		delay = max(delay, q.RetryAfter+extra.draw(q.Rand))
	}
	if c.MaxElapsed > 0 && max(q.Elapsed, 0) > c.MaxElapsed-delay {
		return 0, ElapsedExhausted
	}
	return delay, Retry
}

// Delay returns the delay before a retry, without asking whether it may happen:
// for a caller that counts attempts itself, such as a reconnect loop. The first
// retry is 1; less is read as 1, and there is no upper limit. Previous is the last
// delay, for decorrelated jitter; 0 if there was none. Rnd is a random number,
// uniform over all 64 bits; the delay grows with it.
//
// The delay is at most MaxDelay, and zero only with backoff "none". Delay is safe
// for concurrent use and allocates nothing.
func (p *Policy) Delay(retry int, previous time.Duration, rnd uint64) time.Duration {
	if p.decorrelated {
		return p.config.decorrelated(previous).draw(rnd)
	}
	switch {
	case retry < 1:
		retry = 1
	case retry <= len(p.spans):
	case p.steady:
		retry = len(p.spans)
	default: // slow growth and more retries than a Config allows
		return p.config.span(p.config.interval(retry)).draw(rnd)
	}
	return p.spans[retry-1].draw(rnd)
}
