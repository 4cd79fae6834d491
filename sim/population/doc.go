// Package population simulates very large populations of clients that share nothing and
// remember nothing between requests, such as ten million phones: too many for a
// guard each. It takes one server, its outages and one retry policy, and returns
// how many attempts arrive, succeed and are given up over time.
//
// There are two methods. [Exact] runs every client: each is one pending event, and
// policy/retry, the code that runs in production, decides about every retry.
// [Cohort] counts clients instead of running them: how many make their first,
// second, third … attempt in each slot of time. Its cost does not depend on the
// number of clients. It gets how long they wait between attempts from the same policy,
// by probing it for the distribution of its delays, so that a mistake in
// policy/retry shows in both. [Check] compares the two at a size that is cheap.
//
// # The model
//
// The population is either Once, in which every client makes one request at a random
// moment of its own share of Within (so the load is even), or a closed loop, in
// which every client thinks for an exponential time of mean Think, makes a request,
// waits for its end, and thinks again.
//
// The server takes attempts in order of arrival, Capacity of them per second at even
// distances, and answers each one ServiceTime after it was taken. Others wait, at most
// QueueLimit of them; what arrives then is refused at once. Without a queue, what
// exceeds the capacity is refused at once; an idle server takes at most one Slot's
// worth of capacity together. While an outage lasts nothing is taken: arrivals are
// refused at once, or, if it hangs, wait in the queue; without a queue they are
// never answered. What waits when an outage begins is taken after it; what was
// taken is answered.
//
// A client leaves an attempt after AttemptTimeout and a request after Patience. What
// it left in the queue is still worked on, for nobody. An answer at the very
// instant of the timeout is in time. A failed attempt, and nothing else, is put
// before the retry policy; no server sends Retry-After here.
package population
