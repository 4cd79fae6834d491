package topology

import (
	"fmt"
	"strings"
)

// Outcome is how a try can end badly, as its caller sees it.
type Outcome uint8

// The outcomes. Status codes and gRPC codes that a product tells apart are outcomes of their own; others count as the
// one of their class that is nearest.
const (
	Refused     Outcome = iota // no connection was made: the request was never sent
	ResetUnsent                // the connection broke before the request was sent, or its stream was refused
	ResetSent                  // the connection broke after the request was sent: it may have been carried out
	Hang                       // no answer until the limit of the try
	S500                       // 500, and 5xx without a row of its own
	S502
	S503
	S504
	S429
	S408
	S409
	S4xx // other 4xx
	Unavailable
	ResourceExhausted
	Internal
	UnknownCode
	DeadlineExceeded
	CancelledCode
	Aborted
	outcomes
)

var outcomeNames = [outcomes]string{"refused", "reset-unsent", "reset-sent", "hang", "500", "502", "503", "504", "429",
	"408", "409", "4xx", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED",
	"ABORTED"}

// String is the outcome's name, as the YAML form and reports write it.
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return "?"
}

// MarshalText is String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what String writes.
func (o *Outcome) UnmarshalText(text []byte) error {
	for i, name := range outcomeNames {
		if name == string(text) {
			*o = Outcome(i)
			return nil
		}
	}
	return fmt.Errorf("no outcome is called %q; they are: %s", text, strings.Join(outcomeNames[:], ", "))
}

// AllOutcomes returns every outcome, in the order of the constants.
func AllOutcomes() []Outcome {
	all := make([]Outcome, outcomes)
	for i := range all {
		all[i] = Outcome(i)
	}
	return all
}

// GRPC reports whether o is a gRPC code.
func (o Outcome) GRPC() bool { return o >= Unavailable && o < outcomes }

// MayHaveRun reports whether the request may have been carried out by the time its caller sees o: repeating it is not
// safe for a method that is not idempotent.
func (o Outcome) MayHaveRun() bool { return o != Refused && o != ResetUnsent && o != S429 }

// Methods is the kind of request that a rule is about.
type Methods uint8

// The kinds. Safe requests can be repeated without harm: GET, HEAD, OPTIONS, PUT, DELETE. Unsafe ones cannot: POST,
// PATCH, and gRPC calls that nobody declared idempotent.
const (
	Safe Methods = 1 << iota
	Unsafe
	AllMethods = Safe | Unsafe
)

// String is "safe", "unsafe" or "all".
func (m Methods) String() string {
	switch m {
	case Safe:
		return "safe"
	case Unsafe:
		return "unsafe"
	}
	return "all"
}

// MarshalText is String.
func (m Methods) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what String writes.
func (m *Methods) UnmarshalText(text []byte) error {
	switch string(text) {
	case "safe":
		*m = Safe
	case "unsafe":
		*m = Unsafe
	case "all":
		*m = AllMethods
	default:
		return fmt.Errorf("%q is no kind of method; write safe, unsafe or all", text)
	}
	return nil
}
