package breaker

import "strconv"

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
