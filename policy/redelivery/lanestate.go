package redelivery

import "time"

// LaneState is a lane at one moment.
type LaneState struct {
	Unfinished int           // pushed and not finished
	InFlight   int           // started, not released
	Released   int           // being forwarded
	Held       int           // waiting to be started again
	Ahead      int64         // offsets between the oldest unfinished record and the newest pushed
	Oldest     int64         // the offset of the oldest unfinished one; -1 for none
	HeadReady  time.Duration // when the oldest that has not started may; 0 for at once or none
	Stopped    time.Duration // until when nothing starts; 0 when it may
}

// State reads the lane. It looks at all records of the window: about 1 ns each.
func (l *Lane) State() LaneState {
	s := LaneState{Unfinished: l.unfinished, InFlight: l.inFlight, Released: l.released, Held: l.held, Oldest: -1,
		Stopped: l.stopped}
	if l.first == l.end {
		return s
	}
	s.Oldest = l.at(l.first).offset
	s.Ahead = l.last - s.Oldest
	for seq := l.first; seq < l.end; seq++ {
		if r := l.at(seq); r.phase.waits() {
			s.HeadReady = r.ready
			break
		}
	}
	return s
}
