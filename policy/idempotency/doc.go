// Package idempotency makes repeats of a request harmless: a request with a key is done once, and its repeats get the
// answer of that one time.
//
// Why: a client that got no answer cannot know whether its request was done. If it gives up, an order may be lost; if
// it repeats, a card may be charged twice. With a key that the client chooses once per intent and sends with every
// try, the service can distinguish a repeat from a new request, and the client may repeat as often as its budget
// allows.
//
// # The life of a key
//
// [Store.Begin] says what to do with a request. The first one gets [Run]. It holds the key under a lease, which it
// renews while it works. It ends with [Store.Complete], which keeps the answer, or with [Store.Fail] if there was no
// effect. Other requests with the key get [Running] meanwhile and [Replay] afterwards. They get [Mismatch] at any time
// if their [Fingerprint] differs, because somebody uses one key for two requests.
//
// An attempt that crashed neither completes nor fails. When its lease is over, the next request takes over. It gets
// Run, and Begun.TakenOver says that the effect may have happened already; only the service itself can find out. Every
// Run comes with a token that is greater than all earlier ones of its key. A holder that was taken over and wakes up
// again has an older token, and all its calls return [ErrLost]. If the effect is a write to a system that can compare
// numbers, pass the token on and refuse writes with a smaller one. No lease can rule out that its holder sleeps past
// its end.
//
// # When an answer may be given out
//
// One rule keeps an acknowledged request from being run again, however slow or partitioned the store and its users are:
// an answer is given out only when the store has confirmed that the request was done. The first caller waits for that,
// usually for one round trip. A repeat gets what the store says or, at the instance that did the work, what that
// instance says. A lease alone cannot keep that promise: if it is over while the store cannot be reached, nobody can
// distinguish a holder that is cut off from one that crashed, and the next attempt takes over. So the holder gives out
// nothing that it has not recorded.
//
// [Holder] is the state machine for that. It renews the lease while the work goes on, and also after the work while the
// answer cannot be stored; it records the end again and again, which a Store accepts any number of times; and it stops
// only when the store has confirmed the end or says that another attempt has taken over. The driver keeps the answer
// meanwhile, even if the first caller's time is over: that caller is asked to send the request again with the same key.
// An answer that a store refuses while it takes renewals is recorded without its body: "done, answer unknown", for
// which repeats get 409. An answer that is sent before it is complete is recorded in the same way, before its first
// byte is sent. A request that has not been recorded when the process ends looks like a crash, so drain first.
//
// The price: while the store is away, requests that are done wait, up to a lease, and then fail with 503 although they
// were done; their repeats get the answer when the store is back. With whenAway set to open such answers are sent after
// a tenth of the lease, at the risk of a second run.
//
// No store can rule out that two attempts work at the same time, when the first is cut off for longer than its lease or
// the store forgets it. Only one of them is acknowledged. TakenOver and the token are for the services behind.
//
// A store that may forget what it has confirmed breaks the rule: see abateredis.Config.Replicas, and synchronous_commit
// of a PostgreSQL with standbys. A holder repeats to such a [Restorer] what it has forgotten.
//
// # What is stored
//
// [Keeps] reports by its status whether an answer is final. Other statuses mean that nothing was done or that the
// client should retry later, so the key is released, and the next attempt runs, unless Config.KeepServerErrors says
// that there may have been an effect.
//
// # Whose a key is
//
// [Principal] says to whom a key belongs. It is never an address: several senders share one, and one sender has
// several.
//
// A change of scope is a change of all keys: what was done under the old scope is unknown under the new one. A change
// of store is not: a gate whose policy moves keys to another store asks the old store first. It does so while it can be
// reached and still has keys to remember, and in the same process only. See inbound.Gate.EarlierStores.
//
// # Memory
//
// [Memory] is the store of one process: it is bounded. A key that is forgotten early means an effect that may happen
// twice. So when memory is short, the oldest answers are forgotten first, and their repeats get 409 instead of the
// answer. When only keys are left, further requests are refused with [ErrFull]; or, if [Memory.Shorten] allows it, the
// oldest finished keys are forgotten early, which is reported. Memory knows nothing of other instances, and nothing
// after a restart; the stores for a file (adapter/abatebolt), Redis and SQL do, and pass the same tests, which are in
// storetest. Where the effect is in a SQL database, recording the key in the same transaction needs no lease at all;
// see adapter/abatesql.
//
// # Sources
//
// The meaning of keys, fingerprints and statuses: the IETF draft "The Idempotency-Key HTTP Header Field"
// (draft-ietf-httpapi-idempotency-key-header). The field's syntax: RFC 9651 section 3.3.3. Leases with fencing tokens:
// the usual construction for locks whose holders can crash, as in Chubby's sequencers.
package idempotency
