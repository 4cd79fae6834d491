package kafkadrill

import (
	"fmt"
	"math"
	"time"

	"github.com/abate-go/abate/internal/drill"
)

// Result is what came of a drill. Fields are added, never renamed or removed. Times are in seconds.
type Result struct {
	Setup       Setup `json:"setup"`
	Interrupted bool  `json:"interrupted"`
	// of the guarded act: nothing lost, nothing twice, no dead letter, bounded load, drained in time
	Passed      bool        `json:"passed"`
	Missed      []string    `json:"missed"`      // why it is not
	LateSeconds float64     `json:"lateSeconds"` // the most that the drill fell behind its own schedule
	Acts        []ActResult `json:"acts"`
}

// Setup is what was run.
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

	Expectations []expectation `json:"expectations,omitempty"` // of the guarded act
	late         float64       // seconds that the load fell behind its schedule
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
		Broker: "embedded", RatePerSecond: c.Rate, CapacityPerSecond: c.Capacity(), Partitions: c.Partitions,
		BeforeSeconds: c.Before.Seconds(),
		OutageSeconds: c.Outage.Seconds(), AfterSeconds: c.After.Seconds(), WithinSeconds: c.Within.Seconds(),
		MostLoad: c.MostLoad,
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

// judge compares the guarded act, the last one, with what is expected of it.
func (r *Result) judge(c Config) {
	if r.Interrupted {
		return
	}
	a := &r.Acts[len(r.Acts)-1]
	a.Expectations = c.expectations(a)
	for _, e := range a.Expectations {
		if !e.Held {
			r.Missed = append(r.Missed, e.missed)
		}
	}
	r.Passed = len(r.Missed) == 0
}

// expectation is what is expected of an act, and what to say when it does not hold.
type expectation struct {
	drill.Expected
	missed string
}

// expectations are what the guarded act should do.
func (c Config) expectations(a *ActResult) (list []expectation) {
	expect := func(text string, held bool, value *float64, missed string, args ...any) {
		list = append(list, expectation{drill.Expected{Text: text, Held: held, Value: value}, fmt.Sprintf(missed, args...)})
	}
	count := func(n int, what, missed string) {
		value := float64(n)
		expect("no message is "+what, n == 0, &value, missed, n)
	}
	count(a.Left, "left", "%d messages are neither handled nor dead letters")
	count(a.DeadLetters, "a dead letter", "%d messages are dead letters")
	count(a.Twice, "handled more than once", "%d messages were handled more than once")
	expect(fmt.Sprintf("busiest second after the outage <= %.3g x before it", c.MostLoad), a.Load <= c.MostLoad, &a.Load,
		"the busiest second after the outage had %.2f times the load of the busiest before, more than %.2f", a.Load,
		c.MostLoad)
	inTime := a.DrainedSeconds != nil && *a.DrainedSeconds <= c.Within.Seconds()
	expect(fmt.Sprintf("backlog is worked off within %v", c.Within), inTime, a.DrainedSeconds,
		"the backlog was not worked off within %v", c.Within)
	return list
}

func (r *recorder) result(c Config, name string) *ActResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := sumOf(r.bins)
	a := &ActResult{
		Act: name, Written: total.written, Handled: total.handled, DeadLetters: total.dead, Attempts: total.attempts,
		Left: total.written - len(r.lastDone), LargestLateness: r.lateness.Seconds(),
	}
	for _, times := range r.handled {
		if times > 1 {
			a.Twice++
		}
	}
	if a.Written > 0 {
		a.PerMessage = float64(total.deliveries) / float64(a.Written)
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
		a.Series = append(a.Series, Point{
			AtSeconds: (time.Duration(from) * tick).Seconds(), Written: b.written, Attempts: b.attempts, Handled: b.handled,
			Dead: b.dead,
			Left: max(left, 0),
		})
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

// drained is how long after the outage the messages written before its end were done, and no more were left than before
// it; +Inf if that never was.
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
