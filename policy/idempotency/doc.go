// Package idempotency decides when a repeat of a request is harmless: a request with a key is done once, and its
// repeats get the answer of that one time.
//
// Why: a client that got no answer cannot know whether its request was done. If it gives up, an order may be lost; if
// it repeats, a card may be charged twice. With a key that the client makes up once per intent and sends with every
// try, the service can distinguish a repeat from a new request, and the client may repeat as often as its budget
// allows.
//
// # The life of a key
//
// [Store.Begin] says what to do with a request. The first one to come gets [Run]: it holds the key under a lease,
// which it renews while it works, and ends with [Store.Complete], which keeps the answer, or with [Store.Fail], if
// there was no effect. Others with the key get [Running] meanwhile, [Replay] afterwards, and [Mismatch] at any time if
// their [Fingerprint] is another: somebody uses one key for two requests.
//
// A try that crashed neither completes nor fails. When its lease is over, the next request takes over: it gets
// run, and by Begun.TakenOver that the effect may have happened already; only the service itself can find out. Every
// Run comes with a token that is greater than all earlier ones of its key. Whoever was taken over and wakes up again
// holds an older one, and all it does is answered with [ErrLost]. Where the effect is a write to something that can
// compare numbers, hand the token on and refuse writes with a smaller one: no lease can promise that its holder does
// not sleep through its end.
//
// # When an answer may be given out
//
// One rule keeps a request whose effect was acknowledged to anybody from being run again, however slow, cut off or
// divided the store and its users are: an answer is given out only when the store has confirmed that the request was
// done. The first caller waits for that, for a round trip as a rule; a repeat gets what the store says, or, at the
// instance that did the work, what that instance says. A lease cannot keep that promise: if it is over while the store
// cannot be reached, nobody can distinguish a holder that is cut off from one that crashed, and the next try takes
// over. So what the holder has not recorded it does not give out.
//
// [Holder] is the state machine of that: it renews while the work goes on, and also when the work is over and the
// answer does not pass; it records the end again and again, which a Store accepts any number of times; and it stops
// only when the store has confirmed it or says that another try has taken over. Who drives it keeps the answer
// meanwhile, also when the first caller's time is over: that one is asked to send the request again with the same key.
// An answer that a store refuses while it takes renewals is recorded without its body: "done, answer unknown", for
// which repeats get 409. So is an answer that begins to go out before there is all of it, before its first byte goes
// out. What has not been recorded when the process ends looks like a crash, so drain before.
//
// The price: while the store is away, requests that are done wait, up to a lease, and then fail with 503 although they
// were done; their repeats get the answer when the store is back. Whoever sets whenAway to open takes the risk instead:
// such answers go out after a tenth of the lease.
//
// What no store can rule out is that two tries work at the same time, when the first is cut off for longer than its
// lease or the store forgets it: one of them is acknowledged. TakenOver and the token are there for the services
// behind.
//
// A store that may forget what it has confirmed breaks the rule: see abateredis.Config.Replicas, and synchronous_commit
// of a PostgreSQL with standbys. A holder repeats to such a [Restorer] what it has forgotten.
//
// # What is stored
//
// [Keeps] reports by its status whether an answer is final. The others say that nothing was done or that the client
// should come again, so the key is let go, and the next try runs, unless Config.KeepServerErrors says that there may
// have been an effect.
//
// # Whose a key is
//
// [Principal] tells. It is never an address: others are behind the same one, and the same sender comes back from
// another.
//
// A change of scope is a change of all keys: what was done under the old one is not known again under the new one. A
// change of place is not: a gate whose policy moves keys to another store asks the old one first, as long as it can be
// reached and something there is to be remembered, and in the same process only. See abate.Gate.EarlierStores.
//
// # Memory
//
// [Memory] is the store of one process: bounded, and honest about its bound. A key that is forgotten early means an
// effect that may happen twice: when memory is short, the oldest answers go first, whose repeats get 409 from then on
// instead of the answer. When only keys are left, further requests are refused with [ErrFull], or, if [Memory.Shorten]
// allows it, the finished keys that are oldest go before their time, which is said aloud. It knows nothing of other
// instances and nothing after a restart; the stores for a file (adapter/abatebolt), Redis and SQL do, and pass the same
// tests, which are in storetest. Where the effect is in a SQL database, recording the key in the same transaction needs
// no lease at all; see adapter/abatesql.
//
// # Sources
//
// The meaning of keys, fingerprints and statuses: the IETF draft "The Idempotency-Key HTTP Header Field"
// (draft-ietf-httpapi-idempotency-key-header). The field's syntax: RFC 9651 section 3.3.3. Leases with fencing tokens:
// the usual construction for locks whose holders can crash, as in Chubby's sequencers.
package idempotency
