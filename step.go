package abate

import (
	"math"
	"time"
)

// NoDeadline is the deadline of a call that may take for ever.
const NoDeadline time.Duration = math.MaxInt64

// MaxCopies is how many copies of one attempt can be in the air at once: the first and three hedges.
const MaxCopies = 4

// Action is what the driver of a Call has to do next.
type Action uint8

const (
	// Attempt: call the dependency, with Step.Until as its deadline, then report to AttemptDone as copy 0.
	Attempt Action = iota + 1
	// Await: nothing; other copies of the attempt are still in the air.
	Await
	// Sleep: wait until Step.Until, then call Resume. If the caller leaves meanwhile: Cancel.
	Sleep
	// Queue: the bulkhead is full. Call Enqueue with a Waiter.
	Queue
	// Queued: wait until the Waiter wakes, then Admitted; at Step.Until at the latest, or when the caller leaves: LeaveQueue.
	Queued
	// Finish: the call is over. Step.Err is nil, the attempt's own error, or an *Error.
	Finish
)

// Step is one answer of a Call. It is four words, so that it travels in registers.
type Step struct {
	Action Action
	// Until is a time on the guard's clock: when an Attempt has to end (NoDeadline for never), when a Sleep is over, when
	// a Queued call has waited long enough.
	Until time.Duration
	Err   error // Finish
}
