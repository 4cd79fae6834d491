package h2

import (
	"errors"
	"time"

	"github.com/abate-go/abate/core"
)

// reader is the goroutine that reads a connection and does what the frames say. Nobody else knows it, so that it needs
// no lock for what it holds; it takes the mutex of the connection for everything else. Its methods that return an error
// end the connection by that.
type reader struct {
	conn  *Conn
	input input
	now   time.Duration // when the last read ended
	hpack decoder
	begun bool  // the peer's first SETTINGS have come
	told  bool  // Conn.agreed has been closed
	block block // a head that has begun
	// blocks is how many heads and trailers have come to their end; awaited is what it was when the head that is expected
	// was begun.
	blocks, awaited uint64
	scratch         fields // for the heads of streams that nobody knows

	// What is put off until all that was read has been handled:

	fresh []*Stream // whose handlers are to be started
	gone  []*Stream // whose hooks are to be called; pinned
}

// block is a head or trailer of which CONTINUATION frames are to come.
type block struct {
	id     uint32 // of its stream; 0 for none
	bytes  []byte
	end    bool // of the stream, behind it
	frames int
}

func newReader(c *Conn) *reader {
	r := &reader{
		conn: c, now: core.Now(), input: input{socket: c.writer.socket},
		hpack: decoder{table{max: tableSize}},
	}
	r.input.ready = r.input.readReady
	return r
}

// run handles all frames until the connection ends. first is what has to come before them, begun what has been read
// already.
func (r *reader) run(first string, begun []byte) {
	defer r.input.release()
	c := r.conn
	if len(begun) > 0 {
		r.input.bytes = newChunk(max(len(begun), classes[1]))
		r.input.bytes.b = append(r.input.bytes.b, begun...)
	}
	for {
		var err error
		if first, err = r.input.expect(first); err == nil {
			err = r.handleAll()
		}
		if err != nil {
			c.mu.Lock()
			c.fail(err)
		}
		if r.endBatch() {
			return
		}
		if err := r.fill(); err != nil {
			c.mu.Lock()
			c.fail(c.readFailed(err))
			r.endBatch()
			return
		}
	}
}

func (r *reader) fill() error {
	err := r.input.fill()
	r.now = core.Now()
	r.conn.mu.Lock()
	r.conn.pulse.heard = r.now
	r.conn.mu.Unlock()
	return err
}

// handleAll handles the frames that are there in whole.
func (r *reader) handleAll() error {
	for {
		f, n, err := nextFrame(r.input.rest())
		if n == 0 || err != nil {
			return err
		}
		if err := r.handleFrame(&f); err != nil {
			return err
		}
		r.input.handled += n
	}
}

// endBatch does what was put off until all that has been read was handled: streams are begun, those who wait are woken,
// and what is owed to the peer goes out. It reports whether the connection has ended.
func (r *reader) endBatch() (over bool) {
	c := r.conn
	r.callHooks()
	c.mu.Lock()
	r.startFresh()
	c.waits.wakeDue()
	if c.dead {
		c.mu.Unlock()
		return true
	}
	r.expect()
	if r.begun && !r.told {
		r.told = true
		close(c.agreed) // with what came in one read behind SETTINGS, which may be GOAWAY
	}
	if c.closing && !c.server || c.draining == saidLast {
		c.endIfOver()
		c.announce()
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.dead
	}
	c.flushAndUnlock() // it does not wait for a peer that may wait for this goroutine
	return false
}

// startFresh has the new streams handled, but for those that have been reset already. mu is held.
func (r *reader) startFresh() {
	for _, s := range r.fresh {
		if s.err != nil {
			s.release()
		} else {
			r.conn.startHandler(s)
		}
	}
	clear(r.fresh)
	r.fresh = r.fresh[:0]
}

// callHooks calls the hooks that were put off.
func (r *reader) callHooks() {
	if len(r.gone) == 0 {
		return
	}
	for _, s := range r.gone {
		s.callHook()
	}
	r.conn.unpin(r.gone...)
	clear(r.gone)
	r.gone = r.gone[:0]
}

// hookLater has the hook called at the end of the batch. mu is held.
func (r *reader) hookLater(s *Stream) {
	s.pins++
	r.gone = append(r.gone, s)
}

// expect notes what the peer has begun. mu is held.
func (r *reader) expect() {
	if !r.begun {
		return // the limit that newConn has set is for all of it
	}
	c, rest := r.conn, r.input.rest()
	switch {
	case r.block.id != 0 || len(rest) >= frameOverhead && frameType(rest[3]) == headersFrame:
		if c.pending.what != aHead || r.awaited != r.blocks { // each head has its own time, also the next of the same stream
			r.awaited = r.blocks
			c.pending = pending{aHead, r.now, later(r.now, c.config.HeaderTimeout)}
			c.alarm.set(c.pending.due)
		}
	case len(rest) > 0:
		if c.pending.what == nothing {
			c.pending.since = r.now
		}
		c.pending.what = aFrame
		c.alarm.set(later(r.now, c.config.StallTimeout))
	default:
		c.pending.what = nothing
	}
}

// progress notes that the peer has sent a head or content: it need not be asked for a sign of life for a while. mu is
// held.
func (r *reader) progress() {
	if c := r.conn; c.pulse.progress() {
		c.alarm.set(later(r.now, c.config.PingAfter))
	}
}

// charge counts a frame without a use. mu is held.
func (r *reader) charge(cost int) error {
	if err := r.conn.toll.charge(cost, r.now); err != nil {
		return err
	}
	if r.conn.out.waiting() > maxOut+maxOwed {
		return &ConnError{Code: EnhanceYourCalm, Problem: "the peer asks for more than it reads"}
	}
	return nil
}

// refuse resets a stream that the peer has opened and that is not in the table. mu is held.
func (r *reader) refuse(id uint32, code Code) error {
	r.conn.out.reset(id, code)
	r.conn.streams.remember(id)
	return r.charge(10)
}

// streamError resets a stream on which the peer broke the protocol. mu is held.
func (r *reader) streamError(s *Stream, code Code, problem string) error {
	s.reset(code, errors.New(problem))
	r.hookLater(s)
	return r.charge(10)
}
