// Package abateredis makes one service of its instances, through a Redis: rate limits, retry budgets, what breakers
// found out, and idempotency keys. It works with Redis from version 7 and Valkey, alone, behind Sentinels or as a
// Cluster.
//
//	fleet, err := abateredis.Open(abateredis.Config{Addresses: []string{"redis:6379"}})
//	defer fleet.Close()
//	set, err := policyfile.LoadWith("policy.yaml", policyfile.Hooks{
//		Protection: []func(string, *inbound.Protection){fleet.AdjustProtection}, // rateLimit.fleet, idempotency.fleet
//	})
//	fleet.Share(guard) // retryBudget.fleet, circuitBreaker.fleet
//
// # What it costs
//
// A request is held up by one round trip at most that is its own, and for Config.Timeout at most: 20 ms. Most are not:
// a busy key is decided in this process, from tokens that were fetched in the background ([Limiter]). Budgets and
// breakers never wait for Redis, and an idempotency key is one round trip for each step of its life ([Store]). A script
// that the server does not know yet, after its start, is sent a second time with its text, within the same timeout.
//
// Redis itself is behind a guard. After three failures in a row nothing is sent for a moment, 0.2 s at first and 2 s
// later, and decisions are made at once without it. It comes back through single probes and then a ramp of a second,
// each instance at a time of its own.
//
// # What holds without Redis
//
// A rate limit goes on with this instance's share of it, refuses, or lets pass, as its whenAway says. A retry budget
// goes on with what this instance's own calls earn. A breaker goes on alone. An idempotency key cannot be looked at:
// the store returns an error, and who drives it refuses the request or takes the risk. A failed call whose answer did
// not come may have been done: tokens are then counted as gone, and a key as held until its lease is over.
//
// # What must hold of Redis
//
// All time is the time of the Redis server, in microseconds; the clocks of the instances do not matter. Keys have a
// fixed length whatever they are made of, one hash tag each, and an expiry, except that nothing expires while it still
// means something. Idempotency needs maxmemory-policy noeviction, and with replicas Config.Replicas ([Store]). A Redis
// that restarts empty has no idempotency keys; its buckets hold what the first instance to ask knows of them, and a
// retry budget does not get its reserve again. After an outage a bucket holds what it would have filled up to, without
// what was spent meanwhile.
//
// The user needs the commands evalsha, eval, publish, subscribe and ping, those of the scripts (time, get, set, del,
// hmget, hget, hset, hdel, pexpire, zadd, zrem, zremrangebyscore, zcard), wait with Config.Replicas, select for a
// database other than 0, cluster|slots for a Cluster, and the keys and channels that begin with the prefix.
package abateredis
