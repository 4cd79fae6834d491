package abatehttp

import (
	"net/http"
	"strconv"
	"time"
)

// StatusError is a failing answer as an error: the cause in events, and in the *abate.Error of a call that ended after
// it without an answer in hand. A call that ends on a failing answer returns that answer instead.
type StatusError struct {
	StatusCode int
	RetryAfter time.Duration // how long the server asked to be left alone, 0 if it did not say; only with 429 and 503
}

// ErrorType is the status: what OpenTelemetry's error.type says of such an answer.
func (e *StatusError) ErrorType() string { return strconv.Itoa(e.StatusCode) }

// Error reads, for instance, "503 Service Unavailable, retry after 1s".
func (e *StatusError) Error() string {
	msg := strconv.Itoa(e.StatusCode)
	if text := http.StatusText(e.StatusCode); text != "" {
		msg += " " + text
	}
	if e.RetryAfter > 0 {
		msg += ", retry after " + e.RetryAfter.String()
	}
	return msg
}
