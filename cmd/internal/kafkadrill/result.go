package kafkadrill

import (
	"fmt"
	"math"
	"time"
)

// Result is what came of a drill. Fields are added, never renamed or removed. Times are in seconds.
type Result struct {
	Setup       Setup       `json:"setup"`
	Interrupted bool        `json:"interrupted"`
	Passed      bool        `json:"passed"`      // of the guarded act: nothing lost, nothing twice, no dead letter, bounded load, drained in time
	Missed      []string    `json:"missed"`      // why it is not
	LateSeconds float64     `json:"lateSeconds"` // the most that the drill fell behind its own schedule
	Acts        []ActResult `json:"acts"`
}

// Setup is what was played.
type Setup struct {
	Broker            string    `json:"broker"` // "embedded" or the addresses
	RatePerSecond     float64   `json:"ratePerSecond"`
	CapacityPerSecond float64   `json:"capacityPerSecond"`
	Partitions        int       `json:"partitions"`
	BeforeSeconds     float64   `json:"beforeSeconds"`
	OutageSeconds     float64   `json:"outageSeconds"`
	AfterSeconds      float64   `json:"afterSeconds"`
	WithinSeconds     float64   `json:"withinSeconds"`
	MostLoad          float64   `json:"mostLoad"`
	TierSeconds       []float64 `json:"tierSeconds"`
}

// ActResult is what came of one act.
type ActResult struct {
	Act             string   `json:"act"`
	Written         int      `json:"written"`
	Handled         int      `json:"handled"`      // messages, at least once
	Twice           int      `json:"handledTwice"` // of those: more than once
	DeadLetters     int      `json:"deadLetters"`  // messages
	Left            int      `json:"left"`         // neither, at the end
	PerMessage      float64  `json:"deliveriesPerMessage"`
	Attempts        int      `json:"attempts"`            // requests at the service
	PeakBefore      float64  `json:"peakBeforePerSecond"` // attempts in the busiest second before the outage
	PeakAfter       float64  `json:"peakAfterPerSecond"`  // from the end of the outage until the backlog was worked off
	Load            float64  `json:"load"`                // PeakAfter / PeakBefore
	DrainedSeconds  *float64 `json:"drainedSeconds"`      // after the outage; null: never
	LargestLateness float64  `json:"largestLatenessSeconds"`
	Series          []Point  `json:"series"`
}

// Point is one second of an act.
type Point struct {
	AtSeconds float64 `json:"atSeconds"`
	Written   int     `json:"written"`
	Attempts  int     `json:"attempts"`
	Handled   int     `json:"handled"`
	Dead      int     `json:"deadLetters"`
	Left      int     `json:"left"`
}

func (c Config) setup() Setup {
	s := Setup{
		Broker: "embedded", RatePerSecond: c.Rate, CapacityPerSecond: c.Capacity(), Partitions: c.Partitions, BeforeSeconds: c.Before.Seconds(),
		OutageSeconds: c.Outage.Seconds(), AfterSeconds: c.After.Seconds(), WithinSeconds: c.Within.Seconds(), MostLoad: c.MostLoad,
	}
	if len(c.Brokers) > 0 {
		s.Broker = fmt.Sprint(c.Brokers)
	}
	if p, err := policyOf(Guarded); err == nil {
		for _, d := range delays(&p) {
			s.TierSeconds = append(s.TierSeconds, d.Seconds())
		}
	}
	return s
}

// result reads the recorders.
func (d *drill) result(interrupted bool) *Result {
	r := &Result{Setup: d.c.setup(), Interrupted: interrupted, Missed: []string{}}
	for _, a := range d.acts {
		r.Acts = append(r.Acts, a.recorder.result(d.c, a.name))
	}
	if !interrupted {
		r.Missed = append(r.Missed, d.c.missed(&r.Acts[len(r.Acts)-1])...)
		r.Passed = len(r.Missed) == 0
	}
	return r
}

// missed is what the guarded act should have done and did not.
func (c Config) missed(a *ActResult) (list []string) {
	refuse := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	refuse(a.Left == 0, "%d messages are neither handled nor dead letters", a.Left)
	refuse(a.DeadLetters == 0, "%d messages are dead letters", a.DeadLetters)
	refuse(a.Twice == 0, "%d messages were handled more than once", a.Twice)
	refuse(a.Load <= c.MostLoad, "the busiest second after the outage had %.2f times the load of the busiest before, more than %.2f", a.Load, c.MostLoad)
	refuse(a.DrainedSeconds != nil && *a.DrainedSeconds <= c.Within.Seconds(), "the backlog was not worked off within %v", c.Within)
	return list
}

// result sums an act up.
func (r *recorder) result(c Config, name string) ActResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := ActResult{Act: name, Written: r.total.written, Handled: r.total.handled, DeadLetters: r.total.dead, Attempts: r.total.attempts,
		Left: r.total.written - len(r.lastDone), LargestLateness: r.lateness.Seconds()}
	for _, times := range r.handled {
		if times > 1 {
			a.Twice++
		}
	}
	if a.Written > 0 {
		a.PerMessage = float64(r.total.deliveries) / float64(a.Written)
	}
	begin, end := int(c.Before/tick), int((c.Before+c.Outage)/tick)
	last := len(r.bins)
	if s := r.drained(c); !math.IsInf(s, 1) {
		a.DrainedSeconds = &s
		last = end + int(s*float64(time.Second/tick)) + 1
	}
	a.PeakBefore, a.PeakAfter = r.busiest(0, begin), r.busiest(end, last)
	if a.PeakBefore > 0 {
		a.Load = a.PeakAfter / a.PeakBefore
	}
	left := 0
	for from := 0; from < len(r.bins); from += int(time.Second / tick) {
		b := sumOf(r.bins[from:min(from+int(time.Second/tick), len(r.bins))])
		left += b.written - b.handled - b.dead
		a.Series = append(a.Series, Point{AtSeconds: (time.Duration(from) * tick).Seconds(), Written: b.written, Attempts: b.attempts, Handled: b.handled, Dead: b.dead, Left: max(left, 0)})
	}
	return a
}

// busiest is the most attempts within any second of some bins.
func (r *recorder) busiest(from, to int) float64 {
	width, most, now := int(time.Second/tick), 0, 0
	to = min(to, len(r.bins))
	for i := from; i < to; i++ {
		now += r.bins[i].attempts
		if i-width >= from {
			now -= r.bins[i-width].attempts
		}
		most = max(most, now)
	}
	return float64(most)
}

// drained is how long after the outage the messages written before its end were done, and no more were left than before it; +Inf if that never was.
func (r *recorder) drained(c Config) float64 {
	over := c.Before + c.Outage
	last := over
	for id, at := range r.writes {
		done, ok := r.lastDone[id]
		switch {
		case at >= over:
		case !ok:
			return math.Inf(1)
		default:
			last = max(last, done)
		}
	}
	left, usual := 0, 0
	for i, b := range r.bins {
		left += b.written - b.handled - b.dead
		at := time.Duration(i) * tick
		switch {
		case at < c.Before:
			usual = max(usual, left)
		case at >= over && left <= usual:
			return (max(last, at) - over).Seconds()
		}
	}
	return math.Inf(1)
}
