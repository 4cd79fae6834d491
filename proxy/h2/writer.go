package h2

import (
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/nowait"
)

// socket is what a connection reads from and writes to.
type socket struct {
	nc  net.Conn
	raw syscall.RawConn // of nc, if that is a plain socket
}

func newSocket(nc net.Conn) socket {
	if s, ok := nc.(syscall.Conn); ok && nowait.Possible {
		if raw, err := s.SyscallConn(); err == nil {
			return socket{nc, raw}
		}
	}
	return socket{nc: nc}
}

// writer writes the frames of the outbox to the socket. One goroutine does so at a time, without the mutex: who has
// more for the outbox meanwhile adds it and goes. The mutex of the connection guards all but the fields of an attempt.
type writer struct {
	socket
	mu     *sync.Mutex // of the connection
	out    *outbox
	line   *line // called on when there is room again
	alarm  *alarm
	limit  time.Duration // Config.StallTimeout
	failed func(error)   // called with the mutex held, and frees it

	mute     bool   // nothing is written any more
	flushing bool   // somebody writes
	handed   uint64 // how many bytes the socket may have got
	rest     *chunk // what the socket had no room for at once, from restFrom on
	restFrom int
	kick     chan struct{} // to the goroutine that writes to what is no plain socket; nil before it is needed
	waiting  bool          // for the socket
	since    time.Duration // when that wait began
	over     chan struct{} // to be closed when nobody writes any more; nil if nobody wants to know

	// Of an attempt to write to a plain socket without waiting; whoever writes owns them.
	attempt    func(fd uintptr) bool
	trying     []byte
	tried      int
	attemptErr error
}

// flushRounds is how often a goroutine writes what others have added meanwhile, before that is left to one of its own.
const flushRounds = 4

// idle reports whether frames wait and nobody writes.
func (w *writer) idle() bool { return w.out.frames != nil && !w.flushing }

// flushAndUnlock writes all that waits, unless somebody does so already: the more there is, the more goes into one
// write. On a plain socket it never waits for the peer: what there is no room for is left to a goroutine. shared says
// that others can go on now and may have something to add. The mutex is held, and free afterwards.
func (w *writer) flushAndUnlock(shared bool) {
	if !w.idle() || w.mute {
		w.mu.Unlock()
		return
	}
	w.flushing = true
	if shared && w.out.waiting() < flushFrom {
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
	for round := 0; w.raw != nil && w.out.frames != nil && round < flushRounds && !w.mute; round++ {
		b := w.out.take()
		w.handed += uint64(len(b.b)) // before the write: the peer may have read it, and gone, before the write returns
		w.mu.Unlock()
		n, err := w.try(b.b)
		w.mu.Lock()
		w.handed -= uint64(len(b.b) - n)
		if err != nil {
			b.put()
			w.end()
			w.failed(err)
			return
		}
		if n < len(b.b) {
			w.rest, w.restFrom = b, n
			break
		}
		b.put()
		w.line.callNext()
	}
	if w.rest == nil && w.out.frames == nil || w.mute {
		w.end()
	} else {
		w.leaveToGoroutine()
	}
	w.mu.Unlock()
}

// try writes what the plain socket has room for, and returns how much that was.
func (w *writer) try(p []byte) (n int, err error) {
	w.trying, w.tried, w.attemptErr = p, 0, nil
	if err = w.raw.Write(w.attempt); err == nil {
		err = w.attemptErr
	}
	return w.tried, err
}

func (w *writer) writeReady(fd uintptr) bool {
	for w.tried < len(w.trying) {
		n, err := nowait.Write(fd, w.trying[w.tried:])
		w.tried += n
		if err == nowait.ErrWouldBlock {
			break
		}
		if err != nil {
			w.attemptErr = err
			break
		}
	}
	return true
}

// end notes that nobody writes any more.
func (w *writer) end() {
	w.flushing = false
	if w.rest != nil {
		w.rest.put()
		w.rest = nil
	}
	if w.over != nil {
		close(w.over)
		w.over = nil
	}
}

// leaveToGoroutine has a goroutine go on that waits for the socket.
func (w *writer) leaveToGoroutine() {
	if w.raw != nil { // the exception
		go func() {
			w.mu.Lock()
			w.waitAndUnlock()
		}()
		return
	}
	if w.kick == nil {
		w.kick = make(chan struct{}, 1)
		go w.run(w.kick)
	}
	w.kick <- struct{}{}
}

func (w *writer) run(kick <-chan struct{}) {
	for range kick {
		w.mu.Lock()
		w.waitAndUnlock()
	}
}

// waitAndUnlock writes until nothing is left, and waits for the peer as long as that takes: see check. The mutex is
// held, and free afterwards.
func (w *writer) waitAndUnlock() {
	for (w.rest != nil || w.out.frames != nil) && !w.mute {
		if w.rest == nil {
			w.rest, w.restFrom = w.out.take(), 0
		}
		piece := w.rest.b[w.restFrom:min(w.restFrom+maxFrame, len(w.rest.b))]
		w.waiting, w.since = true, core.Now()
		w.handed += uint64(len(piece))
		w.alarm.set(later(w.since, w.limit))
		w.mu.Unlock()
		n, err := w.nc.Write(piece)
		w.mu.Lock()
		w.waiting = false
		if err != nil {
			w.end()
			w.failed(err)
			return
		}
		if w.restFrom += n; w.restFrom == len(w.rest.b) {
			w.rest.put()
			w.rest = nil
			w.line.callNext()
		}
	}
	w.end()
	w.mu.Unlock()
}

// check returns when to check again; an error if the peer takes nothing.
func (w *writer) check(now time.Duration) (next time.Duration, err error) {
	if !w.waiting {
		return core.NoDeadline, nil
	}
	due := later(w.since, w.limit)
	if now >= due {
		return 0, &netError{"the peer took nothing for " + w.limit.String(), nil}
	}
	return due, nil
}

// done returns a channel that is closed when nobody writes any more, nil if nobody does now.
func (w *writer) done() <-chan struct{} {
	if !w.flushing {
		return nil
	}
	w.over = make(chan struct{})
	return w.over
}

// release gives back all memory, and ends the goroutine that writes. The connection has ended.
func (w *writer) release() {
	w.mute = true
	w.out.release()
	if w.kick != nil {
		close(w.kick)
	}
}
