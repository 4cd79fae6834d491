package abateadmin

import (
	"sync/atomic"
	"time"
)

// What the page remembers: each of the last span seconds by itself, and reasons in steps of ten.
const (
	span     = 300
	stepSize = 10
	steps    = span / stepSize
)

// A word holds the lap it is about, so that a place that is used again begins anew, and one or two counts: no lock, and
// nothing to do while nobody counts.
const (
	lapBits   = 20
	countBits = 22
	sumBits   = 2 * countBits
	countMask = 1<<countBits - 1
	sumMask   = 1<<sumBits - 1
	lapMask   = 1<<lapBits - 1
	// room is left below the highest count for all that add at the same moment: a count that stops is wrong, one that runs
	// over into its neighbour is absurd.
	room = 1 << 14
)

// One of the first or of the second count of a word.
const (
	first  = 1 << countBits
	second = 1
)

// word is one place of a ring.
type word struct{ v atomic.Uint64 }

// add adds n, which is a multiple of first, or second.
func (w *word) add(lap, n uint64) {
	for {
		old := w.v.Load()
		if old>>sumBits != lap {
			if w.v.CompareAndSwap(old, lap<<sumBits+n) {
				return
			}
			continue
		}
		if old&countMask < countMask-room && old>>countBits&countMask < countMask-room {
			w.v.Add(n)
		}
		return
	}
}

// sum adds n to a word that holds one large number. At half of what fits it stops.
func (w *word) sum(lap, n uint64) {
	n = min(n, sumMask>>10)
	for {
		old := w.v.Load()
		if old>>sumBits != lap {
			if w.v.CompareAndSwap(old, lap<<sumBits+n) {
				return
			}
			continue
		}
		if old&sumMask < sumMask/2 {
			w.v.Add(n)
		}
		return
	}
}

// counts reads both counts, if they are about that lap.
func (w *word) counts(lap uint64) (a, b int) {
	v := w.v.Load()
	if v>>sumBits != lap {
		return 0, 0
	}
	return int(v >> countBits & countMask), int(v & countMask)
}

// total reads one large number.
func (w *word) total(lap uint64) int {
	v := w.v.Load()
	if v>>sumBits != lap {
		return 0
	}
	return int(v & sumMask)
}

// oneSecond is what happened in one second.
type oneSecond struct {
	sent     word // first attempts, extra attempts
	ended    word // calls that went well, calls that failed
	refused  word // calls refused without an attempt, and calls that got no further attempt
	answered word // attempts that came back, and those of them that failed
	spent    word // on those, in microseconds
}

// base makes times positive: their origin is arbitrary, and may be in the future. It is a whole number of seconds.
const base = 1<<62 - 1<<62%time.Second

// place finds the second of a time of the events' clock.
func place(at time.Duration) (lap uint64, index int) {
	s := (uint64(at) + uint64(base)) / uint64(time.Second)
	return s / span & lapMask, int(s % span)
}

// begin is when the second of a time began.
func begin(at time.Duration) time.Duration {
	return at - time.Duration((uint64(at)+uint64(base))%uint64(time.Second))
}

// history counts what happened to one name. Every method is given the time.
type history struct {
	seconds [span]oneSecond
	// reasons counts causes in steps of ten seconds: classes of attempts and reasons of refusals.
	reasons [steps][maxReasons]word
	since   [maxReasons]atomic.Int64 // when a cause was noted last
	notes   notes
	faults  faults
}

// maxReasons is how many causes a guard or a gate has.
const maxReasons = 16

func (h *history) at(at time.Duration) (lap uint64, s *oneSecond) {
	lap, i := place(at)
	return lap, &h.seconds[i]
}

func (h *history) cause(at time.Duration, which int) {
	lap, i := place(at)
	h.reasons[i/stepSize][which].add(lap, second)
}

// heard reports whether a cause was counted not long ago. 0 stands for never.
func (h *history) heard(at time.Duration, which int) bool {
	last := h.since[which].Load()
	if last != 0 && recent(at, last, time.Second) {
		return true // most often: nothing to write
	}
	h.since[which].Store(notZero(at))
	return last != 0 && recent(at, last, quietTime)
}

// tally is what happened in some seconds.
type tally struct {
	First, Extra  int // attempts
	Good, Bad     int // calls that ended
	Refused, Left int // calls without an attempt; calls that got no further one
	Answers, Fail int // attempts that came back, and those of them that failed
	Spent         int // microseconds, on the answers
}

func (t *tally) add(o tally) {
	t.First += o.First
	t.Extra += o.Extra
	t.Good += o.Good
	t.Bad += o.Bad
	t.Refused += o.Refused
	t.Left += o.Left
	t.Answers += o.Answers
	t.Fail += o.Fail
	t.Spent += o.Spent
}

// second reads the one that ended ago seconds before the one of now began; 0 is the last that is complete.
func (h *history) second(now time.Duration, ago int) (t tally) {
	lap, s := h.at(now - time.Duration(ago+1)*time.Second)
	t.First, t.Extra = s.sent.counts(lap)
	t.Good, t.Bad = s.ended.counts(lap)
	t.Refused, t.Left = s.refused.counts(lap)
	t.Answers, t.Fail = s.answered.counts(lap)
	t.Spent = s.spent.total(lap)
	return t
}

// window adds the last n complete seconds up.
func (h *history) window(now time.Duration, n int) (t tally) {
	for ago := range n {
		t.add(h.second(now, ago))
	}
	return t
}

// causes adds one cause up over the last n steps, the one of now included.
func (h *history) causes(now time.Duration, which, n int) (total int) {
	for ago := range n {
		lap, i := place(now - time.Duration(ago*stepSize)*time.Second)
		_, count := h.reasons[i/stepSize][which].counts(lap)
		total += count
	}
	return total
}
