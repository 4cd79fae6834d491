package kernel

import (
	"fmt"
	"math"
	"math/bits"
)

const (
	digitBits = 5 // a time is read as 13 digits of 5 bits
	slots     = 1 << digitBits
	levels    = (64 + digitBits - 1) / digitBits

	readyEvents = 64 // a power of two
	readyEnough = 16 // refill stops here
	forever     = math.MaxInt64
)

// Queue holds the events that have not happened yet. Pop returns them by time;
// events of one instant come in the order of their pushes. The zero value is an
// empty queue at time 0, ready for use by one goroutine.
//
// It is a radix heap. A time belongs to the level of the highest digit in which it
// differs from base, and there to the slot of that digit. As time never runs
// backwards, the earliest events always lie in the lowest slot of the lowest level,
// and only that one is ever spread over the levels below. What is about to happen
// is kept sorted in a short run, which saves the last few levels.
type Queue struct {
	// LanesFirst lets events of lanes happen before the other events of the same
	// instant. By default they happen after them: lanes hold timeouts, and an
	// answer that comes at the very instant of its timeout is in time.
	LanesFirst bool

	now   int64 // time of the last Pop: nothing earlier may be pushed
	limit int64 // everything earlier than limit is in the run
	base  int64 // at or before now, and not after anything in the slots

	first, last int // the run is ready[first:last]
	ready       [readyEvents]Event

	filledLevels uint32 // bit l: level l has events
	filledSlots  [levels]uint32
	slot         [levels][slots]fifo

	lanes    []lane
	heads    []int64 // time of each lane's first event, forever when it is empty
	nextLane int     // the lane whose first event comes first, when lanePending > 0
	laneAt   int64   // its time, when lanePending > 0

	pending     int // all events
	lanePending int // events in lanes
	free        [pageClasses]*page
	pages       [pageClasses]int // ever allocated
}

// Len returns the number of pending events, lanes included.
func (q *Queue) Len() int { return q.pending }

// Push adds an event at the given time. It panics when that is before the event
// popped last: time does not run backwards, so the caller's sums are wrong.
func (q *Queue) Push(at int64, target, meta uint32) {
	if at < q.now {
		q.backwards(at)
	}
	q.pending++
	e := Event{at, target, meta}
	if at < q.limit {
		q.insert(e)
		return
	}
	q.file(e)
}

func (q *Queue) backwards(at int64) {
	panic(fmt.Sprintf("kernel: event pushed at %d ns, but it is %d ns already; push at or after the event popped last",
		at, q.now))
}

// file puts an event into the slot where it belongs.
func (q *Queue) file(e Event) {
	l := level(e.At ^ q.base)
	s := digit(e.At, l)
	q.add(&q.slot[l][s], e)
	q.filledSlots[l] |= 1 << s
	q.filledLevels |= 1 << l
}

// level returns which digit is the highest that is not zero.
func level(x int64) uint { return uint(bits.Len64(uint64(x)|1)-1) / digitBits }

// digit returns digit l of a time.
func digit(at int64, l uint) uint { return uint(at>>(l*digitBits)) % slots }

// above clears the digits 0 to l of a time.
func above(at int64, l uint) int64 { return at &^ (1<<((l+1)*digitBits) - 1) }

// insert puts an event into the run, behind those of the same instant.
func (q *Queue) insert(e Event) {
	if q.last == readyEvents {
		q.makeRoom()
		if e.At >= q.limit {
			q.file(e)
			return
		}
	}
	const stride = 8
	i := q.last
	for i-q.first >= stride && q.ready[i-stride].At > e.At {
		i -= stride
	}
	for i > q.first && q.ready[i-1].At > e.At {
		i--
	}
	if i < q.last {
		copy(q.ready[i+1:q.last+1], q.ready[i:q.last])
	}
	q.ready[i] = e
	q.last++
}

// makeRoom moves the run to the front of its array, and its later half into the
// slots when it is long.
func (q *Queue) makeRoom() {
	q.last = copy(q.ready[:], q.ready[q.first:q.last])
	q.first = 0
	if q.last <= readyEvents*3/4 {
		return
	}
	if q.filledLevels == 0 {
		q.base = q.now
	}
	keep := q.last / 2
	for keep > 0 && q.ready[keep-1].At == q.ready[keep].At {
		keep-- // one instant is never split: its order would be lost
	}
	q.limit = q.ready[keep].At
	for _, e := range q.ready[keep:q.last] {
		q.file(e)
	}
	q.last = keep
}

// Pop removes the earliest event and returns it; ok is false when there is none.
func (q *Queue) Pop() (e Event, ok bool) {
	if q.first == q.last {
		if q.refill(); q.first == q.last {
			if q.lanePending > 0 {
				return q.popLane(), true
			}
			return Event{}, false
		}
	}
	next := &q.ready[uint(q.first)%readyEvents]
	if q.lanePending > 0 && (q.laneAt < next.At || q.laneAt == next.At && q.LanesFirst) {
		return q.popLane(), true
	}
	e = *next
	q.first++
	q.pending--
	q.now = e.At
	return e, true
}

// Coming returns up to n of the events that come next, without removing any: of the sorted run, and of the lane whose
// turn is next. More may lie between them. They are good until the next Pop or Push.
func (q *Queue) Coming(n int) (run, lane []Event) {
	run = q.ready[q.first:q.last]
	if q.lanePending > 0 {
		lane = q.lanes[q.nextLane].events.first()
	}
	return run[:min(n, len(run))], lane[:min(n, len(lane))]
}

// Reset empties the queue, forgets its lanes and goes back to time 0. It keeps the
// memory and LanesFirst.
func (q *Queue) Reset() {
	for l := range q.slot {
		for s := range q.slot[l] {
			q.empty(&q.slot[l][s])
		}
		q.filledSlots[l] = 0
	}
	q.filledLevels = 0
	for i := range q.lanes {
		q.empty(&q.lanes[i].events)
	}
	q.lanes, q.heads = q.lanes[:0], q.heads[:0]
	q.now, q.limit, q.base = 0, 0, 0
	q.first, q.last = 0, 0
	q.pending, q.lanePending = 0, 0
}

func (q *Queue) empty(f *fifo) {
	for f.head != nil {
		q.release(f)
	}
}
