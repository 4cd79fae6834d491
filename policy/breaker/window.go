package breaker

import (
	"fmt"
	"strconv"
	"time"
)

const (
	maxWindowCalls    = 1_000_000
	minWindowDuration = 10 * time.Millisecond
	maxWindowDuration = 24 * time.Hour
	defaultWindow     = 10 * time.Second
)

// Window is what failure and slow-call rates are computed over: the last so many calls, or the calls of the
// last so much time. Set one of the two; when both are set, Calls counts. Its text form is "100" (calls) or
// "10s" (time); the zero Window is the empty text.
type Window struct {
	// Calls is the number of calls, 1 to 1000000.
	Calls int
	// Duration is the time, 10ms to 24h. It moves in steps of a tenth, so a window of 10s holds the calls of
	// the last 9 to 10 seconds.
	Duration time.Duration
}

// String returns the text form.
func (w Window) String() string {
	switch {
	case w.Calls != 0:
		return strconv.Itoa(w.Calls)
	case w.Duration != 0:
		return w.Duration.String()
	}
	return ""
}

// MarshalText returns the text form. It never fails.
func (w Window) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the text form. Text outside the ranges of Window is an error that says what to write.
func (w *Window) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		*w = Window{}
		return nil
	}
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > maxWindowCalls {
			return fmt.Errorf("window of %d calls: allowed are 1 to %d calls", n, maxWindowCalls)
		}
		*w = Window{Calls: n}
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("window %q: write 100 for the last 100 calls or 10s for the last ten seconds", s)
	}
	if d < minWindowDuration || d > maxWindowDuration {
		return fmt.Errorf("window of %v: allowed are %v to %v", d, minWindowDuration, maxWindowDuration)
	}
	*w = Window{Duration: d}
	return nil
}

// withDefault keeps one of the two fields, inside its range.
func (w Window) withDefault() Window {
	if w.Calls != 0 {
		return Window{Calls: within(w.Calls, 0, 1, maxWindowCalls)}
	}
	return Window{Duration: within(w.Duration, defaultWindow, minWindowDuration, maxWindowDuration)}
}
