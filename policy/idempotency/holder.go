package idempotency

import (
	"errors"
	"math"
	"time"
)

// Task is what a Holder asks of its store next.
type Task uint8

const (
	// Sleep: do nothing until one of the methods of the holder is called.
	Sleep Task = iota
	// ToRenew: Store.Renew.
	ToRenew
	// ToRestore: Restorer.Restore.
	ToRestore
	// ToComplete: Store.Complete with the answer.
	ToComplete
	// ToMark: Store.Complete with the answer's status only, as Truncated.
	ToMark
	// ToFail: Store.Fail.
	ToFail
	// Over: there is nothing left to do.
	Over
)

// Fate is the result of an attempt, as far as its holder knows.
type Fate uint8

const (
	// Undecided: the store has not confirmed anything yet. Nobody may be answered that the request was done.
	Undecided Fate = iota
	// Recorded: the store has confirmed that the request was done: no later attempt runs, and its answer may be given out.
	Recorded
	// Lost: another attempt has taken over, and its answer is the one that counts.
	Lost
	// LetGo: the attempt had no effect, and the next one may run.
	LetGo
)

// Holder decides what the holder of a key asks of its store, and when: it renews the lease while the work goes on, and
// then records its end, again and again, until the store has confirmed that or said that another attempt has taken
// over. It is given the time, asks for one thing at a time, and does nothing by itself. The package comment says why.
// Make one with NewHolder; it is not safe for concurrent use.
type Holder struct {
	lease    time.Duration
	until    time.Duration // before this nobody can have taken over: the store counted from a later moment
	due      time.Duration // of the next task
	renewAt  time.Duration // of the next renewal, while the end is being recorded
	giveUp   time.Duration // when an end that does not matter any more is left alone
	failures int           // in a row
	refusals int           // renewals that were taken while the answer was not
	restored int           // times that the key was made again
	phase    phase
	fate     Fate
	restores bool // the store is a Restorer
	missing  bool // the store does not know the key by our token: make it again first
	final    bool // the work is over, and its answer is to be recorded
	odd      bool // of the attempts to record it, where every second one is for its status only
	marked   bool // that has been confirmed
	unsure   bool // an attempt to record it had no reply: the store may have it
	failed   bool // the last thing asked was to record the end, and that failed
}

type phase uint8

const (
	working phase = iota
	recording
	releasing
	over
)

// Bounds of a Holder's efforts.
const (
	never = math.MaxInt64 // a time that does not come
	// slowest is the longest time between two tries to record an end.
	slowest = time.Second
	// refusalsToMark is how many renewals must have been taken between failures to store the answer before its status
	// alone is tried too, because the answer itself may be what cannot be stored.
	refusalsToMark = 3
	// restoresPerTry is how often a key is made again: a store that loses it each time is useless.
	restoresPerTry = 3
)

// NewHolder returns the holder of a key that Begin was asked for at the time sent. restores reports whether the store
// is a Restorer.
func NewHolder(sent, lease time.Duration, restores bool) Holder {
	return Holder{lease: lease, until: sent + lease, due: sent + lease/3, renewAt: sent + lease/3, restores: restores}
}

// Holds reports whether nobody can have taken over yet. If not, for example after a slow Begin, renew before the work
// begins.
func (h *Holder) Holds(now time.Duration) bool { return now < h.until }

// Fate returns what became of the attempt.
func (h *Holder) Fate() Fate {
	if h.marked && h.fate == Undecided {
		return Recorded
	}
	return h.fate
}

// Mark records that a part of the answer is about to be sent before the answer is complete. The store must record first
// that the request was done; Fate reports when it has. The work goes on, and Done follows.
func (h *Holder) Mark(now time.Duration) {
	if h.phase == working && !h.marked {
		h.phase, h.due, h.failures, h.failed = recording, now, 0, false
	}
}

// Unmark undoes Mark: the part is not sent, and the work goes on.
func (h *Holder) Unmark(now time.Duration) {
	if h.phase == recording && !h.final {
		h.phase, h.due = working, now
	}
}

// Done records that the work is over and had its effect: its answer is to be recorded.
func (h *Holder) Done(now time.Duration) {
	if h.phase == working || h.phase == recording {
		h.phase, h.final, h.due, h.failures, h.failed = recording, true, now, 0, false
		h.giveUp = now + h.lease
	}
}

// Failed records that the work is over and had no effect. After a Mark it is too late for that.
func (h *Holder) Failed(now time.Duration) {
	switch {
	case h.marked:
		h.end(Recorded)
	case h.phase != over:
		h.phase, h.due, h.failures, h.giveUp = releasing, now, 0, now+h.lease
	}
}

// Leave ends the holder without asking the store: nobody knows whether the work was done, and the lease runs out.
func (h *Holder) Leave() { h.end(h.Fate()) }

// Next returns what to do next and the earliest time for it.
func (h *Holder) Next() (Task, time.Duration) {
	switch {
	case h.phase == over:
		return Over, 0
	case h.phase == releasing:
		return ToFail, h.due
	case h.phase == working && (h.marked || h.fate == Lost):
		return Sleep, never
	case h.missing:
		return ToRestore, h.due
	case h.phase == working:
		return ToRenew, h.due
	case h.failed && !h.marked && h.due >= h.renewAt:
		return ToRenew, h.due
	case !h.final || !h.marked && h.odd && h.refusals >= refusalsToMark:
		return ToMark, h.due
	}
	return ToComplete, h.due
}

// Record records how a task that was begun at sent ended: with nil, ErrLost or another error. random is from 0 to 1.
func (h *Holder) Record(task Task, sent, now time.Duration, err error, random float64) {
	if h.phase == over {
		return
	}
	lost := errors.Is(err, ErrLost)
	if err == nil || lost {
		h.failures = 0
	} else {
		h.failures++
		h.due = now + h.backoff(random)
	}
	switch task {
	case ToRenew, ToRestore:
		h.held(task, sent, now, err, lost)
	case ToComplete, ToMark:
		h.recorded(task, now, err, lost)
	case ToFail:
		if err == nil || lost || now >= h.giveUp { // by then the lease is over
			h.end(LetGo)
		}
	}
}

// held records the result of a renewal.
func (h *Holder) held(task Task, sent, now time.Duration, err error, lost bool) {
	h.failed = false
	switch {
	case err == nil:
		h.missing = false
		h.until, h.renewAt = sent+h.lease, sent+h.lease/3
		if h.phase == working {
			h.due = h.renewAt
			return
		}
		h.due = now
		if task == ToRenew {
			h.refusals++
		}
	case lost && task == ToRenew && h.mayRestore():
		h.missing, h.due = true, now
	case lost && h.phase == working:
		h.missing, h.fate = false, Lost
	case lost && task == ToRestore:
		h.missing = false
		if !h.unsure {
			h.end(Lost)
			return
		}
		// What cannot be made again may be done, by our own token: the store says so when it is told once more.
		h.unsure, h.restored, h.due, h.renewAt = false, restoresPerTry, now, never
	case lost:
		h.due, h.renewAt = now, never // recording the end will show
	default:
		h.renewAt = now + h.lease/3
	}
}

// recorded handles the result of an attempt to record that the request was done.
func (h *Holder) recorded(task Task, now time.Duration, err error, lost bool) {
	h.odd = !h.odd
	switch {
	case err == nil && task == ToMark:
		h.marked = true
		switch {
		case h.phase == releasing: // it was under way when the work ended
			h.end(Recorded)
			return
		case !h.final: // the work goes on
			h.phase = working
			return
		}
		h.due, h.giveUp = now+h.lease/6, now+h.lease // for the answer itself, which did not pass
	case err == nil:
		h.end(Recorded)
	case h.phase != recording:
	case lost && h.marked:
		h.end(Recorded)
	case lost && h.mayRestore():
		h.missing, h.due = true, now
	case lost && !h.final:
		h.phase, h.fate = working, Lost
	case lost:
		h.end(Lost)
	case h.marked && now >= h.giveUp:
		h.end(Recorded)
	case h.final && now-h.giveUp >= Abandoned: // nobody remembers
		h.end(Undecided)
	default:
		h.failed, h.unsure = true, true
	}
}

// mayRestore reports whether to make the key again, and counts.
func (h *Holder) mayRestore() bool {
	if !h.restores || h.fate == Lost || h.restored == restoresPerTry {
		return false
	}
	h.restored++
	return true
}

func (h *Holder) end(f Fate) { h.phase, h.fate = over, f }

// backoff returns how long to wait after so many failures. It starts at a hundredth of the lease and doubles up to a
// sixth, but never above a second. At least half of it is waited; the rest is random, so that holders that failed
// together do not retry together.
func (h *Holder) backoff(random float64) time.Duration {
	most := max(min(h.lease/6, slowest), time.Millisecond)
	d := max(min(h.lease/100, 20*time.Millisecond), time.Millisecond)
	for n := 1; n < h.failures && d < most; n++ {
		d *= 2
	}
	d = min(d, most)
	return d/2 + time.Duration(random*float64(d/2))
}
