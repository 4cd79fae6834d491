package shed

import "time"

// Request is what the shedder knows of an arriving request.
type Request struct {
	// Deadline is when its caller stops waiting, on the clock of now. Zero: it waits for ever.
	Deadline time.Duration
	// Priority is how much it matters. Values outside the four count as the nearest.
	Priority Priority
	// Attempt is its number among those of the same call, from 1; 0 and below count as 1.
	Attempt int
	// Caller is a hash that distinguishes callers, for fairness. 0 is nobody in particular.
	Caller uint64
}

// Reason says why a request was refused.
type Reason uint8

const (
	// None: it was not refused.
	None Reason = iota
	// Expired: its caller does not wait any more: its deadline has passed, or it left the queue.
	Expired
	// LowPriority: there is room only for what matters more.
	LowPriority
	// LaterAttempt: there is room, but not for a retry.
	LaterAttempt
	// Unfair: no place is free, and its caller holds its share of them already.
	Unfair
	// QueueFull: too many wait already.
	QueueFull
	// QueueDelay: it has waited too long.
	QueueDelay
	// CPU: the processor is busy.
	CPU
)

var reasonNames = [...]string{"", "expired", "priority", "attempt", "unfair", "queue-full", "queue-delay", "cpu"}

// Reasons are all but None.
var Reasons = [...]Reason{Expired, LowPriority, LaterAttempt, Unfair, QueueFull, QueueDelay, CPU}

// String returns the name used in logs, answers and metrics.
func (r Reason) String() string {
	if int(r) >= len(reasonNames) {
		return "unknown"
	}
	return reasonNames[r]
}

// Verdict is the answer to an arrival.
type Verdict uint8

const (
	// Admitted: the request has a permit; Release it.
	Admitted Verdict = iota
	// Full: no place is free; Enqueue, or give up. Nothing is held.
	Full
	// Queued: wait for Wake, or Leave.
	Queued
	// Refused: for the Reason that comes with it.
	Refused
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "admitted"
	case Full:
		return "full"
	case Queued:
		return "queued"
	case Refused:
		return "refused"
	}
	return "unknown"
}

// Result is what became of an admitted request, for the limits that learn.
type Result uint8

const (
	// Done: it was handled; how long that took counts.
	Done Result = iota
	// Dropped: it was given up for load: its deadline passed, or something below it was overloaded.
	Dropped
	// Ignored: how long it took says nothing: its caller left, it never began, or it failed before it did any work.
	Ignored
)

// Permit is the right to handle one request. It must be given to Release once. The zero Permit holds nothing.
type Permit struct {
	start  time.Duration
	caller uint32 // a hash, 0 if it was not counted
	kind   uint8
}

// The bits of a permit's kind.
const (
	held    = 1 << iota // it has a place
	sampled             // how long it takes is learned from
	lent                // others have its place; start is how long it had it before
)

// laterAttempts is the number from which attempts are no longer distinguished.
const laterAttempts = 4

// rank orders requests by how much they matter, from 0: by priority, and inside that by how few attempts came before.
type rank uint8

const ranks = rank(len(Priorities) * laterAttempts)

func rankOf(r Request) rank {
	return rank(level(r.Priority)*laterAttempts + laterAttempts - min(max(r.Attempt, 1), laterAttempts))
}

// level is the index of p among the Priorities.
func level(p Priority) int { return int(min(max(p, Sheddable), CriticalPlus) - Sheddable) }

func (k rank) level() int { return int(k / laterAttempts) }

// below says why a request of this rank yields to one of rank other.
func (k rank) below(other rank) Reason {
	switch {
	case k.level() < other.level():
		return LowPriority
	case k < other:
		return LaterAttempt
	}
	return QueueFull
}
