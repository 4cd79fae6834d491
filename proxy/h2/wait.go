package h2

import (
	"sync"
	"time"

	"github.com/abate-go/abate/core"
)

// waiter is one of the two waits that a stream can be in: for something to read, or for room to write. The mutex of the
// connection guards it.
type waiter struct {
	woken      sync.Cond
	until      time.Duration
	list       *waiterList // the list that it is in; nil for none
	next, prev *waiter
	waiting    bool
	late       bool // the wait ended because its time was up
}

// waiterList is a list of waiters. A waiter is in one at most.
type waiterList struct{ first *waiter }

func (l *waiterList) add(w *waiter) {
	w.list, w.prev, w.next = l, nil, l.first
	if l.first != nil {
		l.first.prev = w
	}
	l.first = w
}

func (w *waiter) unlink() {
	switch {
	case w.list == nil:
		return
	case w.prev != nil:
		w.prev.next = w.next
	default:
		w.list.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.list, w.next, w.prev = nil, nil, nil
}

func (w *waiter) wake() {
	if w.waiting {
		w.waiting = false
		w.unlink()
		w.woken.Signal()
	}
}

// waits are the waits on one connection that end by time, or soon. The mutex of the connection guards them.
type waits struct {
	timed waiterList // with a time limit
	due   waiterList // to be woken when all that was read has been handled
}

// wakeSoon ends the wait when all that was read has been handled: what w waits for is often followed by more.
func (l *waits) wakeSoon(w *waiter) {
	if w.waiting && w.list != &l.due {
		w.unlink()
		l.due.add(w)
	}
}

// wakeDue ends the waits that wakeSoon has put off.
func (l *waits) wakeDue() {
	for l.due.first != nil {
		l.due.first.wake()
	}
}

// expire ends the waits whose time is up, and returns when the next one is.
func (l *waits) expire(now time.Duration) (next time.Duration) {
	next = core.NoDeadline
	for w := l.timed.first; w != nil; {
		following := w.next
		if w.until <= now {
			w.late = true
			w.wake()
		} else {
			next = min(next, w.until)
		}
		w = following
	}
	return next
}
