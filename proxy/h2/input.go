package h2

import (
	"encoding/binary"
	"io"
	"os"
	"sync"
	"time"

	"github.com/abate-go/abate"
)

// input is what belongs to the goroutine that reads.
type input struct {
	in      *chunk // what has been read; nil while there is nothing
	r       int    // what of it has been handled
	ready   func(fd uintptr) bool
	readErr error
	now     time.Duration // when the last read ended
	hungry  bool          // it filled all the space

	decoder
	begun    bool // the peer's first SETTINGS have come
	told     bool // agreed has been closed
	block    block
	skipped  uint32    // the last id that the client has left out
	fresh    []*Stream // whose handlers are to be started
	gone     []*Stream // whose hooks are to be called; pinned
	handlers sync.WaitGroup
	blocks   uint64 // how many heads and trailers have come to their end
	awaited  uint64 // what blocks was when the head that is expected was begun
	scratch  fields // for the heads of streams that nobody knows
}

// block is a head that has not come to its end.
type block struct {
	id     uint32 // 0 for none
	bytes  []byte
	end    bool // of the stream, behind it
	frames int
}

// readAll handles all frames until the connection ends. first is what has to come before them.
func (c *Conn) readAll(first string) {
	c.now = abate.Now()
	for {
		var err error
		if first, err = c.handlePreface(first); err == nil {
			err = c.handleAll()
		}
		if err != nil {
			c.mu.Lock()
			c.fail(err)
		}
		if c.endBatch() {
			return
		}
		if err := c.fill(); err != nil {
			c.mu.Lock()
			c.fail(c.readFailed(err))
			c.endBatch()
			return
		}
	}
}

// readFailed is why the connection ended, by an error of a read. mu is held.
func (c *Conn) readFailed(err error) error {
	switch {
	case c.broken != nil && (err != io.EOF || c.goneAway == nil):
		return c.broken
	case err != io.EOF:
		return &netError{"read", err}
	case c.open() > 0:
		return io.ErrUnexpectedEOF
	case c.goneAway != nil && c.goneAway.Code != NoError:
		return c.goneAway
	}
	return nil
}

// handlePreface checks the beginning of the connection, as far as it has come. It returns what is missing.
func (c *Conn) handlePreface(first string) (string, error) {
	if first == "" || c.in == nil {
		return first, nil
	}
	got := c.in.b[c.r:]
	n := min(len(got), len(first))
	if string(got[:n]) != first[:n] {
		return first, &ConnError{Code: ProtocolError, Problem: "the connection does not begin with the preface of HTTP/2"}
	}
	c.r += n
	return first[n:], nil
}

// handleAll handles the frames that are there in whole.
func (c *Conn) handleAll() error {
	if c.in == nil {
		return nil
	}
	for {
		f, n, err := nextFrame(c.in.b[c.r:])
		if n == 0 || err != nil {
			return err
		}
		if err := c.handleFrame(&f); err != nil {
			return err
		}
		c.r += n
	}
}

// nextFrame reads the frame at the beginning of b. n is its length, 0 if it has not come in whole.
func nextFrame(b []byte) (f frame, n int, err error) {
	if len(b) < frameOverhead {
		return f, 0, nil
	}
	length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if length > maxFrame {
		return f, 0, &ConnError{Code: FrameSizeError, Problem: "a frame is longer than SETTINGS_MAX_FRAME_SIZE"}
	}
	n = frameOverhead + length
	if len(b) < n {
		return f, 0, nil
	}
	f = frame{frameType(b[3]), b[4], binary.BigEndian.Uint32(b[5:]) & maxStreamID, b[frameOverhead:n]}
	return f, n, nil
}

// endBatch does what was put off until all that has been read was handled: streams are begun, those who wait are roused, and
// what is owed to the peer goes out. true: the connection has ended.
func (c *Conn) endBatch() (over bool) {
	c.callHooks()
	c.mu.Lock()
	c.startFresh()
	for c.due.first != nil {
		c.due.first.rouse()
	}
	if c.dead {
		c.mu.Unlock()
		return true
	}
	c.expect()
	if c.begun && !c.told {
		c.told = true
		close(c.agreed) // with what came in one read behind SETTINGS, which may be GOAWAY
	}
	if c.closing && !c.server || c.draining == saidLast {
		c.endIfOver()
		c.announce()
		return c.isDead()
	}
	c.flushAndUnlock() // it does not wait for a peer that may wait for this goroutine
	return false
}

func (c *Conn) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// expect notes what the peer has begun. mu is held.
func (c *Conn) expect() {
	if !c.begun {
		return // the limit that newConn has set is for all of it
	}
	var rest []byte
	if c.in != nil {
		rest = c.in.b[c.r:]
	}
	switch {
	case c.block.id != 0 || len(rest) >= frameOverhead && frameType(rest[3]) == headersFrame:
		if c.expecting != aHead || c.awaited != c.blocks { // each head has its own time, also the next one of the same stream
			c.expecting, c.awaited, c.expected = aHead, c.blocks, later(c.now, c.config.HeaderTimeout)
			c.alarmAt(c.expected)
		}
	case len(rest) > 0:
		c.expecting = aFrame
		c.alarmAt(later(c.now, c.config.StallTimeout))
	default:
		c.expecting = nothing
	}
}

// fill reads more.
func (c *Conn) fill() (err error) {
	c.tidyInput()
	if c.raw != nil {
		if err = c.raw.Read(c.ready); err == nil {
			err = c.readErr
		}
	} else {
		space := c.space()
		var n int
		n, err = c.nc.Read(space)
		c.hungry = n == len(space)
		if c.in.b = c.in.b[:len(c.in.b)+n]; n > 0 {
			err = nil
		}
	}
	c.now = abate.Now()
	c.mu.Lock()
	c.heard = c.now
	c.mu.Unlock()
	return err
}

// readReady reads what there is. The memory for it is taken when there is something: a connection that waits holds none.
func (c *Conn) readReady(fd uintptr) bool {
	n, err := readSocket(fd, c.space())
	if err == errWouldBlock {
		c.tidyInput()
		return false
	}
	c.in.b = c.in.b[:len(c.in.b)+n]
	switch {
	case err != nil:
		c.readErr = os.NewSyscallError("read", err)
	case n == 0:
		c.readErr = io.EOF
	default:
		c.readErr = nil
	}
	return true
}

// space is where the next bytes go.
func (c *Conn) space() []byte {
	if c.in == nil {
		class := 3 // more than one frame of the largest size
		if c.raw == nil && !c.hungry {
			class = 1 // it is held while waiting
		}
		c.in, c.r = newChunk(classes[class]), 0
	}
	return c.in.b[len(c.in.b):cap(c.in.b)]
}

// tidyInput gives back memory whose bytes have been handled, or has the rest of the frame fit that has begun.
func (c *Conn) tidyInput() {
	if c.in == nil {
		return
	}
	rest := c.in.b[c.r:]
	if len(rest) == 0 {
		c.in.put()
		c.in, c.r = nil, 0
		return
	}
	need := frameOverhead
	if len(rest) >= frameOverhead {
		need += int(rest[0])<<16 | int(rest[1])<<8 | int(rest[2])
	}
	if c.r+need <= cap(c.in.b) && len(c.in.b) < cap(c.in.b) {
		return
	}
	c.in.b = c.in.b[:copy(c.in.b, rest)]
	c.r = 0
	c.in = c.in.room(need - len(rest))
}
