package redelivery

import "time"

// Action is what to do with a message whose delivery failed.
type Action uint8

// The actions.
const (
	// Hold keeps the message where it is and delivers it again after Delay.
	Hold Action = iota + 1
	// Forward puts it into the retry topic Tier.
	Forward
	// DeadLetter puts it into the dead-letter topic.
	DeadLetter
	// Drop forgets it.
	Drop
)

// Verdict is the answer to a failure.
type Verdict struct {
	Action Action
	// Tier is, of Forward, the retry topic; Delay how long from now until the message is due there, of Hold until it is
	// delivered again here.
	Tier  int
	Delay time.Duration
	// Excused reports, for Forward, whether the delivery does not count against the message because the service had
	// failed.
	Excused bool
	// Reason is a word for logs and metrics: retry, excused, refused, circuit-open, flood, permanent, never-retry,
	// exhausted, timeout.
	Reason string
}
