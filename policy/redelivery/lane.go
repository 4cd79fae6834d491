package redelivery

import "time"

// Forever is a wait that only something else ends: a push, the end of a delivery.
const Forever time.Duration = 1<<63 - 1

// Item is one record of a partition.
type Item struct {
	Offset int64
	// Key is a hash of its key, if Keyed.
	Key   uint64
	Keyed bool
	// Ready is when it may be delivered, on the lane's clock; 0 for at once.
	Ready time.Duration
}

// LaneConfig is what a lane needs to know.
type LaneConfig struct {
	Concurrency, Window int // below 1 is taken as 1
	Order               Order
}

// Lane is one partition: which of its records is delivered next, and which offset may be committed. It is used by one
// goroutine at a time. Push, Next and Finish cost 10 to 20 ns each, with keys twice that, and allocate only while the
// window grows to its size.
//
// A record is pushed, started by Next, and then either finished (handled, or acknowledged by the topic it was forwarded
// to), or released (its place is free for another, but it is not finished yet), or held (it will be started again).
//
// Of the records that may start, the one that was pushed first starts first. One that is not ready keeps none behind it
// from starting, but for those with its key when the order is by key: such a record starts when all with its key before
// it are finished. Records without a key are free.
//
// How it works: the records stand in a ring. Those that come in the order of their times, nearly all, are started by a
// cursor that only moves forward; those that were held, that had to wait for their key, or whose time is before that of
// the one before them stand in two heaps: by time, and, once their time has come, by number. So no record is looked at
// twice, however many at the head are in flight. A lane takes 56 bytes for each record of the largest window it has
// had, and 16 for each that stood in a heap.
type Lane struct {
	concurrency, window int
	byKey               bool

	ring   []record // a power of two long; a record stands at its number
	first  uint64   // the oldest unfinished record
	cursor uint64   // all before it that wait stand in a heap, or behind one with their key
	end    uint64   // the number of the next record
	last   int64    // the offset of the newest record
	latest time.Duration
	pushed bool

	later laneHeap // not ready when last looked at
	due   laneHeap // ready: by number, their times are not looked at any more
	keys  keyTable // of each key with unfinished records the newest one

	unfinished, inFlight, released, held int
	stopped                              time.Duration
}

// record is a place of the ring.
type record struct {
	offset int64
	ready  time.Duration
	key    uint64
	next   uint64 // the record that waits behind this one, if follow
	phase  phase
	keyed  bool
	follow bool
}

// phase is where a record is on its way.
type phase uint8

const (
	inRow    phase = iota // it waits for the cursor
	behind                // for the one before it with its key
	inHeap                // for its time, or to be started out of order
	again                 // the same, after it was held
	started               // it is being delivered
	released              // it is being forwarded
	finished
)

func (p phase) waits() bool { return p <= again }

// NewLane makes the lane of a partition that has just been assigned.
func NewLane(c LaneConfig) *Lane {
	return &Lane{
		concurrency: max(c.Concurrency, 1),
		window:      max(c.Window, 1),
		byKey:       c.Order == ByKey || c.Order == ParkKey,
		ring:        make([]record, 16),
	}
}

func (l *Lane) at(seq uint64) *record { return &l.ring[seq&uint64(len(l.ring)-1)] }

// Room is how many more records may be pushed.
func (l *Lane) Room() int { return max(l.window-int(l.end-l.first), 0) }

// Push adds a record and returns its number: 0, 1, 2, ... Offsets ascend, gaps are fine. A record beyond Room is taken
// too: Room is what a driver goes by.
func (l *Lane) Push(it Item) (seq uint64) {
	if l.end-l.first == uint64(len(l.ring)) {
		l.grow()
	}
	seq = l.end
	l.end++
	l.last, l.pushed = it.Offset, true
	l.unfinished++
	r := l.at(seq)
	*r = record{offset: it.Offset, ready: max(it.Ready, 0), key: it.Key, keyed: it.Keyed && l.byKey}
	switch {
	case r.keyed && l.follows(r, seq):
		r.phase = behind
	case l.cursor < seq && r.ready < l.latest:
		l.queue(r, seq, inHeap)
	default:
		l.latest = r.ready
	}
	return seq
}

// follows puts a record behind the last one with its key, if there is one.
func (l *Lane) follows(r *record, seq uint64) bool {
	before, ok := l.keys.put(r.key, seq)
	if ok {
		b := l.at(before)
		b.next, b.follow = seq, true
	}
	return ok
}

func (l *Lane) queue(r *record, seq uint64, p phase) {
	r.phase = p
	if r.ready == 0 {
		l.due.push(entry{0, seq})
		return
	}
	l.later.push(entry{r.ready, seq})
}

// First is the number of the oldest unfinished record, or of the next one if all are finished: whoever keeps the
// records in a ring may forget those before it.
func (l *Lane) First() uint64 { return l.first }

// Next starts a record, if one may start now. If not, wait says when to ask again, Forever for after the next other
// call.
func (l *Lane) Next(now time.Duration) (seq uint64, ok bool, wait time.Duration) {
	if l.inFlight >= l.concurrency {
		return 0, false, Forever
	}
	if l.stopped > now {
		return 0, false, l.afterStop(now)
	}
	l.stopped = 0
	if len(l.later)+len(l.due) > 0 {
		l.ripen(now)
	}
	head := l.skip()
	switch {
	case len(l.due) > 0 && (l.due[0].seq < l.cursor || !head || !l.ready(now)):
		seq = l.due.pop().seq
	case head && l.ready(now):
		seq = l.cursor
		l.cursor++
	default:
		return 0, false, l.until(now, head)
	}
	r := l.at(seq)
	if r.phase == again {
		l.held--
	}
	r.phase = started
	l.inFlight++
	return seq, true, 0
}

// skip moves the cursor to the next record that waits for it, and reports whether there is one.
func (l *Lane) skip() bool {
	for l.cursor < l.end {
		if l.at(l.cursor).phase == inRow {
			return true
		}
		l.cursor++
	}
	return false
}

// ready reports whether the record at the cursor may start.
func (l *Lane) ready(now time.Duration) bool {
	at := l.at(l.cursor).ready
	return at <= now || at == 0
}

// ripen moves what has become ready from one heap to the other, and takes what was finished from their tops.
func (l *Lane) ripen(now time.Duration) {
	for len(l.later) > 0 && (l.later[0].ready <= now || !l.queued(l.later[0].seq)) {
		if seq := l.later.pop().seq; l.queued(seq) {
			l.due.push(entry{0, seq})
		}
	}
	for len(l.due) > 0 && !l.queued(l.due[0].seq) {
		l.due.pop()
	}
}

// queued reports whether what stands in a heap is still to be started: it may have been finished there.
func (l *Lane) queued(seq uint64) bool {
	if seq < l.first {
		return false
	}
	p := l.at(seq).phase
	return p == inHeap || p == again
}

// until is how long it takes until something may start, given that nothing may now.
func (l *Lane) until(now time.Duration, head bool) time.Duration {
	at := Forever
	if head {
		at = l.at(l.cursor).ready
	}
	if len(l.later) > 0 {
		at = min(at, l.later[0].ready)
	}
	if at == Forever {
		return Forever
	}
	return at - now
}

// afterStop is how long it takes until something may start in a lane that is stopped.
func (l *Lane) afterStop(now time.Duration) time.Duration {
	l.ripen(now)
	head := l.skip()
	switch {
	case l.stopped == Forever:
		return Forever
	case len(l.due) > 0 || head && l.ready(now):
		return l.stopped - now
	}
	return max(l.until(now, head), l.stopped-now)
}

// Release frees the place of a record that is being forwarded: another may start. It still keeps its offset from being
// committed, and its key from going on.
func (l *Lane) Release(seq uint64) {
	if seq < l.first || seq >= l.end {
		return
	}
	if r := l.at(seq); r.phase == started {
		r.phase = released
		l.inFlight--
		l.released++
	}
}

// Finish ends a record, started or released. One that still waits will not be started.
func (l *Lane) Finish(seq uint64) {
	if seq < l.first || seq >= l.end {
		return
	}
	r := l.at(seq)
	switch r.phase {
	case finished:
		return
	case started:
		l.inFlight--
	case released:
		l.released--
	case again:
		l.held--
	}
	hasTurn := r.keyed && r.phase != behind
	r.phase = finished
	l.unfinished--
	if hasTurn {
		l.pass(r)
	}
	for l.first < l.end && l.at(l.first).phase == finished {
		l.first++
	}
	l.cursor = max(l.cursor, l.first)
}

// pass lets the next record with the key of a finished one go on.
func (l *Lane) pass(r *record) {
	for r.follow {
		seq := r.next
		if r = l.at(seq); r.phase == behind {
			l.queue(r, seq, inHeap)
			return
		}
	}
	l.keys.remove(r.key)
}

// Hold gives a started or released record back: it will be started again, not before ready.
func (l *Lane) Hold(seq uint64, ready time.Duration) {
	if seq < l.first || seq >= l.end {
		return
	}
	r := l.at(seq)
	switch r.phase {
	case started:
		l.inFlight--
	case released:
		l.released--
	default:
		return
	}
	l.held++
	r.ready = max(ready, 0)
	l.queue(r, seq, again)
}

// Stop starts nothing until then: the circuit is open, or forwards fail. Only what is in flight goes on. 0 lifts it.
func (l *Lane) Stop(until time.Duration) { l.stopped = max(until, 0) }

// Committable is the offset that may be committed: that of the oldest unfinished record, or the one after the last.
// False before the first push.
func (l *Lane) Committable() (int64, bool) {
	if l.first < l.end {
		return l.at(l.first).offset, true
	}
	return l.last + 1, l.pushed
}

func (l *Lane) grow() {
	old := l.ring
	l.ring = make([]record, 2*len(old))
	for seq := l.first; seq < l.end; seq++ {
		*l.at(seq) = old[seq&uint64(len(old)-1)]
	}
}
