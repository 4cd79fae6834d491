package h2

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/untaken"
)

// Conn is an HTTP/2 connection, of either side. Its methods may be called by any goroutine, but Serve by one.
type Conn struct {
	nc     net.Conn
	raw    syscall.RawConn // of nc, if that is a plain socket
	config Config
	server bool
	handle func(*Stream)
	done   chan struct{}
	agreed chan struct{} // closed when the first SETTINGS of the peer are there

	input // of the goroutine that reads

	mu      sync.Mutex
	streams map[uint32]*Stream // those of which frames may come or go
	running int                // handlers
	heads   int                // bytes of the heads that they have
	workers []*worker          // that have nothing to do
	lastID  uint32             // of the streams that the client has opened, on either side
	dead    bool
	err     error // why it ended
	broken  error // nothing can be written; what was received is still being read

	closing   bool // it takes no new streams
	announced bool
	draining  drainStep
	drainAt   time.Duration
	goneAway  *ConnError // the GOAWAY of the peer

	output // frames to be sent

	toll
	window   int      // how much content the peer may still send
	received int      // of it has been read and is given back next
	recent   []uint32 // streams that a server ended before the peer knew, the latest; a ring
	recentAt int

	timer     *time.Timer
	alarm     time.Duration // when it goes off, or before
	timed     waiters       // with a time limit
	due       waiters       // to be roused when all that was read has been handled
	heard     time.Duration // when something was read last
	idleSince time.Duration
	pinging   bool // a sign of life was asked for
	pingedAt  time.Duration
	pings     int // asked for since the last content or head
	expecting expectation
	expected  time.Duration // when it has to be there
}

type drainStep uint8

const (
	not drainStep = iota
	saidFirst
	saidLast
)

// expectation is what the peer has begun and has to go on with.
type expectation uint8

const (
	nothing expectation = iota
	settings
	aHead
	aFrame
)

// netError is the end of a connection that the protocol knows nothing of.
type netError struct {
	problem string
	cause   error
}

func (e *netError) Error() string {
	if e.cause != nil {
		return "HTTP/2: " + e.problem + ": " + e.cause.Error()
	}
	return "HTTP/2: " + e.problem
}

func (e *netError) Unwrap() error { return e.cause }

var errClosed = errors.New("HTTP/2: the connection was closed on this side")

func newConn(nc net.Conn, config *Config, server bool) *Conn {
	c := &Conn{nc: nc, server: server, done: make(chan struct{}), agreed: make(chan struct{}), streams: make(map[uint32]*Stream), window: initialWindow}
	if config != nil {
		c.config = *config
	}
	c.config = c.config.withDefaults()
	if s, ok := nc.(syscall.Conn); ok && rawSockets {
		if raw, err := s.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	untaken.Bound(nc, c.config.StallTimeout)
	nc.SetDeadline(time.Time{})
	now := abate.Now()
	c.heard, c.idleSince, c.alarm = now, now, abate.NoDeadline
	c.decoder.max, c.encoder.max = tableSize, tableSize
	c.calm, c.calmAt, c.resets, c.resetsAt = patience, now, c.config.MaxResets, now
	c.peer = peerSettings{streams: assumedStreams, window: initialWindow, frame: maxFrame}
	c.sendWindow = initialWindow
	c.input.ready, c.output.attempt = c.readReady, c.writeReady
	c.expecting, c.expected = settings, later(now, c.config.HeaderTimeout)
	c.alarmAt(min(c.expected, later(now, c.config.IdleTimeout)))
	return c
}

// NewServer makes the server's side of a connection. handle is called for each request on a goroutine of its own, when all
// that one read has brought is there. A stream that it has not ended is reset when it returns (INTERNAL_ERROR). handle must
// not panic. Call Serve next.
func NewServer(nc net.Conn, config *Config, handle func(*Stream)) *Conn {
	c := newConn(nc, config, true)
	c.handle = handle
	c.greet()
	return c
}

// Serve reads the connection until it ends and all handlers have returned. begun is what has been read from it already, from
// the first byte of the client's preface on. The error is why it ended, nil if in good order. The connection is closed then.
func (c *Conn) Serve(begun []byte) error {
	c.mu.Lock()
	c.flushAndUnlock()
	c.in = newChunk(max(len(begun), classes[1]))
	c.in.b = append(c.in.b, begun...)
	c.readAll(preface)
	c.goodbye()
	c.handlers.Wait()
	return c.Err()
}

// NewClient begins the client's side of a connection on which the peer is known to speak HTTP/2. It does not wait for the
// peer: streams can be opened at once. It starts the goroutine that reads, which ends with the connection.
func NewClient(nc net.Conn, config *Config) (*Conn, error) {
	c := newConn(nc, config, false)
	c.mu.Lock()
	c.greet()
	c.flushAndUnlock()
	if err := c.Err(); err != nil {
		c.goodbye()
		return nil, err
	}
	go func() {
		c.readAll("")
		c.goodbye()
	}()
	return c, nil
}

// CanTake tells whether Open would find room for a stream now.
func (c *Conn) CanTake() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closing && len(c.streams) < c.peer.streams && c.hasRoom()
}

// Room is CanTake and Streams together.
func (c *Conn) Room() (streams int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams), !c.closing && len(c.streams) < c.peer.streams && c.hasRoom()
}

// Streams is how many streams are open.
func (c *Conn) Streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.streams)
}

// Idle tells since when there has been no stream; ok is false while there is one.
func (c *Conn) Idle() (since time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.idleSince, c.open() == 0
}

// open is how many streams there are, or handlers that have outlived theirs. mu is held.
func (c *Conn) open() int { return max(len(c.streams), c.running) }

// Drain has the connection take no new streams and end after the last one. A server tells its client in two steps, so that
// no request that is on its way is lost: RFC 9113 §6.8. It does not wait: see Done.
func (c *Conn) Drain() {
	c.mu.Lock()
	if c.dead || c.draining != not {
		c.mu.Unlock()
		return
	}
	c.drain(abate.Now())
	c.endIfOver()
	c.announce()
}

// drain begins to drain. mu is held.
func (c *Conn) drain(now time.Duration) {
	if !c.server {
		c.sayLast()
		return
	}
	c.draining, c.drainAt, c.closing = saidFirst, now, true
	c.makeRoom(2*frameOverhead + 16)
	c.out.b = appendGoAway(c.out.b, maxStreamID, NoError, "")
	c.out.b = appendPing(c.out.b, 0, drainPing)
	c.alarmAt(now + drainWait)
}

// sayLast tells the peer for good which streams are the last. mu is held.
func (c *Conn) sayLast() {
	c.draining, c.closing = saidLast, true
	last := c.lastID
	if !c.server {
		last = 0
	}
	c.makeRoom(frameOverhead + 8)
	c.out.b = appendGoAway(c.out.b, last, NoError, "")
}

// endIfOver ends the connection if it drains and there is nothing left, and writes out what there is. mu is held, and free
// afterwards.
func (c *Conn) endIfOver() {
	if c.open() > 0 || c.dead {
		c.flushAndUnlock()
		return
	}
	if c.draining == saidLast || !c.server && c.closing {
		c.fail(c.broken)
		return
	}
	c.flushAndUnlock()
}

// announce tells, once, that the connection takes no new streams.
func (c *Conn) announce() {
	c.mu.Lock()
	tell := c.closing && !c.announced && c.config.OnClosing != nil
	c.announced = c.announced || tell
	c.mu.Unlock()
	if tell {
		c.config.OnClosing(c)
	}
}

// Close ends the connection, and all its streams with it. It does not wait.
func (c *Conn) Close() {
	c.mu.Lock()
	c.fail(errClosed)
}

// Agreed is closed when the peer's first SETTINGS have come. Until then nobody knows how many streams it allows at once: what is
// opened before may be refused.
func (c *Conn) Agreed() <-chan struct{} { return c.agreed }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection ended: nil while it has not, or if in good order.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// fail ends the connection for everybody on this side; err is nil if in good order. The goroutine that reads sees to the
// socket. mu is held, and free afterwards.
func (c *Conn) fail(err error) {
	if c.dead {
		c.mu.Unlock()
		return
	}
	c.dead, c.closing, c.err = true, true, err
	if c.timer != nil {
		c.timer.Stop()
	}
	ours, said := err.(*ConnError)
	c.flushLast = err == nil || said // to the end of a frame in any case
	if said && !ours.Peer {
		c.makeRoom(frameOverhead + 8 + len(ours.Problem))
		c.out.b = appendGoAway(c.out.b, c.said(), ours.Code, ours.Problem)
	}
	var hooked []*Stream
	for id, s := range c.streams {
		s.fail(c.endOf(s))
		delete(c.streams, id)
		s.listed = false
		s.pins++
		hooked = append(hooked, s)
	}
	for _, line := range [...]queue{c.headers, c.senders} {
		for s := line.first; s != nil; s = s.behind {
			s.wr.rouse()
		}
	}
	c.dismissWorkers()
	close(c.done)
	c.mu.Unlock()
	c.nc.SetReadDeadline(time.Unix(1, 0))
	for _, s := range hooked {
		s.callHook()
	}
	c.unpin(hooked...)
	c.announce()
}

// said is the last stream that a GOAWAY names.
func (c *Conn) said() uint32 {
	if c.server {
		return c.lastID
	}
	return 0
}

// endOf is what the end of the connection means to a stream. mu is held.
func (c *Conn) endOf(s *Stream) *StreamError {
	e := &StreamError{Code: Cancel, Cause: c.err, Refused: !c.server && s.at >= c.handed}
	var why *ConnError
	if errors.As(c.err, &why) {
		e.Code = why.Code
	}
	if c.goneAway != nil && c.err == io.ErrUnexpectedEOF {
		e.Code, e.Peer, e.Cause = c.goneAway.Code, true, c.goneAway
	}
	return e
}

// goodbye writes out what there is and closes the socket, so that the peer gets all of it: what it has sent and nobody has
// read would have the kernel reset the connection.
func (c *Conn) goodbye() {
	c.mu.Lock()
	polite := c.flushLast
	var quiet chan struct{}
	if polite {
		c.nc.SetWriteDeadline(time.Now().Add(time.Second))
		c.flushAndUnlock()
		c.mu.Lock()
		if c.flushing {
			quiet = make(chan struct{})
			c.quiet = quiet
		}
	}
	c.mu.Unlock()
	if quiet != nil {
		<-quiet
	}
	if polite {
		linger(c.nc)
	}
	c.nc.Close()
	c.giveBack()
}

// linger reads for a moment what the peer still sends.
func linger(nc net.Conn) {
	half, ok := nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	nc.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	scratch := newChunk(classes[2])
	defer scratch.put()
	for read := 0; read < 256<<10; {
		n, err := nc.Read(scratch.b[:cap(scratch.b)])
		if read += n; err != nil {
			return
		}
	}
}
