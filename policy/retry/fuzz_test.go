package retry_test

import (
	"math"
	"testing"
	"time"

	"github.com/abate-go/abate/policy/retry"
)

var (
	backoffs = []retry.Backoff{
		"", retry.ExponentialBackoff, retry.LinearBackoff, retry.FixedBackoff, retry.NoBackoff, "soon",
	}
	jitters = []retry.Jitter{
		"", retry.FullJitter, retry.EqualJitter, retry.DecorrelatedJitter, retry.FactorJitter, retry.NoJitter, "some",
	}
)

// For any configuration and any question, however absurd: a delay is never
// negative, zero only without backoff, and never longer than allowed.
func FuzzNext(f *testing.F) {
	f.Add(3, uint8(1), uint8(1), int64(1e8), int64(1e10), 2.0, 0.0, int64(0), int64(3e10), 0.25, 0, int64(0), int64(0),
		int64(0), false, uint64(0))
	f.Add(-1, uint8(9), uint8(9), int64(-1), int64(-1), math.NaN(), -1.0, int64(-1), int64(-1), math.Inf(1), -1, int64(-1),
		int64(-1), int64(-1), true, uint64(1))
	f.Add(math.MaxInt, uint8(2), uint8(3), int64(math.MaxInt64), int64(math.MaxInt64), math.MaxFloat64, 1.0,
		int64(math.MaxInt64),
		int64(math.MaxInt64), 1.0, 10_000, int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), false,
		uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, maxRetries int, backoff, jitter uint8, initial, longest int64, multiplier, factor float64,
		maxElapsed, maxRetryAfter int64, retryAfterJitter float64, retries int, elapsed, previous, retryAfter int64,
		noRetry bool, rnd uint64) {
		p := retry.New(retry.Config{
			MaxRetries:       maxRetries,
			Backoff:          backoffs[int(backoff)%len(backoffs)],
			InitialDelay:     time.Duration(initial),
			MaxDelay:         time.Duration(longest),
			Multiplier:       multiplier,
			Jitter:           jitters[int(jitter)%len(jitters)],
			JitterFactor:     factor,
			MaxElapsed:       time.Duration(maxElapsed),
			MaxRetryAfter:    time.Duration(maxRetryAfter),
			RetryAfterJitter: retryAfterJitter,
		})
		q := retry.Question{Retries: retries, Elapsed: time.Duration(elapsed), Previous: time.Duration(previous),
			RetryAfter: time.Duration(retryAfter), NoRetry: noRetry, Rand: rnd}
		c := p.Config()

		checkDelay(t, c, p.Delay(retries, q.Previous, rnd), c.MaxDelay)

		delay, verdict := p.Next(q)
		if verdict != retry.Retry {
			if delay != 0 {
				t.Fatalf("%+v: %v with a delay of %v", q, verdict, delay)
			}
			return
		}
		limit := c.MaxDelay
		if q.RetryAfter > 0 {
			limit = max(limit, q.RetryAfter+time.Duration(float64(q.RetryAfter)*c.RetryAfterJitter))
		}
		checkDelay(t, c, delay, limit)
		switch {
		case delay < q.RetryAfter:
			t.Fatalf("%+v: delay %v is earlier than the server asked", q, delay)
		case q.NoRetry, q.Retries >= c.MaxRetries, q.RetryAfter > c.MaxRetryAfter:
			t.Fatalf("%+v of %+v: retried", q, c)
		case c.MaxElapsed > 0 && q.Elapsed > 0 && delay > c.MaxElapsed-q.Elapsed:
			t.Fatalf("%+v of %+v: retry after MaxElapsed", q, c)
		}
	})
}

func checkDelay(t *testing.T, c retry.Config, delay, limit time.Duration) {
	t.Helper()
	if delay < 0 || delay > limit || (delay == 0 && c.Backoff != retry.NoBackoff) {
		t.Fatalf("%+v: delay = %v, want more than zero and at most %v", c, delay, limit)
	}
}
