package redelivery

import "time"

// Failure is one delivery that did not succeed.
type Failure struct {
	// Tier is where the message was read: Main, or the index of a retry topic.
	Tier int
	// Delivery counts the deliveries of the message, this one included.
	Delivery int
	// Class is the class of the error.
	Class string
	// Permanent reports whether no other delivery can succeed.
	Permanent bool
	// Refused reports whether our own policies refused it: the service has not seen it, so the delivery does not count.
	Refused bool
	// CircuitOpen reports whether the service's circuit is open, now that the delivery has failed: it is the service
	// that is ill, and not the message.
	CircuitOpen bool
	// Wait is when the guard may let the next one through, from now; 0 when it did not say.
	Wait time.Duration
	// Held is how often the message has been held after an attempt, this time not counted, since it was read.
	Held int
	// RetryAfter is how long the service asked to be left alone; 0 when it did not say.
	RetryAfter time.Duration
	// Since is how long ago its first delivery failed; 0 if that is now.
	Since time.Duration
	// Flooded reports whether it was forwarded last because of a flood, see FloodGuard.
	Flooded bool
	// Age is how old the message is, from its own timestamp.
	Age time.Duration
}
