package breaker

import (
	"strconv"
	"time"
)

// State is where a breaker stands. The numbers are part of the API: dashboards and alerts use them.
type State uint8

const (
	// Closed lets every call through and counts the results.
	Closed State = 0
	// HalfOpen lets a few probes through to find out whether the dependency is back.
	HalfOpen State = 1
	// Open rejects every call until its wait is over.
	Open State = 2
	// RampUp lets a growing share of the calls through after the probes succeeded.
	RampUp State = 3
)

// String returns "closed", "half-open", "open" or "ramp-up".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case HalfOpen:
		return "half-open"
	case Open:
		return "open"
	case RampUp:
		return "ramp-up"
	}
	return "State(" + strconv.Itoa(int(s)) + ")"
}

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
)

// The reasons a Change can name.
const (
	reasonConsecutive  = "consecutive failures"
	reasonFailureRate  = "failure rate"
	reasonSlowRate     = "slow call rate"
	reasonWaitOver     = "wait over"
	reasonProbeFailed  = "probe failed"
	reasonProbeSlow    = "probe slow"
	reasonProbesOK     = "probes succeeded"
	reasonRampUpOver   = "ramp-up over"
	reasonForced       = "forced open"
	reasonReconfigured = "reconfigured"
)

// Change is one change of state.
type Change struct {
	From, To State
	// At is the time given to the call that caused the change.
	At time.Duration
	// Reason is one of a fixed set of strings, fit for a metric label: "consecutive failures", "failure rate",
	// "slow call rate", "wait over", "probe failed", "probe slow", "probes succeeded", "ramp-up over",
	// "forced open", "reconfigured".
	Reason string
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

// Snapshot is the state of a breaker at one moment, for pages, metrics and logs.
type Snapshot struct {
	State State
	Mode  Mode
	// FailureRate and SlowRate are fractions, 0 when there are no calls. Hanging calls are part of SlowRate.
	FailureRate, SlowRate float64
	// Calls is how many finished calls the window holds; 0 when no rate threshold is set.
	Calls int
	// Hanging is how many calls run longer than the slow threshold; 0 without slow-call detection.
	Hanging int
	// Generation changes whenever results of the calls running then stop counting.
	Generation uint32
	// Openings is how often the breaker opened by itself since New.
	Openings uint64
	// OpenUntil is when an open breaker will let probes through; 0 when it is not open, or forced open.
	OpenUntil time.Duration
}
