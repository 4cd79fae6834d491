package serving

import (
	"sync"
	"time"
)

// slowAfter is how long an operation on a client's connection lasts before it counts as waiting for the client. A
// write that finds room, and a read of what has come, copy memory: some microseconds. What may hold them up beside
// the client is the wait for a processor, and a goroutine of Go has that no longer than 10 ms before it is the
// next one's turn.
const slowAfter = 10 * time.Millisecond

// Watch finds the operations that wait for clients, for drivers that do not see the sockets: those that last. A
// driver has one for all its requests, so that an operation that does not wait costs two turns of a mutex and no
// timer. A timer runs for 10 ms at a time, while there are operations. The zero Watch is ready for use.
type Watch struct {
	mu    sync.Mutex
	first *Side // of those with an operation under way that is not known to wait
	round uint64
	armed bool
}

// Side is one side of the exchange with a client: what is read from it, or what is written to it. Its driver says
// when an operation begins and when it has ended. One that lasts waits for the client, and its slot is lent until
// it has ended. A client that was slow once is taken to be slow from then on: for its next operations on this side
// the slot is lent from their beginning, so that a thousand pieces do not hold it for a thousand times 10 ms. One
// goroutine at a time uses a Side. The mutex of the Watch guards it.
type Side struct {
	loan       *Loan
	prev, next *Side
	round      uint64 // in which the operation began
	listed     bool
	waits      bool // an operation is under way that waits
	slow       bool
}

// Begin says that an operation begins on s that may have to wait for the client. End must follow.
func (w *Watch) Begin(s *Side, l *Loan) {
	w.mu.Lock()
	if s.slow {
		s.waits = true
		w.mu.Unlock()
		l.Wait()
		return
	}
	s.loan, s.round = l, w.round
	w.link(s)
	arm := !w.armed
	w.armed = true
	w.mu.Unlock()
	if arm {
		// A new one each time: one that was made in a bubble of testing/synctest must not leave it.
		time.AfterFunc(slowAfter, w.ring)
	}
}

// End says that the operation has ended.
func (w *Watch) End(s *Side, l *Loan) {
	w.mu.Lock()
	if s.listed {
		w.unlink(s)
	}
	waited := s.waits
	s.waits = false
	w.mu.Unlock()
	if waited {
		l.Resume()
	}
}

// ring lends the slots of those whose operation has lasted for a whole round: for slowAfter, and twice that at most.
func (w *Watch) ring() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := w.first; s != nil; {
		following := s.next
		if s.round < w.round {
			w.unlink(s)
			s.waits, s.slow = true, true
			s.loan.Wait()
		}
		s = following
	}
	w.round++
	if w.armed = w.first != nil; w.armed {
		time.AfterFunc(slowAfter, w.ring)
	}
}

func (w *Watch) link(s *Side) {
	s.prev, s.next, s.listed = nil, w.first, true
	if w.first != nil {
		w.first.prev = s
	}
	w.first = s
}

func (w *Watch) unlink(s *Side) {
	if s.prev != nil {
		s.prev.next = s.next
	} else {
		w.first = s.next
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.prev, s.next, s.listed = nil, nil, false
}
