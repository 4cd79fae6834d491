package core

import (
	"time"

	"github.com/abate-go/abate/internal/clock"
)

// NoDeadline is the deadline of a call that may take for ever.
const NoDeadline = clock.Never

// MaxCopies is how many copies of one attempt can be in the air at once: the first and three hedges.
const MaxCopies = 4

// Action is what the driver of a Call or of an Arrival has to do next.
type Action uint8

const (
	// Attempt: call the dependency, with Step.Until as its deadline, then report to AttemptDone as copy 0.
	Attempt Action = iota + 1
	// Await: nothing; other copies of the attempt are still in the air.
	Await
	// Sleep: wait until Step.Until, then call Resume. If the caller leaves meanwhile: Cancel.
	Sleep
	// Queue: there is no place now. Call Enqueue with a Waiter.
	Queue
	// Queued: wait until the Waiter wakes, then Admitted (of an Arrival: Woken); at Step.Until at the latest, or when the
	// caller leaves: LeaveQueue.
	Queued
	// Finish: the call is over. Step.Err is nil, the attempt's own error, or an *Error (of a Terse caller its Reason).
	Finish

	// Handle, of an Arrival: hand the request to the service, with Step.Until as its deadline, then Done.
	Handle
	// Ask, of an Arrival: ask AskFleet, which may block, and hand its answer to Limited.
	Ask
	// Refuse, of an Arrival: the service does not get the request. Step.Err is the reason; Refusal says more.
	Refuse
	// Measure, of an Arrival: read the processor's load with ReadCPU, and hand it to Measured. It comes four times a
	// second at most, and only where the protection looks at the processor.
	Measure
)

// Step is one answer of a Call or of an Arrival. It is four words, so that it travels in registers.
type Step struct {
	Action Action
	// Until is a time on the guard's clock: when an Attempt or what is to Handle has to end (NoDeadline for never), when a
	// Sleep is over, when a Queued call has waited long enough.
	Until time.Duration
	Err   error // Finish
}
