package breaker

import "time"

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
	reasonAdvised      = "another instance"
	reasonSilence      = "no answers"
	reasonFailures     = "failures of calls that come back"
	reasonAnswered     = "probe answered"
	reasonLate         = "late answer"
	reasonTardy        = "answers too late"
	reasonRecovered    = "recovered"
)

// Change is one change of state.
type Change struct {
	From, To State
	// At is the time given to the call that caused the change.
	At time.Duration
	// Reason is one of a fixed set of strings, fit for a metric label: "consecutive failures", "failure rate", "slow
	// call rate", "wait over", "probe failed", "probe slow", "probes succeeded", "ramp-up over", "forced open",
	// "reconfigured", "another instance", and of the kind Adaptive "no answers", "failures of calls that come back",
	// "probe answered", "late answer", "answers too late" and "recovered".
	Reason string
}
