package hedge

import "time"

// State is what a [Policy] knows at one moment, for display.
type State struct {
	// Delay is the time from one copy to the next. Zero means that there is no
	// hedging now.
	Delay time.Duration

	// Learned is true when Delay comes from latencies, false when it is the configured one.
	Learned bool

	// Samples is how many successful attempts the estimate knows.
	Samples int
}
