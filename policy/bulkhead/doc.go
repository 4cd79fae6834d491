// Package bulkhead limits how many calls to one dependency run at once, how many more
// may wait for a permit, and how long.
//
// Why: when a dependency becomes slow, its callers pile up. Without a limit every
// goroutine, connection and buffer of the process ends up waiting for that one
// dependency, and calls that have nothing to do with it fail too. A limit keeps the
// damage in one compartment, and a short, bounded queue takes up a burst without
// turning into a backlog that is answered long after its callers have gone.
//
// A [Bulkhead] is shared state. Build one per dependency, once, and let all calls use
// it: a bulkhead built per call admits every call and limits nothing.
//
// # How it works
//
// Calls in flight and calls that wait are two halves of one atomic word. Taking a permit
// is one compare-and-swap, which succeeds only if a permit is free and nobody waits;
// giving it back is one atomic add, whose result says whether somebody waits. A caller
// becomes a waiter by a compare-and-swap too, and only while no permit is free, so the
// release that comes after it cannot fail to see it: no wake-up is lost. The queue
// itself is a list under a mutex that only waiting callers, and those who release while
// somebody waits, ever take.
//
// The bulkhead starts no timer. A driver that has queued a [Waiter] waits for its Wake,
// for MaxWait and for its caller's context, and calls [Bulkhead.Abandon] in the last two
// cases. The example is such a driver.
//
// # Order
//
// First come, first served is fair while the queue is short. Under overload it serves
// the callers that have waited longest and are most likely to have given up, so that all
// the work is late. The order "adaptive" is FIFO while the queue is at most half full
// and serves the newest caller above that: some calls time out, the others are fast.
// The idea is the adaptive LIFO of "Fail at Scale" (ACM Queue, 2015).
//
// # Cost
//
// Taking a free permit and giving it back costs about a third more than locking and
// unlocking a mutex that nobody else wants, and about a quarter of a buffered channel
// used as a semaphore. Nothing is allocated. Waiting costs what the driver allocates,
// the Waiter and whatever its Wake needs, and ten times a free permit.
package bulkhead
