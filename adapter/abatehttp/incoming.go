package abatehttp

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate"
)

// ServedClass is what the status of an answer tells a gate about the service behind it: 429 and 503 mean that it has too much
// to do, the rest of 5xx that it failed.
func ServedClass(status int) abate.Class {
	switch {
	case status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests:
		return abate.Overload
	case status >= 500:
		return abate.Failure
	}
	return abate.Success
}

// TimeLimitOf reads a request header that says how long the caller still waits: X-Envoy-Expected-Rq-Timeout-Ms (Envoy,
// milliseconds) or Grpc-Timeout (gRPC over HTTP/2, a number and a unit). name is in any case. False when the header is
// another one or its value is not understood; then the caller waits for ever as far as anybody knows. It allocates nothing.
func TimeLimitOf(name, value string) (time.Duration, bool) {
	switch {
	case len(name) == len(timeLeftHeader) && strings.EqualFold(name, timeLeftHeader):
		return digits(value, time.Millisecond)
	case len(name) == len(grpcTimeoutHeader) && strings.EqualFold(name, grpcTimeoutHeader) && len(value) > 1 && len(value) <= 9:
		unit, ok := grpcUnits[value[len(value)-1]]
		if !ok {
			return 0, false
		}
		return digits(value[:len(value)-1], unit)
	}
	return 0, false
}

const (
	grpcTimeoutHeader  = "Grpc-Timeout"
	grpcAttemptsHeader = "Grpc-Previous-Rpc-Attempts"
	restLiHeader       = "X-Number-Of-Retry-Attempts"
)

var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// digits reads a whole number of units. More than a day is a day: nobody waits longer.
func digits(s string, unit time.Duration) (time.Duration, bool) {
	if s == "" || len(s) > 18 || s[0] == '+' || s[0] == '-' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	const most = 24 * time.Hour
	if n > int64(most/unit) {
		return most, true
	}
	return time.Duration(n) * unit, true
}

// AttemptOf reads a request header that says which attempt of its call a request is, from 1: X-Envoy-Attempt-Count,
// Grpc-Previous-Rpc-Attempts or X-Number-Of-Retry-Attempts. False when the header is another one or its value is not
// understood. It allocates nothing.
func AttemptOf(name, value string) (int, bool) {
	first := 0
	switch {
	case len(name) == len(attemptCountHeader) && strings.EqualFold(name, attemptCountHeader):
	case len(name) == len(grpcAttemptsHeader) && strings.EqualFold(name, grpcAttemptsHeader),
		len(name) == len(restLiHeader) && strings.EqualFold(name, restLiHeader):
		first = 1
	default:
		return 0, false
	}
	if value == "" || len(value) > 6 || value[0] == '+' || value[0] == '-' {
		return 0, false
	}
	n, err := strconv.Atoi(value)
	if n += first; err != nil || n < 1 {
		return 0, false
	}
	return n, true
}
