package kernel

import "fmt"

// lane holds events that all lie the same delay in the future when they are
// pushed, and so come in the order of their pushes.
type lane struct {
	delay  int64
	newest int64 // time of the event pushed last
	events fifo
}

// Lane returns the number of the lane for one constant delay in ns, such as a
// timeout; a new delay opens a new lane. It panics on a negative delay. PushLane
// and Pop take constant time on a lane however many events are pending, but Pop
// looks at every lane: open lanes for the few delays that most events have.
func (q *Queue) Lane(delay int64) int {
	if delay < 0 {
		panic(fmt.Sprintf("kernel: lane with a delay of %d ns; a delay is 0 or more", delay))
	}
	for i := range q.lanes {
		if q.lanes[i].delay == delay {
			return i
		}
	}
	q.lanes = append(q.lanes, lane{delay: delay})
	q.heads = append(q.heads, forever)
	return len(q.lanes) - 1
}

// PushLane adds an event at now plus the lane's delay. Of lanes with an event at
// the same instant the one with the lower number comes first. It panics when now
// is before the event popped last or before an earlier push on that lane.
func (q *Queue) PushLane(lane int, now int64, target, meta uint32) {
	l := &q.lanes[lane]
	at := now + l.delay
	if now < q.now || at < l.newest {
		q.backwards(now)
	}
	l.newest = at
	if l.events.head == nil {
		q.heads[lane] = at
		if q.lanePending == 0 || at < q.laneAt || at == q.laneAt && lane < q.nextLane {
			q.nextLane, q.laneAt = lane, at
		}
	}
	q.add(&l.events, Event{at, target, meta})
	q.pending++
	q.lanePending++
}

// popLane removes the first event of the lanes.
func (q *Queue) popLane() Event {
	f, head := &q.lanes[q.nextLane].events, &q.heads[q.nextLane]
	events := f.head.events
	if f.head == f.tail {
		events = events[:f.used]
	}
	e := events[f.read]
	switch next := f.read + 1; {
	case next < len(events):
		f.read, *head = next, events[next].At
	default:
		q.release(f)
		if *head = forever; f.head != nil {
			*head = f.head.events[0].At
		}
	}
	q.pending--
	q.lanePending--
	q.now = e.At
	q.chooseLane()
	return e
}

// chooseLane finds the lane that comes next.
func (q *Queue) chooseLane() {
	if len(q.heads) == 1 && q.lanePending > 0 {
		q.laneAt = q.heads[0]
		return
	}
	q.nextLane, q.laneAt = -1, forever
	for i, at := range q.heads {
		if at < q.laneAt || q.nextLane < 0 && q.lanes[i].events.head != nil {
			q.nextLane, q.laneAt = i, at
		}
	}
}
