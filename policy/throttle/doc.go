// Package throttle decides when a client itself should stop offering load: adaptive throttling as in the chapter
// "Handling Overload" of Site Reliability Engineering (Beyer et al., 2016).
//
// Why: a dependency that refuses most of what it is sent still has to read and refuse it, and that can be all it does.
// A client that sees most of its requests fail can keep some of them to itself.
//
// # The rule
//
// Over the last Window the throttle counts requests, when they are made and whether or not they are sent, and accepts.
// Of the next requests it refuses the share
//
//	p = max(0, (requests - K × accepts) / (requests + 1)), at most MaxRejection
//
// so that K requests are sent for each accept. It refuses nothing before there are MinimumNumberOfCalls, and never more
// than MaxRejection, because what is not sent finds out nothing.
//
// # Two corrections
//
// Requests refused here count as requests, which is what holds the load at K times the accepts. After an outage the
// same would keep the throttle shut: the less it sends, the fewer accepts it can see, and with a small K it opens by a
// few percent a window. So what was refused here does not count for the steps of the window in which the dependency
// accepted nearly all it was sent: more than halfway between 1/K, where the rule balances, and all. The rejection ends
// within about one window after the dependency has come back, for every K, as long as ten requests are sent meanwhile.
//
// A request that has just been sent is counted but cannot have been accepted yet. So that a client that starts or wakes
// up does not take its first burst for an outage, those of the last tenth or two of the window are taken to fare like
// those that were answered. After that a request without an answer is one that was not accepted: a dependency that
// hangs is noticed.
//
// # Shadow
//
// In shadow mode everything is sent, also what should be refused. Such requests count as refused, and their answers are
// left out, so that for the same answers the counts are those of a throttle that refuses. One thing cannot be known:
// under less load the dependency might have answered better, so the rejection that a shadow reports is an upper bound.
//
// # Cost
//
// The window moves in ten steps. Allow and Record take a mutex for some nanoseconds each and allocate nothing; while
// accepts are at least requests/K the window is not looked at. A throttle needs half a kilobyte.
package throttle
