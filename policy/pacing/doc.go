// Package pacing decides when the next attempt may be sent: one after the other at an even pace, a few at once after a
// pause, and slowly after an outage.
//
// It is for attempts that are expensive and come many at once, such as new connections to a database that has just been
// restarted. A rate limit counts what was sent; a pacer also remembers that the other side has only just come back, and
// draws the time between two tokens at random, so that instances that lost their connections together do not reconnect
// together again and again.
//
// A Pacer is a state machine: it is given the time and the random number and returns how long to wait. It starts no
// goroutine, reads no clock and never sleeps.
//
// The bucket is the generic cell rate algorithm (ITU-T I.371) with one cell per attempt. It counts in time at the full
// pace, of which the ramp-up grants less in the beginning: after Restart the pace is RampUpFrom of PerSecond, and grows
// linearly to all of it within RampUp. Whatever the numbers drawn, no time T has more than Burst + 1 + PerSecond × T /
// (1 - Jitter) tokens in it; on average they are PerSecond × T.
//
// The cost: tokens are given out in the order of the requests and never taken back. If a caller leaves while it waits,
// its token is lost.
package pacing
