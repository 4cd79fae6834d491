package throttle

// Result is what became of a request that was sent.
type Result uint8

const (
	// Accepted: the dependency took it and did it.
	Accepted Result = iota
	// Rejected: the dependency refused it for load, or failed.
	Rejected
	// Neutral: it says nothing about the dependency, and is taken out of the count.
	Neutral
)

// String returns the result in lower case.
func (r Result) String() string {
	switch r {
	case Accepted:
		return "accepted"
	case Rejected:
		return "rejected"
	case Neutral:
		return "neutral"
	}
	return "unknown"
}
