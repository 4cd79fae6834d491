// Package balance decides which endpoint of a service gets the next attempt.
//
// Why: a service runs on several endpoints, and one of them is often worse than the others: it hangs, it refuses, it
// still starts. Without a look at it, an equal share of all attempts goes there, and each of them is a retry for the
// others to bear. So two things decide here: how busy an endpoint is, and whether it has failed lately.
//
// # How an endpoint is chosen
//
// Two endpoints are drawn at random, and the one with fewer attempts pending gets the attempt. That is nearly as even
// as to look at all of them (M. Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001), costs the
// same for any number of endpoints, and many clients that decide alike at the same moment do not all run to the same
// endpoint. A slow endpoint has more attempts pending, so it gets fewer without being measured. When both are equally
// busy the first one drawn is taken: each endpoint is it equally often.
//
// A retry avoids the endpoint just tried, as long as any other is in the choice.
//
// Where endpoints have zones ([Balancer.Locate]) those in the caller's own zone are drawn more often. How much more is
// found out: at first every endpoint gets the same, and twice a second the own zone is compared with the others, by the
// share of attempts that fail and by the time that they take (Little's law: attempts pending, summed up over time,
// divided by those that ended). Where it does no worse it gets a step more, up to all but one attempt in 64, which are
// there to compare with. Where it does worse, beyond chance, it gets half of what it had got beyond the same for all.
// The same when it begins to fail or to be slow and too little is known of the others: to doubt costs only nearness. A
// caller does not know how many others are in its zone, so no rule from numbers of endpoints alone would do.
//
// There is a bound that needs no evidence. With w the own zone's part of all endpoints, by weight, and h its part of
// those in the choice, it never gets more than h/w of the attempts: the ratio of Envoy's zone-aware routing, with the
// callers assumed to be spread as the endpoints are. So what endpoints that are out leave is spread over all zones at
// once.
//
// Where endpoints have weights ([Balancer.Weigh]) a heavier one is drawn more often, and is as busy as a lighter one
// with as much more pending. An endpoint that comes back, or is new after a reload, weighs an eighth at first and then
// steadily more, for as long as Config.SlowStart says.
//
// # How an endpoint is ejected, and comes back
//
// An endpoint that fails fast is never busy, and least pending alone would send it everything. So ConsecutiveFailures
// failed attempts in a row eject it, if the last attempt at another endpoint in the choice has not failed: else the
// others are no better. It leaves the choice, for
//
//	min(base × multiplier, max)
//
// where the multiplier is one more for each ejection, and one less for each base time in the choice without a failure
// (as Envoy's outlier detection does it). Then it comes back, with an empty streak. Nothing probes it: the next
// attempts do.
//
// When many endpoints fail at once it is rarely the endpoints' fault, and what is left would not bear the load: at most
// MaxEjectionShare of them are out at once, and never the last one. And when all endpoints in the choice have failed
// ConsecutiveFailures times in a row, too, those that are out all come back at once: without them less is answered, not
// more. So there is always an endpoint to choose, and an attempt never goes to an ejected one. To stop calling the
// service as a whole is the circuit breaker's decision.
//
// Late results do no harm. While an endpoint is ejected they are not counted. After its return, as many attempts must
// have begun since as it takes failures to eject it again: those that hung since before the ejection and fail now are
// not enough.
//
// # What health checks do
//
// They take endpoints out of the choice, and bring them back ([Balancer.Judge]), unless they leave fewer than
// PanicThreshold: then they are not believed. They have no part in ejections. Package health decides what an endpoint's
// answers mean.
//
// # How to drive it
//
// Call Pick before each attempt and Done after it, whatever became of it; or Begin, and the Done of what it returns.
// After a reload, or when endpoints come and go, build a new [Balancer] and let it Carry what the old one knows;
// attempts in flight still end at the old one. The balancer starts no goroutine and
// reads no clock: an endpoint comes back on the first call at or after the time that it was ejected until.
//
// # What it costs
//
// Pick and Done together take as long as four to seven atomic additions, two of which are the count of what is pending:
// 9 to 13 ns with 1 to 16 endpoints and 16 ns with 256 (figures from the benchmarks of this package, on one core).
// Nothing is allocated and no lock is taken, except when an endpoint is ejected or comes back, and by the failures of
// one that has been ejected lately. An endpoint needs one cache line and 8 bytes; with weights or ramps 24 more, and
// Pick a search among n sums.
package balance
