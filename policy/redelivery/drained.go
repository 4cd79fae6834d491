package redelivery

import (
	"math"
	"time"
)

// drained measures how a backlog gets smaller.
type drained struct {
	left  int64 // what was behind the last time
	from  int64 // and when the measurement began
	since time.Duration
	began bool
	rate  float64 // messages a second by which it got smaller; 0 until it is known, below 0 while it grows
}

// measureFor is what one measurement takes.
const measureFor = 10 * time.Second

// longestETA is the longest estimate that is reported.
const longestETA = 1000 * time.Hour

func (d *drained) behind(now time.Duration, due int64) {
	d.left = due
	switch passed := now - d.since; {
	case !d.began:
		d.began, d.from, d.since = true, due, now
	case passed >= measureFor:
		d.rate = float64(d.from-due) / passed.Seconds()
		if d.rate == 0 {
			d.rate = math.Copysign(math.SmallestNonzeroFloat64, -1) // measured, and it stands still
		}
		d.from, d.since = due, now
	}
}

// eta is how long the rest takes. spare is how many more a second may be delivered than usually come: what holds until
// something was measured.
func (d *drained) eta(spare float64) time.Duration {
	rate := d.rate
	if rate == 0 {
		rate = spare
	}
	if d.left == 0 || !(rate > 0) {
		return 0
	}
	return time.Duration(min(float64(d.left)/rate, longestETA.Seconds()) * float64(time.Second))
}
