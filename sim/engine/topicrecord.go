package engine

import (
	"math"
	"time"

	"github.com/abate-go/abate/sim/expect"
)

// TopicRecord is what a fleet that consumes saw besides: its requests are the messages, answered when they are handled,
// failed when they are dead letters. Slices have one member per bin.
type TopicRecord struct {
	Deliveries []uint32      // messages given to a handler
	Dead       []uint32      // messages that became dead letters, or were dropped
	Left       []uint32      // messages that were written and are not done, at the end of the bin
	Lateness   [4]Histogram  // from when a message in a retry topic was due to its delivery, by the window of the delivery
	Drained    time.Duration // from the end of the trouble until all messages written before are done, or NeverDrained

	left uint32
}

// NeverDrained is TopicRecord.Drained where some message was never done.
const NeverDrained time.Duration = math.MaxInt64

func newTopicRecord(bins int) *TopicRecord {
	s := series{bins, make([]uint32, 3*bins)}
	return &TopicRecord{Deliveries: s.next(), Dead: s.next(), Left: s.next()}
}

// cut takes the bin away that is outside of the run.
func (t *TopicRecord) cut() {
	for _, s := range []*[]uint32{&t.Deliveries, &t.Dead, &t.Left} {
		*s = (*s)[:len(*s)-1]
	}
}

// with is two records as one; either may be nil.
func (t *TopicRecord) with(o *TopicRecord) *TopicRecord {
	if t == nil || o == nil {
		return either(t, o)
	}
	sum := newTopicRecord(len(t.Dead))
	for b := range sum.Dead {
		sum.Deliveries[b] = t.Deliveries[b] + o.Deliveries[b]
		sum.Dead[b] = t.Dead[b] + o.Dead[b]
		sum.Left[b] = t.Left[b] + o.Left[b]
	}
	for w := range sum.Lateness {
		sum.Lateness[w] = t.Lateness[w]
		sum.Lateness[w].Merge(&o.Lateness[w])
	}
	sum.Drained = max(t.Drained, o.Drained)
	return sum
}

func either(t, o *TopicRecord) *TopicRecord {
	if t == nil {
		return o
	}
	return t
}

// ofTopic is what an expectation measures of a fleet that consumes.
func (r *Record) ofTopic(x *expect.Expectation, f *FleetRecord, from, to int) float64 {
	t := f.Topic
	if t == nil {
		return math.NaN()
	}
	switch x.Measure {
	case "deadLetters":
		return sum(t.Dead, from, to)
	case "deliveries":
		return ratio(sum(t.Deliveries, from, to), sum(f.Offered, from, to))
	case "lag":
		return largest(t.Left, from, to)
	case "lateness":
		h := merged(&t.Lateness, x.Window)
		return h.Quantile(x.Quantile)
	case "drained":
		return r.drained(t)
	}
	return math.NaN()
}

// drained is the time from the end of the trouble until the messages written before it are done, and no more are left
// than there were at most before the trouble.
func (r *Record) drained(t *TopicRecord) float64 {
	_, before := r.bins(expect.Before)
	usual := largest(t.Left, 0, before)
	from, to := r.bins(expect.After)
	for b := from; b < to && t.Drained != NeverDrained; b++ {
		if float64(t.Left[b]) <= usual {
			return math.Max(t.Drained.Seconds(), (time.Duration(b)*r.Bin - r.End).Seconds())
		}
	}
	return math.Inf(1)
}

// load is the most that arrived at a service within any second of some bins, as a multiple of the same before the
// trouble.
func (r *Record) load(s *ServiceRecord, from, to int) float64 {
	_, before := r.bins(expect.Before)
	return ratio(r.busiest(s.Arrived, from, to), r.busiest(s.Arrived, 0, before))
}

// busiest is the largest sum of a series over any second, or any bin where they are longer; of all where they are
// fewer.
func (r *Record) busiest(series []uint32, from, to int) float64 {
	width := min(max(int(time.Second/r.Bin), 1), to-from)
	var most, now int64
	for b := from; b < to; b++ {
		now += int64(series[b])
		if b-width >= from {
			now -= int64(series[b-width])
		}
		most = max(most, now)
	}
	return float64(most)
}
