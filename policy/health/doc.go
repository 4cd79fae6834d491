// Package health decides when an endpoint is asked how it is, and what its answers mean.
//
// Why: the calls of a program say at once how an endpoint does, and package balance acts on it. What they cannot say is
// that an endpoint will not answer before one of them has failed, and that one is well again before one of them has
// been risked. A check says both, for the price of a request now and then.
//
// # What is believed
//
// Calls are evidence, checks are hearsay: a check goes another way than calls do, asks another question, and may be
// wrong for all endpoints at once. So:
//
//   - An endpoint that answers calls is healthy although its check gets no answer ([Silent]). It may be the check that
//     cannot get through.
//   - An endpoint that answers its check, and says that it wants no calls ([Refusing]), is believed although it answers
//     calls. That is what a server says that is about to stop, and nobody knows it better.
//   - A check that passes does not bring back an endpoint that calls have had ejected; see package balance, which also
//     stops believing checks when they condemn too many.
//
// # When an endpoint is asked
//
// Nothing is known of a new endpoint. It is asked for the first time within a quarter of the interval, and that answer
// counts alone; until then it gets calls. From then on UnhealthyThreshold answers in a row take it out, and
// HealthyThreshold bring it back. Where an answer is not what is believed, the next question comes after a quarter of
// the interval. An endpoint that stays healthy is asked ever less often, after one interval, two, four, up to
// MaxInterval; and after MaxInterval at once if calls were answered in between, which prove more than the question
// would. When calls fail, and none is answered, it is asked within an interval. One that is out is asked every
// interval. All waits are up to a quarter shorter or longer, by chance, so that many who ask do not ask at the same
// moment.
//
// With the defaults, 1,000 proxies ask each of 1,000 endpoints 25 times per second, together, while nothing changes:
// each proxy sends 25 questions per second.
//
// # How to drive it
//
// Keep one [Check] for each endpoint. When its Due has come, call Ask, and if that says so send the question, and give
// the outcome to Take; when that reports a change, tell the balancer. A Check starts no goroutine and reads no clock.
// It takes 64 bytes, and nothing is allocated.
package health
