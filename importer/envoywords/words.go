// Package envoywords says what Envoy's words mean, for all formats that are translated to Envoy: which outcomes a
// word of retry_on repeats, how long Envoy waits between tries, what its caller sees. What it says was measured on
// Envoy 1.40.
package envoywords

import "github.com/abate-go/abate/topology"

// meanings are the outcomes that each word of retry_on repeats. A limit of a single try is a reset for Envoy, so the
// words for resets repeat a hang, and those for what happens before the request is sent do not.
var meanings = map[string][]topology.Outcome{
	"5xx": {topology.Refused, topology.ResetUnsent, topology.ResetSent, topology.Hang,
		topology.S500, topology.S502, topology.S503, topology.S504},
	"gateway-error": {topology.Refused, topology.ResetUnsent, topology.ResetSent, topology.Hang,
		topology.S502, topology.S503, topology.S504},
	"reset":                      {topology.Refused, topology.ResetUnsent, topology.ResetSent, topology.Hang},
	"reset-before-request":       {topology.Refused, topology.ResetUnsent},
	"connect-failure":            {topology.Refused},
	"refused-stream":             {topology.ResetUnsent},
	"retriable-4xx":              {topology.S409},
	limitedWord:                  {topology.S429},
	"http3-post-connect-failure": {topology.Refused},
	"cancelled":                  {topology.CancelledCode},
	"deadline-exceeded":          {topology.DeadlineExceeded},
	"internal":                   {topology.Internal},
	"resource-exhausted":         {topology.ResourceExhausted},
	"unavailable":                {topology.Unavailable},
	codesWord:                    nil, // what the list of codes says
	headersWord:                  nil, // what the headers of the answer say
}

const (
	codesWord   = "retriable-status-codes"
	headersWord = "retriable-headers"
	limitedWord = "envoy-ratelimited"
)

// statuses are the outcomes that are answers.
var statuses = []topology.Outcome{topology.S500, topology.S502, topology.S503, topology.S504, topology.S429,
	topology.S408, topology.S409, topology.S4xx}

// Known returns the words of retry_on.
func Known() []string {
	return []string{"5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "refused-stream",
		codesWord, headersWord, "retriable-4xx", limitedWord, "http3-post-connect-failure",
		"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"}
}

// Status returns the outcome of an answer with a status code, and reports whether it is a failure at all.
func Status(code int) (topology.Outcome, bool) {
	switch code {
	case 502:
		return topology.S502, true
	case 503:
		return topology.S503, true
	case 504:
		return topology.S504, true
	case 429:
		return topology.S429, true
	case 408:
		return topology.S408, true
	case 409:
		return topology.S409, true
	}
	switch code / 100 {
	case 5:
		return topology.S500, true
	case 4:
		return topology.S4xx, true
	}
	return 0, false
}
