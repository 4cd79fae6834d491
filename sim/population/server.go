package population

import (
	"math"
	"time"
)

// calendar returns the time that the server has been up: its clock stands still in outages. It is asked about moments
// in order.
type calendar struct {
	outages []Outage
	next    int   // the first outage that is not over
	down    int64 // ns of the outages before it
}

// at returns how long the server has been up at t, and the outage that lasts at t, or nil.
func (c *calendar) at(t int64) (up int64, outage *Outage) {
	for c.next < len(c.outages) && int64(c.outages[c.next].To) <= t {
		c.down += int64(c.outages[c.next].To - c.outages[c.next].From)
		c.next++
	}
	if c.next < len(c.outages) && int64(c.outages[c.next].From) <= t {
		o := &c.outages[c.next]
		return int64(o.From) - c.down, o
	}
	return t - c.down, nil
}

// real returns the moment at which the server will have been up for so long and is up: not before the moment asked
// about last.
func (c *calendar) real(up int64) int64 {
	t := up + c.down
	for i := c.next; i < len(c.outages) && t >= int64(c.outages[i].From); i++ {
		t += int64(c.outages[i].To - c.outages[i].From)
	}
	return t
}

const (
	never = math.MaxInt64

	// The server counts in parts of a nanosecond, so that a capacity of many millions per second is exact enough.
	fraction = 12
	nowhere  = 1 << 61 // so far behind that no run sees it: 156h
)

// unlimited stands for a server that nothing limits, in requests per second.
const unlimited = 1e12

func (c *Config) rate() float64 { return min(c.Capacity, unlimited) }

// server says of each attempt, when it arrives, when it will be answered: with one speed and a queue in order the
// future of a place in it is known.
type server struct {
	calendar
	noQueue bool
	service int64
	period  int64 // between two attempts taken, in parts of a ns
	free    int64 // when the next place is taken, on the calendar's clock, in parts of a ns
	room    int64 // how far ahead free may be for one more to join
}

func newServer(c *Config) server {
	s := server{calendar: calendar{outages: c.Outages}, noQueue: c.QueueLimit == 0, service: int64(c.ServiceTime)}
	s.period = int64(math.Round(float64(time.Second<<fraction) / c.rate()))
	switch {
	case s.noQueue:
		s.room = max(int64(c.Slot)<<fraction-s.period, 0)
	case c.QueueLimit < 0 || float64(c.QueueLimit)*float64(s.period) >= nowhere:
		s.room = never
	default:
		s.room = int64(c.QueueLimit) * s.period
	}
	return s
}

// arrive takes an attempt in at t and returns when it is answered, maybe never, or that it is refused at once.
func (s *server) arrive(t int64) (answer int64, refused bool) {
	up, outage := s.at(t)
	switch {
	case outage != nil && !outage.Hang:
		return 0, true
	case outage != nil && s.noQueue:
		return never, false
	}
	now := up << fraction
	s.free = max(s.free, now)
	ahead := s.free - now
	if ahead > s.room {
		return 0, true
	}
	s.free = min(s.free+s.period, 2*nowhere)
	if s.noQueue {
		return t + s.service, false
	}
	return s.real((now+ahead)>>fraction) + s.service, false
}
