package abatesql

import (
	"context"
	"database/sql/driver"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/policy/recycle"
)

// grace is for how long a caller waits for a connection that becomes free before it opens one, while connections are
// scarce: longer than most statements take, and shorter than anybody notices.
const grace = 20 * time.Millisecond

// shared is what the connections of one pool have in common. database/sql gives a connection that becomes free to those
// who wait because the pool is at its maximum, and not to those who wait in Connect. So the connection itself looks for
// one of those, when database/sql asks it whether it is valid before it goes back to the pool: it says no, and the one
// below it goes on under another name. It loses its age for SetConnMaxLifetime by that.
type shared struct {
	recycler recycle.Recycler
	waiting  atomic.Int32 // how many there are in line
	open     atomic.Int32 // connections

	mu   sync.Mutex
	line []*waiter // who came first is the first
}

// waiter is a caller in Connect.
type waiter struct {
	freed    chan *conn // has room for one
	leave    func()     // ends its waiting in the guard
	dialling bool       // it opens one itself now; guarded by shared.mu
}

// join puts a caller at the end of the line.
func (s *shared) join(leave func()) *waiter {
	w := &waiter{freed: make(chan *conn, 1), leave: leave}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(s.line, w)
	s.waiting.Add(1)
	return w
}

// quit takes a caller out of the line. It may have been given a connection meanwhile.
func (s *shared) quit(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.line, w); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
		s.waiting.Add(-1)
	}
}

func (s *shared) dials(w *waiter, now bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.dialling = now
}

// take reports whether the caller was given a connection, or else has it opening one from now on.
func (s *shared) take(w *waiter) (given bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.dialling = len(w.freed) == 0
	return !w.dialling
}

// offer gives a connection that becomes free to the first who waits and is not opening one. It reports whether there
// was somebody: then the connection is theirs.
func (s *shared) offer(c *conn) bool {
	if s.waiting.Load() == 0 || c.statements > 0 { // what is prepared on a connection stays with it
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.line, func(w *waiter) bool { return !w.dialling })
	if i < 0 {
		return false
	}
	w := s.line[i]
	s.line = slices.Delete(s.line, i, i+1)
	s.waiting.Add(-1)
	w.freed <- c
	w.leave()
	return true
}

// wait waits for a connection that becomes free.
func (w *waiter) wait(ctx context.Context, most time.Duration) *conn {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case c := <-w.freed:
		return c
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// got returns the connection that the caller was given, if it was.
func (w *waiter) got() *conn {
	select {
	case c := <-w.freed:
		return c
	default:
		return nil
	}
}

// renew makes a new connection of one that another caller has finished with, as database/sql does before it uses one
// again. It returns nil, and closes it, if it turns out to be bad.
func (c *Connector) renew(ctx context.Context, old *conn) driver.Conn {
	if old.resetter != nil && old.resetter.ResetSession(ctx) != nil {
		_ = old.base.Close()
		return nil
	}
	return wrap(old.base, c, old.born)
}
