package engine

import (
	"math"

	"github.com/abate-go/abate/sim/scenario"
)

// line is a waiting line that grows as needed: a ring, taken from either end.
type line struct {
	ring   []uint32 // its length is a power of two
	oldest uint32
	count  uint32
}

func (l *line) empty() bool { return l.count == 0 }

// cleared is the line without anybody, keeping its memory.
func (l *line) cleared() line { return line{ring: l.ring} }

// at is where somebody stands whom push has given a position.
func (l *line) at(position uint32) *uint32 { return &l.ring[position&uint32(len(l.ring)-1)] }

// push puts somebody at the end, and returns his position: he keeps it until he is taken.
func (l *line) push(v uint32) (position uint32) {
	if int(l.count) == len(l.ring) {
		shorter := *l
		l.ring = make([]uint32, max(16, 2*len(l.ring)))
		for i := range l.count {
			*l.at(l.oldest + i) = *shorter.at(l.oldest + i)
		}
	}
	position = l.oldest + l.count
	*l.at(position) = v
	l.count++
	return position
}

func (l *line) popOldest() uint32 {
	v := *l.at(l.oldest)
	l.oldest++
	l.count--
	return v
}

func (l *line) popNewest() uint32 {
	l.count--
	return *l.at(l.oldest + l.count)
}

// codel is the state of a queue that refuses what has waited too long, after RFC 8289: once waits have been above the
// target for an interval, it drops one request, and further ones ever faster, until a wait is below the target again.
type codel struct {
	above    int64 // when the wait will have been too long for an interval; 0 while it is not
	dropNext int64
	dropped  int32 // in this episode
	last     int32 // drops in the one before
	dropping bool
}

// drops decides about the request at the head of the line.
func (c *codel) drops(now, wait int64, behind int32, q *scenario.Queue) bool {
	target, interval := codelSettings(q)
	tooLong := false
	switch {
	case wait < target || behind == 0:
		c.above = 0
	case c.above == 0:
		c.above = now + interval
	default:
		tooLong = now >= c.above
	}
	switch {
	case !tooLong:
		c.dropping = false
		return false
	case !c.dropping:
		c.dropping = true
		count := int32(1)
		if again := c.dropped - c.last; again > 1 && now-c.dropNext < 16*interval {
			count = again // take up where the last episode ended
		}
		c.dropped, c.last = count, count
		c.dropNext = now + c.gap(interval)
		return true
	case now >= c.dropNext:
		c.dropped++
		c.dropNext += c.gap(interval)
		return true
	}
	return false
}

// gap is the time to the next drop: interval / √drops.
func (c *codel) gap(interval int64) int64 {
	return int64(float64(interval) / math.Sqrt(float64(c.dropped)))
}

// codelSettings are the queue's, or those of RFC 8289: 5 ms and 100 ms.
func codelSettings(q *scenario.Queue) (target, interval int64) {
	target, interval = int64(q.Target), int64(q.Interval)
	if target == 0 {
		target = 5e6
	}
	if interval == 0 {
		interval = 100e6
	}
	return target, interval
}
