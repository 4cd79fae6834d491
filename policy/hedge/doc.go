// Package hedge decides when a second copy of a slow attempt is sent.
//
// Why it exists: of many servers, a few are slow at any moment, for reasons that
// a second copy does not share. Whoever waits a little and then asks again gets
// an answer much sooner in the worst few per cent of cases, for a few per cent more
// load. ("The Tail at Scale", Communications of the ACM 56(2), 2013, calls it a
// hedged request.)
//
// A [Policy] answers one question: how long to wait after one copy before the
// next. Either the configuration gives that delay, or the policy learns it: with
// Quantile 0.95 an attempt is hedged once it has taken longer than 95 % of recent
// successful attempts did. A learned delay follows the dependency. A fixed one does
// not: when everything becomes slow, a fixed delay hedges everything.
//
// The policy does not send anything, and it does not limit the extra load. For
// that, draw each hedge from the same budget as retries. When the budget says no, or
// a hedge fails, the copy already running must go on.
//
// # What to record
//
// Record the time from sending the attempt's first copy to its success,
// whichever copy won. Recording the winner's own time would be wrong: the slow
// copies are cancelled and never seen, so the quantile would creep down and
// hedge more and more.
//
// # The estimate
//
// Latencies are counted in buckets, 16 to each power of two (the log-linear
// layout of HdrHistogram), from 1 µs to 18 minutes; finding the bucket is a few
// bit operations. The answer is the upper end of the bucket that holds the
// quantile: never below the true quantile, and at most 1/16 (6.25 %) plus 1 µs
// above it. Never below is what keeps the share of hedged attempts at or under
// 1 − Quantile.
//
// There are two windows of counts. The younger is filled for 30 seconds, and
// until it holds [MinSamples] successes. Then it becomes the elder, and the old
// elder is forgotten. So with two successes a second or more the estimate is of
// the last 30 to 60 seconds, and a rarely used dependency is judged by its last
// 50 to 100 successes instead of never.
//
// # Cost
//
// [Policy.Delay] is two atomic loads, about 2 ns. [Policy.Record] is three
// loads and one atomic addition, about 4 ns. Once a second one of these calls
// computes the quantile, in about a microsecond, while the others keep the last
// one. Nothing allocates. A policy has 4 KiB, whatever it records.
package hedge
