// Package shed decides which arrivals a service refuses when it cannot do them all.
//
// Why: a service that takes on all that arrives answers everything late when there is too much, and what is answered
// late was done for nothing: its callers have gone, or try again. A service that refuses what it cannot do, at once and
// cheaply, goes on doing what it can. Most of all it must be able to while its clients try to make up for an outage.
//
// A [Shedder] is shared state: build one per service, once. Its driver asks [Shedder.Admit] for each request, lets it
// wait if the answer is [Full] ([Shedder.Enqueue], [Shedder.Leave]), and reports with [Shedder.Release] what became of
// it. The example is such a driver.
//
// # Who is refused
//
// In this order: those whose deadline has passed, those that matter less ([Priority]), later attempts, and among equals
// the newest. One that matters more takes the place of another in a full queue, and is admitted before it. Near the
// limit some places are kept free for what matters: requests that are SHEDDABLE leave the last eighth of the places,
// those that are SHEDDABLE_PLUS the last sixteenth. One that finds no free place may not wait if its caller has its
// share already ([Config].MaxCallerShare); while there is room nobody's share matters.
//
// # How many at once
//
// The limit is fixed, or it is found out. [Gradient] compares how long requests take with how long they take without
// load, [Vegas] estimates from the same two times how many requests wait inside the service, and [AIMD] knows only that
// requests were dropped. The time without load is measured whenever less than two thirds of the places are taken, and,
// while there is no such moment, by halving the limit for a few round trips every half minute. So it follows a service
// that becomes slower, or faster, for good. The limit grows only while requests are near it, never while nothing is
// going on, and only requests that were [Done] say how long they take: refused, dropped and ignored ones do not.
//
// [BBR] asks how much comes out, not how long it takes: nobody is held while the service keeps up, however much is in
// flight. When requests stand in it, the limit is what it answers within half of what callers wait for, and never
// less than was usual before. What callers wait for is the mean of what their deadlines leave; without deadlines, a
// second or twenty times what a request takes. While more than a tenth of the answers are late the limit is halved,
// round for round, and a halving after which no more come in time is taken back. Where deadlines are known, more in
// flight than is answered in time at the rate of the moment (Little's law), while even the quickest answer is slow,
// is evidence that requests stand before any is late. Only answers teach it: how long somebody waited who gave up
// says that requests stand, not what they take.
//
// When a service falls silent (five requests or more are inside and older than a quarter of the patience, and than a
// request nearly always takes, and nothing was answered since they came), newcomers are held: nothing comes out
// anyway, and what would stand in it afterwards can be chosen from. Some are let in to see whether it answers again,
// further and further apart, up to half a second. The first answer ends it, and so does an error that comes at once.
//
// The default protection uses [BBR], on this evidence: 300 random systems of sim/harm that nobody tuned on. 2.6 % of
// those that can be compared are worse off with it than with nothing (95 % interval: 1.1 to 5.9), one of a hundred by
// a factor of 1.37; no healthy day is more than 0.1 point worse. With [Gradient], on 200 of them, those were 43.8 %, a
// factor of 724, and 44 % of the healthy days: it begins with a guess, and a service that needs more at once is
// refused what it could do.
// What BBR pays is time: at twenty times the capacity, admitted requests take 4 to 20 times what they take without
// load. Workers do 97 to 98 % of what they can meanwhile, a service that shares its speed among requests 99 %, and 85 %
// if those differ a lot. Worst is one that slows down under load: 37 %, and some requests take 200 times as long, since
// much has to be late before the limit comes down. TestBBRKeepsTheServiceBusyUnderOverload has these.
//
// What the others come to: simulated services at twenty times their capacity for ten seconds after half of it. Columns:
// work done in time in per cent of the capacity, on average and in the worst second, and the 99th percentile of the
// time that admitted requests took, in multiples of the unloaded one. Services have workers, each for one request at a
// time, or share their speed among all; two to fifty can be done at once; all requests are alike unless it says random
// (exponential) or mixed (each tenth eleven times as long). "Slows down" loses a third of its capacity with twice as
// many requests as it can do at once. TestEvidence measures it.
//
//	                                 gradient            vegas             aimd
//	10 workers                  100 100   1.8    100 100   2.6    100 100  13.1
//	10 shares                   100  99   2.4    100  99   2.8     99  92  17.6
//	10 shares, random           100  98   1.5    100  98   1.6     98  96   3.2
//	10 workers, mixed            99  96   1.2    100  98   1.3    100  98   2.6
//	50 workers, random          100  98   1.0    100  97   1.0    100  96   1.2
//	2 shares                    100  97   2.9    100  94   4.5     95  90   5.8
//	slows down                   90  86   2.6     88  79   3.5     50  37  18.4
//	cold: 90 % after                     2.2s             1.8s             4.8s
//	3 x slower for good        93 223ms 240ms   97 236ms 255ms   92 341ms 252ms
//	2 x for two minutes            21ms  22ms       28ms  23ms      289ms 288ms
//
// The last three rows: the time until 90 % of the capacity is used when overload is there from the first request and
// the limit begins at 20 of 50; work done in the ten seconds after the service became slower, and the 99th percentile
// then and half a minute later; the 99th percentile at the begin and at the end of a long overload. AIMD keeps requests
// waiting until they are dropped. Vegas leaves more of them waiting inside the service than the gradient does, and goes
// down by a few places at a time, which is late where more requests make the service slower. The gradient pays with
// more noise: where the times of requests differ a lot it does a little less in its worst second.
//
// # The queue
//
// BBR's is first come, first served, until the oldest would be answered too late; then the newest goes first. Everybody
// waits until his deadline, less what a request takes. If nobody tells deadlines, the newest goes first once the queue
// is half full, and everybody waits for the patience.
//
// That of the others takes up bursts. It is first come, first served, until requests have waited longer than a target
// for an interval (CoDel, RFC 8289). From then on it serves the newest first and keeps nobody longer than the target,
// until it has been empty: some are refused, and those that are admitted are fresh. It holds half as many requests as
// the limit, fewer while the service is slower than without load, so that waiting does not take longer than the work
// does.
//
// # The processor
//
// [Shedder.SetCPU] takes how busy it is. Above the configured share a growing part of the requests is refused, the
// least important first, and never all of any kind: some always pass, or nobody would notice that the processor is idle
// again.
//
// # Retries
//
// Attempts are counted by their number as they arrive, refused ones included. [Shedder.RetriesTooMany] reports when
// answers should say "do not retry", [Shedder.Backlog] at which rate those who were refused can come back.
//
// # Shadow mode
//
// Everything passes, and [Shedder.Admit] says why it would not have. What it would have refused takes no place in the
// model, and what would have waited is counted as waiting until a place would have been free; nobody is displaced from
// there, and nobody's time runs out. A limit that learns sees how the service does under the whole load, not how it
// would do under less, so it is modelled only roughly; a fixed one well.
//
// # Cost
//
// A request that finds a place costs one compare-and-swap and one atomic add on a word that holds those in flight and
// those that wait, less than one reading of the clock. Above some ten thousand requests per second only a part of them
// is learned from, which takes a lock. One that finds the queue full costs one atomic add. Nothing is allocated but
// what the driver needs to wait. Memory: about two kilobytes, eight more for MaxCallerShare, and a pointer for each
// waiter.
package shed
