// Package ratelimit decides how many requests may pass in how much time, for each key: a tenant, a user, an address.
//
// Why: one caller that sends too much takes the place of all others. A limit per key keeps it to its share, and says
// it when to come back. Each key has a token bucket: it holds Burst tokens at most, starts full, gets Limit.Tokens
// every Limit.Per, and a request takes its cost or is refused and takes nothing.
//
// # The bound
//
// In every window of time t, the costs of what one key was allowed are at most
//
//	burst + rate × t
//
// however many callers ask at once, and whatever the clock does. The bound is exact but for one unit, see below, and
// errors do not add up: a limit of one in 24 hours lets 3,650 through in ten years.
//
// # How it works
//
// The state of a bucket is one number, as in the generic cell rate algorithm (ITU-T I.371): how many tokens will have
// come from the rate since the origin of time when the bucket is full again. What has come by now is computed from the
// time itself with 128-bit integers; the difference is what is missing from the bucket. Tokens are counted in units: a
// unit is a nanosecond's worth of the limit if that divides well, else the power of ten of a token that takes 1 to 10
// ns to come, or more if Burst is so large that 64 bits are too few.
//
// The bucket of the empty key is one atomic word. All other buckets stand in 256 hash tables, each under its own lock,
// 16 bytes a bucket: a hash of the key, which has a random seed, and the state. The text of a key is not kept. A full
// bucket is as good as none, so it can be dropped, and no other ever is: nobody is better off by being forgotten. When
// MaxKeys buckets are kept and not full, new keys share one bucket until there is a place again; [State] counts their
// requests. Two keys with one hash would share a bucket; among ten million keys the chance that there is such a pair is
// 3 in a million.
//
// Time never runs backwards: a clock that jumps back earns nothing until it is where it was when a bucket was last
// full.
//
// # Cost
//
// A decision for the empty key costs half as much as reading the clock, and about 0.4 of an Allow of
// golang.org/x/time/rate with its clock included; a key costs a quarter more. Rates for which a unit is not a
// nanosecond, 3/s for example, cost two divisions more, a fifth. Among a million keys there is one wait for main
// memory. Nothing is allocated, except that the tables grow with the keys. MaxKeys buckets take 24 bytes each or less,
// plus 48 KB; a limiter that sees the empty key only takes less than a kilobyte.
package ratelimit
