// Package breaker decides when to stop calling a dependency, and how to come back.
//
// A dependency that is down does not get better by being called, and a caller that waits for it ties up what other
// callers need. A circuit breaker watches results, stops the calls when they are not answered, and finds out when
// they are again. There are two kinds.
//
// # Adaptive
//
// The kind Adaptive has no numbers. A detector learns from successes how long they take, as a histogram with a memory
// of 2048 attempts, and which share of attempts has none. The surprise at an attempt that has had no success by some
// age is -ln of the share of attempts of which that is true (Laplace's rule of succession). The circuit opens when
// there has been no success for twice the time after which one is overdue (RFC 6298), and the surprises at all
// attempts since the last one add up to 13.8 nats, which chance brings once in a million: a sequential test, as
// Wald's, with the last success as its beginning. Quick failures are no reason to refuse anybody, and do not count.
//
// A governor then sends probes, with a twelfth of the silence between two (of rare calls at most every fourth), at
// most 500 ms, so that a recovery is seen 8 % of the outage late at most. Calls may wait for it: Hold, Look, Leave.
// The newest are the probes, because they have the most time left. The first success makes the circuit half-open, with
// as many attempts as are usually out (Little's law); a quick success adds one, an attempt without one halves them,
// once in a round. A success of an attempt from before the opening closes the circuit: the dependency is slow, not
// dead.
//
// A dependency that has more to do than it can answers too late. An answer is late when it has taken half of what
// callers give it, or twice what is usual if that is more, or what it takes with little to do. The circuit becomes
// half-open without having been open when the late ones since the last that was in time add up to as many nats; or when
// answers have become slow and so many attempts are out as chance explains as seldom, and as would not be answered in
// time at the rate of successes. There are as many places then as that rate answers in time. They become fewer in
// proportion when answers come late, once in a round, and more by less than one for each that does not.
//
// A place goes to the oldest of those who still have time for an answer.
//
// A call that has failed quickly may wait as well, when the surprises at all failures since the last success, less that
// at its own, say that nothing but failures is to be had: for a sign of life, a success of an attempt that began after
// its failure. The first one lets one such call go on, and each of their retries that succeeds quickly two more; a
// failure or a late success among them halves how many may be out.
//
// What nobody can do: a dependency that is called once a minute is learned in minutes, and where a probe is all the
// load there is, probing is no cheaper than calling.
//
// # Thresholds
//
// The kind Thresholds goes by numbers. It is a state machine:
//
//	         a threshold is reached       the wait is over
//	closed -----------------------> open ----------------> half-open
//	  ^                              ^ ^                    |     |
//	  |                              | +--- a probe failed -+     |
//	  |       a threshold is reached |                            |
//	  +-- time is over -- ramp-up ---+                            |
//	                         ^------- enough probes succeeded ----+
//
// # What opens it
//
// Failures in a row, the share of failed calls, or the share of slow calls, the shares over the last so many
// calls or the last so much time. A dependency that hangs answers nothing, so calls that still run after the slow
// threshold count as slow while they hang; waiting for them to end would mean to notice a hang one timeout too late.
// An idle breaker opens on the first Allow after enough calls hang. Neutral results and the breaker's own
// rejections are counted nowhere.
//
// # How it comes back
//
// The wait grows each time the breaker opens again without a full recovery, and is jittered inside its cap:
//
//	base = min(wait * multiplier^reopenings, longest / (1 + jitter))
//	wait = base * (1 + jitter * u), u uniform in [0, 1)
//
// (Exponential growth of the open time is old practice; applying the cap before the draw keeps clients that have all
// reached the cap apart.) After it only PermittedCallsInHalfOpen probes are out at once. Each holds a lease: one that
// does not report in time gives its permit to the next, so neither a hung nor a lost probe can keep the breaker
// half-open; when it reports after all, before the state has changed, it counts. Any failed probe opens it again;
// SuccessThreshold successes end the probing. Then, with RampUp set, the admitted share grows linearly,
//
//	share = from + (1 - from) * elapsed / rampUp
//
// because a dependency that has just come back, with cold caches and a backlog, rarely survives everybody at
// once. A threshold reached on the way opens the breaker again, with the longer wait.
//
// Results belong to a generation. Opening, half-open and what follows it begin a new one, and results of calls
// admitted in an earlier one are ignored: a call that began before the outage says nothing about now. (Ramp-up and
// the closed state it ends in are one generation.)
//
// # How to drive it
//
// Ask Allow before each attempt and give the Permit to Record afterwards, whatever became of the attempt; a panic
// or a cancellation is Neutral, an attempt timeout is a Failure. Ask Rejecting before a retry sleeps. The breaker
// starts no goroutine and reads no clock; state changes that time alone brings about happen on the next Allow.
//
// # What it costs
//
// Allow and Record of a success in a closed breaker take about 7 ns with consecutive failures, 8 ns with a time
// window (one atomic add), 10 ns with a count window and 16 ns with slow-call detection (three atomic adds); a
// rejection takes 3 ns, a failure that opens nothing adds about 15 ns. None allocates and none takes a lock,
// except that a time window turns once per tenth, and the clock of hanging calls once per eighth of the slow
// threshold, under one. One read of the system's clock costs three times as much as the whole time window (figures
// from the benchmarks of this package on one core). A breaker needs about 2 KB; a count window adds two bits a call.
//
// The kind Adaptive takes a lock twice per call, and with that about twice the time of slow-call detection. It needs 24
// bytes for each attempt of the most that were ever out at once, and allocates for them only, and for calls that wait.
package breaker
