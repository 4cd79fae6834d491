package breaker

import "time"

// Result is what became of an admitted call.
type Result uint8

const (
	// Success is a call that was answered.
	Success Result = 0
	// Failure is a call that the dependency failed. An attempt timeout of ours is one.
	Failure Result = 1
	// Neutral is a call that says nothing about the dependency: the caller gave up, another policy rejected
	// it, a faster copy won. It gives its permit back and is counted nowhere.
	Neutral Result = 2
	// Abandoned is a call that its caller gave up before it was answered, for a reason of his own. To the kind Adaptive
	// it says what its age says; to Thresholds it is Neutral.
	Abandoned Result = 3
	// Costly is a Failure of a call that comes back if it fails, as a message of a queue does, or that costs something
	// else. The kind Adaptive counts it also if it failed quickly; to Thresholds it is a Failure.
	Costly Result = 4
)

// plain returns what a result is to the kind Thresholds.
func (r Result) plain() Result {
	switch r {
	case Abandoned:
		return Neutral
	case Costly:
		return Failure
	}
	return r
}

// Permit stands for one admitted call, from Allow to Record. It is a small value without pointers: copy it
// freely, but record it once. The zero Permit is inert: recording it does nothing.
type Permit struct {
	start time.Duration
	gen   uint32 // generation that counts the result; 0 counts nowhere
	mark  uint32 // closed, ramp-up: tick of the start; half-open: serial of the lease; gen 0: refused
}

const refused = 1

// WouldReject reports whether an enforcing breaker would have rejected this call. It is how a breaker in
// Shadow mode shows its decision; the result of such a call is not counted, because the call would not exist.
func (p Permit) WouldReject() bool { return p.gen == 0 && p.mark == refused }
