package abatekafka

import (
	"time"

	"github.com/abate-go/abate/policy/redelivery"
	"github.com/twmb/franz-go/pkg/kgo"
)

// maxInLane bounds a window in bytes: a retry topic holds its records until they are due.
const maxInLane = 32 << 20

// window holds the records of a partition that were fetched and are not finished: those that may be delivered in a
// lane, and those behind them in a backlog. Every unfinished record of the lane has its slot. It has no lock: its
// partition has one.
type window struct {
	lane     *redelivery.Lane
	ring     ring
	pushed   uint64 // how many records have been put into the lane
	last     int64  // the offset of the last of them
	finished uint64 // the number behind the newest that is finished
	inLane   int64  // bytes of the unfinished records of the lane
	backlog  backlog
	fetched  int64 // the offset behind the last record that came
	end      int64 // of the log, as far as known
}

func newWindow(c redelivery.Config) window {
	lane := redelivery.LaneConfig{Concurrency: c.Concurrency, Window: c.Window, Order: c.Order}
	return window{lane: redelivery.NewLane(lane), end: -1}
}

// take puts what was fetched behind what is there. end is the offset behind the last record of the log.
func (w *window) take(records []*kgo.Record, end int64) {
	w.end = max(w.end, end)
	w.backlog.push(records)
	w.fetched = records[len(records)-1].Offset + 1
}

// full reports whether there is no room for the next record of the backlog.
func (w *window) full() bool {
	return w.lane.Room() <= 0 || w.inLane >= maxInLane
}

// next takes the next record out of the backlog, if there is room for it.
func (w *window) next() (rec *kgo.Record, ok bool) {
	if w.backlog.records == 0 || w.full() {
		return nil, false
	}
	return w.backlog.pop(), true
}

// admit puts one record into the lane.
func (w *window) admit(r pending, ready time.Duration) {
	first := w.lane.First()
	seq := w.lane.Push(redelivery.Item{Offset: r.rec.Offset, Key: r.key, Keyed: r.keyed, Ready: ready})
	w.ring.put(first, seq, slot{pending: r, ready: ready})
	w.inLane += sizeOf(r.rec)
	w.pushed, w.last = seq+1, r.rec.Offset
}

// finish ends a record.
func (w *window) finish(seq uint64) {
	w.finished = max(w.finished, seq+1)
	s := w.ring.at(seq)
	if s.rec != nil {
		w.inLane -= sizeOf(s.rec)
	}
	w.lane.Finish(seq)
	*s = slot{done: true}
}

// hold keeps a record until its time, as the end of its delivery asks for.
func (w *window) hold(seq uint64, end ending, now time.Duration) {
	s := w.ring.at(seq)
	if end.refused {
		s.refused++
	} else {
		s.held++
	}
	s.flooded = end.flooded
	if end.instead != nil {
		w.inLane += sizeOf(end.instead.Record) - sizeOf(s.rec)
		s.rec, s.message, s.held, s.refused = end.instead.Record, end.instead, 0, 0
		s.ready = now + end.delay // it is not overdue meanwhile
	}
	w.lane.Hold(seq, now+end.delay)
}

// idle reports whether the lane has nothing that is unfinished.
func (w *window) idle() bool { return w.lane.First() == w.pushed }

// gap starts what stands between records that are finished already: those could not be committed without it, and would
// be delivered again.
func (w *window) gap(now time.Duration) (seq uint64, ok bool) {
	if w.lane.First() >= w.finished {
		return 0, false
	}
	if seq, ok, _ = w.lane.Next(now); ok && seq >= w.finished {
		w.lane.Hold(seq, now)
		return 0, false
	}
	return seq, ok
}

// late is from when on a record counts as a backlog: at any moment there are some that have just come.
const late = time.Second

// behind is how many records are overdue. more are those that the log has behind what was fetched; those of a retry
// topic are due one after the other.
func (w *window) behind(now time.Duration, main bool, more int64) int64 {
	if w.headAge(now) <= late {
		return 0
	}
	behind := int64(max(w.due(now)-w.lane.State().InFlight, 0))
	if !main && w.ring.at(w.pushed-1).ready > now {
		return behind // what comes after it in a retry topic is due later still
	}
	return behind + int64(w.backlog.records) + more
}

// due is how many records of the lane could be delivered by now, or are being. What waits for the end of a flood of
// dead letters could not.
func (w *window) due(now time.Duration) (n int) {
	for seq := w.lane.First(); seq < w.pushed; seq++ {
		if s := w.ring.at(seq); !s.done && s.out == nil && !s.flooded && s.ready <= now {
			n++
		}
	}
	return n
}

// headAge is how long the oldest unfinished record has been due.
func (w *window) headAge(now time.Duration) time.Duration {
	if w.lane.State().Unfinished == 0 {
		return 0
	}
	return max(now-w.ring.at(w.lane.First()).ready, 0)
}

// prefix is how far the window would be finished if its forwards among these were, at most so many of them, and which
// they are.
func (w *window) prefix(queued map[*outgoing]bool, most int) (offset int64, ready []*outgoing) {
	for seq := w.lane.First(); seq < w.pushed; seq++ {
		s := w.ring.at(seq)
		switch {
		case s.done:
		case s.out != nil && queued[s.out] && len(ready) < most:
			ready = append(ready, s.out)
		default:
			return s.rec.Offset, ready
		}
	}
	return w.last + 1, ready
}
