// Package bulkhead limits how many calls to one dependency run at once, by a number or by
// what it learns, and how long and in which order others wait for a permit.
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
// for its Until and for its caller's context, and calls [Bulkhead.Abandon] in the last two
// cases. The example is such a driver.
//
// A call that sleeps before a retry calls [Bulkhead.Pause], and comes back for another
// permit. It is let in before those that have had none: else it could lose for ever what it
// has begun.
//
// # Order
//
// First come, first served is fair while everybody is served in time. Under overload it
// serves the callers that have waited longest and are most likely to have given up, so that
// all the work is late. The order "adaptive" is FIFO until the oldest has used half of its
// time or somebody has left without a permit, and then serves the newest caller until
// nobody waits: some calls time out, the others are fast. The idea is the adaptive LIFO of
// "Fail at Scale" (ACM Queue, 2015), with time instead of length as its evidence.
//
// # Adaptive limit
//
// See [Learned]. The evidence is a run of late ends that chance would bring once in 10,000
// times, after Wald's sequential test; the limit is Little's law: throughput × half of what an
// answer may take.
//
// # Cost
//
// Taking a free permit and giving it back costs about a third more than locking and
// unlocking a mutex that nobody else wants, and about a quarter of a buffered channel
// used as a semaphore. Nothing is allocated. Waiting costs what the driver allocates,
// the Waiter and whatever its Wake needs, and ten times a free permit.
package bulkhead
