package h2

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/untaken"
)

// Conn is an HTTP/2 connection, of either side. Its methods may be called by any goroutine, but Serve by one.
type Conn struct {
	nc     net.Conn
	config Config
	server bool
	handle func(*Stream)
	done   chan struct{}
	agreed chan struct{} // closed when the first SETTINGS of the peer are there

	mu sync.Mutex // guards what follows

	closing   bool // it takes no new streams
	announced bool
	draining  drainStep
	drainAt   time.Duration
	goneAway  *ConnError // the GOAWAY of the peer
	broken    error      // nothing can be written; what was received is still being read
	dead      bool
	polite    bool  // it is dead, and what is left goes out all the same
	err       error // why it ended
	idleSince time.Duration

	streams streams
	workers workers
	toll    toll
	inflow  inflow
	peer    peerSettings

	out    outbox
	line   line
	writer writer

	alarm   alarm
	waits   waits
	pulse   pulse
	pending pending
}

type drainStep uint8

const (
	not drainStep = iota
	saidFirst
	saidLast
)

func newConn(nc net.Conn, config *Config, server bool) *Conn {
	if config == nil {
		config = &Config{}
	}
	full, now := config.withDefaults(), core.Now()
	if !full.Bounded {
		untaken.Bound(nc, full.StallTimeout)
	}
	nc.SetDeadline(time.Time{})
	c := &Conn{
		nc: nc, config: full, server: server, done: make(chan struct{}), agreed: make(chan struct{}),
		idleSince: now,
		streams:   streams{server: server, most: full.MaxStreams, open: make(map[uint32]*Stream)},
		toll:      newToll(full.MaxResets, now),
		inflow:    inflow{left: full.ConnWindow, size: full.ConnWindow},
		peer:      peerSettings{streams: assumedStreams, window: initialWindow},
		out:       outbox{hpack: encoder{table: table{max: tableSize}}},
		alarm:     alarm{at: core.NoDeadline},
		pulse:     pulse{after: full.PingAfter, limit: full.PingTimeout, heard: now},
		pending:   pending{what: settings, since: now, due: later(now, full.HeaderTimeout)},
	}
	c.alarm.ring = c.tick
	c.line = line{out: &c.out, window: initialWindow}
	c.writer = writer{
		socket: newSocket(nc), mu: &c.mu, out: &c.out, line: &c.line, alarm: &c.alarm, limit: full.StallTimeout,
		failed: c.writeFailed,
	}
	c.writer.attempt = c.writer.writeReady
	c.out.greeting(server, &c.config)
	c.alarm.set(min(c.pending.due, later(now, full.IdleTimeout))) // from here on, tick may run
	return c
}

// NewServer makes the server's side of a connection. For each request, handle is called on a goroutine of its own, once
// all that one read has brought is there. A stream that it has not ended is reset when it returns (INTERNAL_ERROR).
// handle must not panic. Call Serve next.
func NewServer(nc net.Conn, config *Config, handle func(*Stream)) *Conn {
	c := newConn(nc, config, true)
	c.handle = handle
	return c
}

// Serve reads the connection until it ends and all handlers have returned. begun is what has been read from it already,
// from the first byte of the client's preface on. The error is why it ended, nil if in good order. The connection is
// closed then.
func (c *Conn) Serve(begun []byte) error {
	c.mu.Lock()
	c.flushAndUnlock()
	newReader(c).run(preface, begun)
	c.goodbye()
	c.workers.all.Wait()
	return c.Err()
}

// NewClient begins the client's side of a connection on which the peer is known to speak HTTP/2. It does not wait for
// the peer: streams can be opened at once. It starts the goroutine that reads, which ends with the connection.
func NewClient(nc net.Conn, config *Config) (*Conn, error) {
	c := newConn(nc, config, false)
	c.mu.Lock()
	c.flushAndUnlock()
	if err := c.Err(); err != nil {
		c.goodbye()
		return nil, err
	}
	go func() {
		newReader(c).run("", nil)
		c.goodbye()
	}()
	return c, nil
}

// CanTake reports whether Open would find room for a stream now.
func (c *Conn) CanTake() bool {
	_, ok := c.Room()
	return ok
}

// Room returns what Streams and CanTake return, of one moment.
func (c *Conn) Room() (streams int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams.open), c.mayOpen() == nil && c.out.hasRoom()
}

// TakesConnect reports whether the server takes an extended CONNECT, as far as it has said.
func (c *Conn) TakesConnect() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peer.extended
}

// Streams returns how many streams are open. It takes no lock.
func (c *Conn) Streams() int { return int(c.streams.count.Load()) }

// Idle returns since when there has been no stream; ok is false while there is one, or something is coming that may
// begin one: see Begun.
func (c *Conn) Idle() (since time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idleSince, c.busy() == 0 && c.pending.what == nothing
}

// Begun returns since when the rest is awaited of a head or another frame of which a part has come, or of what the
// connection begins with; ok is false where nothing has begun, and while there is a stream.
func (c *Conn) Begun() (since time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending.since, c.busy() == 0 && c.pending.what != nothing
}

// Agreed is closed when the peer's first SETTINGS have come. Until then nobody knows how many streams it allows at
// once: what is opened before may be refused.
func (c *Conn) Agreed() <-chan struct{} { return c.agreed }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended: nil while it has not, or if in good order.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// The mutex is held in all that follows; what frees it says so.

// busy returns how many streams there are, or handlers that have outlived theirs.
func (c *Conn) busy() int { return max(len(c.streams.open), c.workers.running) }

// flushAndUnlock has all frames written that wait: see writer. The mutex is free afterwards.
func (c *Conn) flushAndUnlock() { c.writer.flushAndUnlock(c.busy() > 1) }

// wait waits until w is woken; false when the time is up first. Frames that wait to be written go out before. The mutex
// is free while it waits.
func (c *Conn) wait(w *waiter, until time.Duration) bool {
	w.waiting, w.late = true, false
	if until != core.NoDeadline {
		w.until = until
		c.waits.timed.add(w)
		c.alarm.set(until)
	}
	if c.writer.idle() {
		c.flushAndUnlock()
		c.mu.Lock()
	}
	for w.waiting {
		w.woken.Wait()
	}
	return !w.late
}

// enlist enters a new stream.
func (c *Conn) enlist(s *Stream) {
	s.inflow = inflow{left: c.config.StreamWindow, size: c.config.StreamWindow}
	s.send.window = c.peer.window
	if len(c.streams.open) == 0 && c.config.PingAfter > 0 {
		c.alarm.set(later(c.pulse.heard, c.config.PingAfter))
	}
	c.streams.add(s)
}

// unlist takes a stream from those of which frames may come or go.
func (c *Conn) unlist(s *Stream) {
	if !c.streams.remove(s) {
		return
	}
	if c.server && s.recvEnded && s.sendEnded {
		c.toll.creditReset()
	}
	if c.busy() == 0 {
		c.atRest()
	}
}

// atRest notes that there are no streams.
func (c *Conn) atRest() {
	c.idleSince = core.Now()
	if c.config.IdleTimeout > 0 {
		c.alarm.set(later(c.idleSince, c.config.IdleTimeout))
	}
}

// giveBack lets the peer send so much more content on the connection, and reports whether it is to hear of it now.
func (c *Conn) giveBack(n int) (told bool) {
	more := c.inflow.giveBack(n)
	if more == 0 || c.dead {
		return false
	}
	c.out.window(0, more)
	return true
}

// unpin ends the use that the goroutine that reads had for streams. The mutex is not held.
func (c *Conn) unpin(list ...*Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range list {
		if s.pins--; s.pins == 0 && s.finished {
			s.recycle()
		}
	}
}

var errClosed = errors.New("HTTP/2: the connection was closed on this side")
