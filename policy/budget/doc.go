// Package budget bounds how much extra load retries and hedges may add.
//
// Why: a retry helps when one call fails and harms when every call fails. Three
// retries per call are four times the load, and they arrive when the dependency
// can bear it least. A limit per call cannot see this. A budget can: it is
// shared by all calls to one dependency and lets retries and hedges together
// add, say, 10 % to the first attempts, whatever each single call would like.
//
// # The bound
//
// Every first attempt deposits Ratio of a token in a bank; every retry or hedge
// withdraws at least one token, or is not sent. An unused deposit is forgotten
// after Window; only the last Reserve tokens never expire. The bank starts with
// Reserve tokens. For the kinds "ratio" and "adaptive" this gives, over the life
// of the budget,
//
//	extra ≤ ratio × first + reserve
//
// and for every two moments t1 < t2, with floor = max(reserve, one retry's cost),
//
//	extra(t1, t2] ≤ ratio × first(t1−Window, t2] + floor
//
// where reserve is this instance's share (Reserve / Clients), one retry's cost is
// the larger of TransientCost and OverloadCost, and ratio is MaxRatio for
// "adaptive". Both are property tests of this package, for 1, 10 and 1,000
// concurrent callers and for one call a minute. So an outage draws the reserve
// once, the first retry is never free, and a client that sends one call a minute
// still earns one retry for every 1/ratio calls.
//
// # How it works
//
// Two counters that only grow: deposited and spent; the balance is their
// difference. The cap on the balance moves: floor + what was deposited within the
// last window. Ten times a window, whichever call comes first notes the deposits
// so far and counts what is over the cap as spent. A deposit therefore lives
// between 0.9 and 1 window, never longer, which keeps the bound exact.
//
// A budget holds nothing that refills it but first attempts. [Budget.Reconfigure]
// keeps the balance: a reload, or a storm of reloads, earns no retries.
//
// # A fleet
//
// With Fleet the reserve and what is left over lie with the other instances, and this one holds no more than it is
// about to use. Whoever connects the instances calls [Budget.Offer] a few times per second, moves what it says, and
// hands what comes back to [Budget.Settle]. Nothing is made on the way, only moved or lost, so the first bound holds
// over all instances together with one reserve; in the second, a deposit may be two windows old. While the others
// cannot be reached, nobody calls Offer, and the bank goes on with the deposits of this instance.
//
// # Cost
//
// A deposit is two reads of a cache line that hardly ever changes and one atomic add:
// about two thirds of locking and unlocking a mutex that nobody else wants. A withdrawal
// costs about as much as such a pair. Neither allocates. Ten times a window one call pays
// for a short critical section. The kind "tokens" takes a mutex on every call.
//
// # Sources
//
// A retry budget per client as a share of its requests: "Handling Overload" in
// Google's Site Reliability Engineering book. Deposits per request that expire:
// the leaky retry budget of Twitter's Finagle. The tokens kind: gRPC proposal A6
// (retry throttling) and the retry quota of the AWS SDKs, whose idea of a cost
// per class of error is here too.
package budget
