package abatehttp

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// retryAfter reads the Retry-After of an answer: seconds, or a date (RFC 9110 §10.2.3). What is past, negative or not
// understood is 0; a number too large to hold is the largest time there is. Of several headers the longest counts.
func retryAfter(h http.Header) time.Duration {
	var longest time.Duration
	for _, v := range h["Retry-After"] {
		v = strings.TrimSpace(v)
		d, ok := parseSeconds(v)
		if !ok {
			d = untilDate(v, h)
		}
		longest = max(longest, d)
	}
	return longest
}

// parseSeconds reads a whole number of seconds without a sign, of any length.
func parseSeconds(v string) (time.Duration, bool) {
	const most = time.Duration(math.MaxInt64)
	d := time.Duration(0)
	for i := range len(v) {
		digit := time.Duration(v[i]) - '0'
		if digit < 0 || digit > 9 {
			return 0, false
		}
		if d > (most-digit*time.Second)/10 {
			d = most
			continue
		}
		d = d*10 + digit*time.Second
	}
	return d, v != ""
}

// untilDate reads a date. It is measured from the answer's own Date, so that it does not matter how far the server's
// clock is from ours; only without one does our wall clock serve. A date that is past gives a negative time.
func untilDate(v string, h http.Header) time.Duration {
	until, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		from = time.Now()
	}
	return until.Sub(from)
}
