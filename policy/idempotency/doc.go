// Package idempotency decides when a repeat of a request is harmless: a request with a key is done once, and its repeats
// get the answer of that one time.
//
// Why: a client that got no answer cannot know whether its request was done. If it gives up, an order may be lost; if it
// repeats, a card may be charged twice. With a key that the client makes up once per intent and sends with every try, the
// service can tell a repeat from a new request, and the client may repeat as often as its budget allows.
//
// # The life of a key
//
// [Store.Begin] says what to do with a request. The first one to come is told to [Run]: it holds the key under a lease,
// which it renews while it works, and ends with [Store.Complete], which keeps the answer, or with [Store.Fail], if there
// was no effect. Others with the key get [Running] meanwhile, [Replay] afterwards, and [Mismatch] at any time if their
// [Fingerprint] is another: somebody uses one key for two requests.
//
// A try that crashed neither completes nor fails. When its lease is over, the next request takes over: it is told to run,
// and by Begun.TakenOver that the effect may have happened already; only the service itself can find out. Every Run comes
// with a token that is greater than all earlier ones of its key. Whoever was taken over and wakes up again holds an older
// one, and all it does is answered with [ErrLost]. Where the effect is a write to something that can compare numbers, hand
// the token on and refuse writes with a smaller one: no lease can promise that its holder does not sleep through its end.
//
// # What is stored
//
// [Keeps] tells by its status which answer is for good. The others say that nothing was done or that the client should come
// again, so the key is let go, and the next try runs.
//
// # Memory
//
// [Memory] is the store of one process: bounded, and honest about its bound. A key that is forgotten early means an effect
// that happens twice, so no key is: when memory is short, the oldest answers go first, whose repeats get 409 from then on
// instead of the answer, and when only keys are left, further requests are refused with [ErrFull]. It knows nothing of
// other instances and nothing after a restart; the stores for Redis and SQL do, and pass the same tests, which are in
// storetest. Where the effect is in a SQL database, recording the key in the same transaction needs no lease at all; see
// adapter/abatesql.
//
// # Sources
//
// The meaning of keys, fingerprints and statuses: the IETF draft "The Idempotency-Key HTTP Header Field"
// (draft-ietf-httpapi-idempotency-key-header). The field's syntax: RFC 9651 section 3.3.3. Leases with fencing tokens: the
// usual construction for locks whose holders can crash, as in Chubby's sequencers.
package idempotency
