package h2

import (
	"runtime"
	"time"

	"github.com/abate-go/abate"
)

// output is what a connection sends. The mutex of the connection guards it.
type output struct {
	out   *chunk // frames that nobody writes yet; nil for none
	taken uint64 // bytes that have left out to be written
	// handed is how many bytes the socket may have got.
	handed uint64

	flushing  bool   // somebody writes: whoever has more puts it into out and goes
	rest      *chunk // what the socket had no room for at once, from restFrom on
	restFrom  int
	kick      chan struct{} // to the goroutine that writes to what is no plain socket; nil before it is needed
	writing   bool          // it waits
	wroteAt   time.Duration // since when
	flushLast bool          // the connection has ended, what is left goes out all the same
	quiet     chan struct{} // to be closed when nobody writes any more

	attempt   func(fd uintptr) bool // one write that does not wait
	trying    []byte
	tried     int
	failedTry error

	encoder
	peer       peerSettings
	sendWindow int
	turn       *Stream // has been called and may send
	senders    queue   // those that wait for the window of the connection, or for room in out
	headers    queue   // those that wait for room in out, and need no window
}

type peerSettings struct {
	streams int // at once
	window  int // of a new stream
	frame   int
}

// assumedStreams is how many streams a server is thought to take before it has said so.
const assumedStreams = 100

// silentStreams is how many one is given whose SETTINGS name no limit, as those of grpc-go do: RFC 9113 has none then, and a pool of
// connections is better off with some.
const silentStreams = 1000

const (
	// maxOut is how much may wait to be written. Heads and what the protocol demands may exceed it.
	maxOut = 64 << 10
	// flushFrom is how much has come together when it is written without being asked.
	flushFrom = 16 << 10
	// maxOwed is how much more than maxOut a peer may cause to be sent, by PING and the like, that reads nothing.
	maxOwed = 64 << 10
)

// makeRoom makes room for n bytes in out. mu is held.
func (c *Conn) makeRoom(n int) { c.out = c.out.room(n) }

// hasRoom tells whether content may be put into out. mu is held.
func (c *Conn) hasRoom() bool { return c.out == nil || len(c.out.b) < maxOut*3/4 }

// flushRounds is how often somebody writes what others have added meanwhile, before that is left to a goroutine of its own.
const flushRounds = 4

// flushAndUnlock has everything written that waits. If somebody does so already, that is all: the more there is to do, the
// more goes into one write. On a plain socket it never waits for the peer: what there is no room for is left to a goroutine.
// mu is held, and free afterwards.
func (c *Conn) flushAndUnlock() {
	if c.flushing || c.out == nil || c.mute() {
		c.mu.Unlock()
		return
	}
	c.flushing = true
	if c.open() > 1 && len(c.out.b) < flushFrom { // others that can go on now may have something to add
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for round := 0; c.raw != nil && c.out != nil && round < flushRounds && !c.mute(); round++ {
		b := c.takeOut()
		c.mu.Unlock()
		c.trying, c.tried, c.failedTry = b.b, 0, nil
		err := c.raw.Write(c.attempt)
		if err == nil {
			err = c.failedTry
		}
		n := c.tried
		c.mu.Lock()
		c.handed += uint64(n)
		if err != nil {
			b.put()
			c.endFlush()
			c.writeFailed(err)
			return
		}
		if n < len(b.b) {
			c.rest, c.restFrom = b, n
			break
		}
		b.put()
		c.callSender()
	}
	if c.rest == nil && c.out == nil || c.mute() {
		c.endFlush()
	} else {
		c.leaveToWriter()
	}
	c.mu.Unlock()
}

// mute tells whether nothing is written any more. mu is held.
func (c *Conn) mute() bool { return c.broken != nil || c.dead && !c.flushLast }

// lastWords is how long a client reads on when it can no longer write.
const lastWords = time.Second

// writeFailed ends the connection. A client that has requests under way reads first what is there: the server's GOAWAY, or its
// answer, may have come before the reset that the write met, and it tells which requests may be sent again. mu is held, and free
// afterwards.
func (c *Conn) writeFailed(err error) {
	why := &netError{"write", err}
	if c.server || c.dead || c.open() == 0 {
		c.fail(why)
		return
	}
	c.broken, c.closing = why, true
	for s := c.headers.first; s != nil; s = s.behind { // those that have sent nothing go elsewhere
		s.wr.rouse()
	}
	c.nc.SetReadDeadline(time.Now().Add(lastWords)) // under the lock: a fail that follows ends the reading at once
	c.mu.Unlock()
	c.announce()
}

// takeOut takes all that waits, to write it.
func (c *Conn) takeOut() *chunk {
	b := c.out
	c.out = nil
	c.taken += uint64(len(b.b))
	return b
}

// endFlush notes that nobody writes any more. mu is held.
func (c *Conn) endFlush() {
	c.flushing = false
	if c.rest != nil {
		c.rest.put()
		c.rest = nil
	}
	if c.quiet != nil {
		close(c.quiet)
		c.quiet = nil
	}
}

// writeReady writes what the socket has room for.
func (c *Conn) writeReady(fd uintptr) bool {
	for c.tried < len(c.trying) {
		n, err := writeSocket(fd, c.trying[c.tried:])
		c.tried += n
		if err == errWouldBlock {
			break
		}
		if err != nil {
			c.failedTry = err
			break
		}
	}
	return true
}

// leaveToWriter has the goroutine go on that waits for the socket. mu is held.
func (c *Conn) leaveToWriter() {
	if c.raw != nil { // the exception
		go func() {
			c.mu.Lock()
			c.writeOut()
		}()
		return
	}
	if c.kick == nil {
		c.kick = make(chan struct{}, 1)
		go c.writer(c.kick)
	}
	c.kick <- struct{}{}
}

func (c *Conn) writer(kick <-chan struct{}) {
	for range kick {
		c.mu.Lock()
		c.writeOut()
	}
}

// writeOut writes until nothing is left, and waits for the peer as long as that takes: see lookAtOutput. mu is held, and free
// afterwards.
func (c *Conn) writeOut() {
	for (c.rest != nil || c.out != nil) && !c.mute() {
		if c.rest == nil {
			c.rest, c.restFrom = c.takeOut(), 0
		}
		piece := c.rest.b[c.restFrom:min(c.restFrom+maxFrame, len(c.rest.b))]
		c.writing, c.wroteAt = true, abate.Now()
		c.handed += uint64(len(piece))
		c.alarmAt(later(c.wroteAt, c.config.StallTimeout))
		c.mu.Unlock()
		n, err := c.nc.Write(piece)
		c.mu.Lock()
		c.writing = false
		if err != nil {
			c.endFlush()
			c.writeFailed(err)
			return
		}
		if c.restFrom += n; c.restFrom == len(c.rest.b) {
			c.rest.put()
			c.rest = nil
			c.callSender()
		}
	}
	c.endFlush()
	c.mu.Unlock()
}

// giveBack gives back all memory that the ended connection holds.
func (c *Conn) giveBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushLast = false
	if c.out != nil {
		c.out.put()
		c.out = nil
	}
	if c.in != nil {
		c.in.put()
		c.in = nil
	}
	if c.kick != nil {
		close(c.kick)
	}
}

// queue is a line of streams, first come, first served.
type queue struct{ first, last *Stream }

func (q *queue) join(s *Stream) {
	s.queued, s.behind = true, nil
	if q.last == nil {
		q.first = s
	} else {
		q.last.behind = s
	}
	q.last = s
}

func (q *queue) leave(s *Stream) {
	if !s.queued {
		return
	}
	s.queued = false
	if q.first == s {
		if q.first = s.behind; q.first == nil {
			q.last = nil
		}
		return
	}
	before := q.first
	for before.behind != s {
		before = before.behind
	}
	if before.behind = s.behind; s.behind == nil {
		q.last = before
	}
}

// line is the one that s waits in, if it does. mu is held.
func (c *Conn) line(s *Stream) *queue {
	if s.needsNoWindow {
		return &c.headers
	}
	return &c.senders
}

// callSender calls the first who waits, if there is something for it. One at a time: it calls the next. mu is held.
func (c *Conn) callSender() {
	if c.turn != nil || !c.hasRoom() {
		return
	}
	s := c.headers.first
	if s == nil && c.sendWindow > 0 {
		s = c.senders.first
	}
	if s == nil {
		return
	}
	c.line(s).leave(s)
	c.turn = s
	s.wr.rouse()
}

// pass ends the turn of s, or its place in the line. mu is held.
func (c *Conn) pass(s *Stream) {
	c.line(s).leave(s)
	if c.turn == s {
		c.turn = nil
	}
	c.callSender()
}
