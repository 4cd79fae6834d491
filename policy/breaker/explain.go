package breaker

import (
	"fmt"
	"time"
)

// Explain says in a sentence or two what a breaker of the kind Adaptive has learned, and why it refuses; "" of
// Thresholds, and before the first answer.
func (s *Snapshot) Explain() string {
	l := &s.Learned
	if l.Latency == 0 {
		return ""
	}
	usual := fmt.Sprintf("An answer usually takes %v and is late after %v.", rounded(l.Latency), rounded(l.Overdue))
	switch {
	case s.State == Open:
		return fmt.Sprintf("No answer for %v; %d calls wait for the next probe. %s", rounded(l.Silence), l.Held, usual)
	case s.State == HalfOpen && l.Limits:
		return fmt.Sprintf("Answers come too late: %d attempts are out, %d may be, %d calls wait. %s", s.Probes, l.Places,
			l.Held, usual)
	case s.State == HalfOpen:
		return fmt.Sprintf("Answers come again: %d attempts are out, %d may be, %d calls wait. %s", s.Probes, l.Places,
			l.Held, usual)
	case l.Waiting > 0:
		return fmt.Sprintf("Nothing but failures since the last answer; %d calls wait for one, to be tried again. %s",
			l.Waiting, usual)
	case l.Late > 0:
		return fmt.Sprintf("%d of %d attempts that are out are late. %s", l.Late, l.InFlight, usual)
	}
	return usual
}

// rounded returns a duration with as many digits as anybody reads.
func rounded(d time.Duration) time.Duration {
	unit := time.Microsecond
	for unit < d/1000 {
		unit *= 10
	}
	return d.Round(unit)
}
