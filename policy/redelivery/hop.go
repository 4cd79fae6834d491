package redelivery

import "time"

// Main is the tier of the main topic: what is before the first retry topic.
const Main = -1

// Hop is one retry topic.
type Hop struct {
	// Delay is how long after its failure a message is delivered again.
	Delay time.Duration
	// Deliveries is how often one message may be delivered from it: 1, or more where the last delays are the same.
	Deliveries int
}
