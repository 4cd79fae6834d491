// Package retry decides when a failed call is tried again, and after how long.
//
// Why it exists: a retry that comes too early, or at the same moment as
// everybody else's, is the load that keeps a failing service down. So the wait
// grows, it is drawn at random, and every "no" is given before anyone sleeps.
//
// A [Policy] is given what happened so far in one call (a [Question]) and answers
// with a delay and a [Verdict]. It owns no timer, no clock and no source of
// randomness: elapsed time and a random number are part of the question. That is
// why a server and a simulator can run the same code.
//
// # The delay
//
// Retry n (the first is 1) has an interval d, never above MaxDelay:
//
//	exponential  d = InitialDelay × Multiplier^(n−1)
//	linear       d = InitialDelay × n
//	fixed        d = InitialDelay
//	none         d = 0
//
// The jitter draws the delay from an interval that ends at or below MaxDelay.
// The cap is applied first and the draw comes second. The other order is a
// common fault: it makes all late delays equal to the cap, so that clients which
// failed together come back together.
//
//	full          [floor, d]
//	equal         [d/2, d]
//	factor        [c·(1−f), c·(1+f)],  c = min(d, MaxDelay/(1+f)), f = JitterFactor
//	decorrelated  [InitialDelay, h],   h = min(MaxDelay, 3 × the previous delay)
//	none          d
//
// No draw starts below floor = min(1 ms, a tenth of the interval's upper end), so
// a delay is never zero or nearly zero by accident. Only backoff "none" retries
// at once. Decorrelated jitter has its own growth: it does not look at Multiplier
// or at the kind of backoff (other than "none"), and its lower end is never above
// h/3, so that it still spreads when InitialDelay is close to MaxDelay.
//
// The formulas of full, equal and decorrelated jitter are those of the AWS
// Architecture Blog, "Exponential Backoff And Jitter" (2015). The lower ends at
// floor and h/3 are ours, as is the recentring of factor jitter at the cap.
//
// # What a server asks for
//
// A Retry-After (RFC 9110, section 10.2.3) or a pushback (gRPC proposal A6) only
// ever makes the wait longer. A random part, up to RetryAfterJitter of it, is
// added on top and never taken away: all clients were given the same number. Above
// MaxRetryAfter the call ends instead.
//
// # Cost
//
// Intervals are computed once, in [New]. [Policy.Next] is a table look-up, a
// multiplication and a few comparisons: about 5 ns, of the order of a single
// uncontended atomic addition, and no allocation.
package retry
