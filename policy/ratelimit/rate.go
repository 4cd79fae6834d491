package ratelimit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is how many tokens come in how much time: "1000/s", "5/m", "100/10s". The zero Rate is no rate at all; "0/s" is
// one that grants nothing.
type Rate struct {
	// Tokens per Per, 0 to 1e9 and at most 1 a nanosecond. It is read to 1/100000 of a token.
	Tokens float64
	// Per is the time, 1ms to 24h. 0 means that there is no rate.
	Per time.Duration
}

// IsZero reports whether no rate was given.
func (r Rate) IsZero() bool { return r.Per == 0 }

// PerSecond is the rate in tokens a second; 0 for the zero Rate.
func (r Rate) PerSecond() float64 {
	if r.Per <= 0 {
		return 0
	}
	return r.Tokens / r.Per.Seconds()
}

// String returns the text form, "" for the zero Rate.
func (r Rate) String() string {
	if r.IsZero() {
		return ""
	}
	per := r.Per.String()
	switch r.Per {
	case time.Second:
		per = "s"
	case time.Minute:
		per = "m"
	case time.Hour:
		per = "h"
	default:
		if strings.HasSuffix(per, "m0s") { // 24h0m0s is 24h
			per = strings.TrimSuffix(per, "0s")
		}
		if strings.HasSuffix(per, "h0m") {
			per = strings.TrimSuffix(per, "0m")
		}
	}
	return strconv.FormatFloat(r.Tokens, 'f', -1, 64) + "/" + per
}

// MarshalText returns the text form. It never fails.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text form; an empty text is the zero Rate. Text that is no rate within the limits is an error
// that says what to write, and leaves r as it was.
func (r *Rate) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*r = Rate{}
		return nil
	}
	tokens, per, ok := strings.Cut(string(text), "/")
	n, err := strconv.ParseFloat(strings.TrimSpace(tokens), 64)
	per = strings.TrimSpace(per)
	if per != "" && per[0] >= 'a' && per[0] <= 'z' {
		per = "1" + per
	}
	d, perErr := time.ParseDuration(per)
	if !ok || err != nil || perErr != nil {
		return fmt.Errorf("%s is not a rate; write for example 1000/s, 50/m or 100/10s", quote(text))
	}
	if math.IsNaN(n) || n < 0 || n > maxTokens || d < minPer || d > maxPer {
		return fmt.Errorf("%s is out of range; allowed: 0 to 1000000000 in 1ms to 24h, for example 1000/s", quote(text))
	}
	if n > float64(d) || n > 0 && n < 1.0/finest {
		return fmt.Errorf("%s is out of range; allowed: 0, or from 0.00001 in 24h to 1000000000 in 1s, for example 1000/s",
			quote(text))
	}
	*r = Rate{n, d}
	return nil
}

// quote shows as much of a text as an error needs.
func quote(text []byte) string {
	if len(text) > 50 {
		return strconv.Quote(string(text[:50])) + "..."
	}
	return strconv.Quote(string(text))
}
