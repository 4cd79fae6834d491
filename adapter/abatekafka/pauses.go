package abatekafka

import "time"

// The reasons why nothing of a partition is delivered that are not a stopReason: nothing lifts them but other records.
const (
	windowFull  = "window-full"
	poisonBatch = "poison-batch"
)

// pauses are the reasons why a partition starts nothing, and what was reported of them. It has no lock: its partition
// has one.
type pauses struct {
	until    [stopReasons]time.Duration
	reported string        // the reason that people know of; empty while the partition is not paused
	since    time.Duration // when it was paused
}

// stop starts nothing until then, for this reason; 0 lifts it. It returns the latest time of all reasons.
func (s *pauses) stop(why stopReason, until time.Duration) (latest time.Duration) {
	s.until[why] = until
	for _, t := range s.until {
		latest = max(latest, t)
	}
	return latest
}

// longest is the reason that holds longest; empty if there is none.
func (s *pauses) longest(now time.Duration) (reason string) {
	until := now
	for why, t := range s.until {
		if t > until {
			reason, until = stopReason(why).String(), t
		}
	}
	return reason
}

// begin notes that a reason is reported. It returns false if it was before.
func (s *pauses) begin(why string, now time.Duration) bool {
	if why == s.reported {
		return false
	}
	if s.reported == "" {
		s.since = now
	}
	s.reported = why
	return true
}

// over notes that the partition goes on, and returns what people know as the reason why it did not.
func (s *pauses) over() (reported string) {
	reported, s.reported = s.reported, ""
	return reported
}
