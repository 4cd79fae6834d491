// Package redelivery decides what becomes of a message that could not be handled: whether it is delivered again, when,
// from which retry topic, or whether it is a dead letter. It decides too which message of a partition is handled next,
// what may be committed, and how fast what an outage left behind is worked off.
//
// Why: a consumer that tries a message again on the spot blocks all that come after it, and one that skips it loses it.
// With retry topics, one for each delay, neither happens. But they have storms of their own: an outage takes every
// message through every retry topic into the dead-letter topic, and all of them come back at once. So the circuit, and
// not only the message, is asked before a delivery counts, and after an outage the backlog comes back no faster than
// the service is known to bear.
//
// The parts, each given the time and what happened, none with a clock, a goroutine or a connection of its own:
//
//   - [Plan]: one failure → hold, forward, dead letter or drop.
//   - [Lane]: one partition: which record starts next, and the lowest that is unfinished.
//   - [Parking]: the keys whose messages are being retried, for consumers that keep the order of each key.
//   - [FloodGuard]: so many failures that end in the dead-letter topic that they are held.
//   - [Pace]: how fast a backlog is drained after an outage.
//
// Package abatekafka drives them with a broker, package sim/engine with an event queue.
//
// # What is promised
//
//   - No message is given up because of what an open circuit did to it: a delivery that fails while the circuit is open
//     does not count, and one that our own policies refuse does not either. What no other delivery can process (a
//     permanent error, a class in neverRetryErrors) and what is older than the timeout is given up nevertheless.
//   - Every message that goes on failing has exactly as many deliveries that count as the policy says, and never goes
//     back to an earlier retry topic.
//   - What may be committed never passes a record that is not finished. Records with one key start in their order, one
//     after the other, if the order is by key.
//   - During a drain, the load on the service is bounded, for any number of callers, see [Pace].
//
// # Where it comes from
//
// One topic for each delay, with the retries counted in the message, is Uber's reliable reprocessing; that equal last
// delays share one topic, and the words of the policy, are those of Spring Kafka's retry topics, with which a chain can
// be shared. That a service's illness stops deliveries instead of using them up is NServiceBus's automatic rate
// limiting, and uForwarder's limit on what a timeout may put into the dead-letter topic. A backlog that comes back in
// growing steps is how ServicePulse replays. The lane is what is missing in the Kafka clients, where marking offset 7
// commits what is before it, finished or not.
package redelivery
