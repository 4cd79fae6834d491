package h2

import (
	"errors"
	"time"

	"github.com/abate-go/abate"
)

var errStalled = errors.New("the peer left the window closed for too long")

// WriteHead writes the head of the answer, on the server's side; end if that is all of it. A length of 0 or more becomes its
// content-length. It goes out with what follows: see Flush.
func (s *Stream) WriteHead(status int, fields []Field, length int64, end bool) error {
	return s.writeBlock(func(c *Conn, b []byte) []byte { return c.encoder.answer(b, status, fields, length) }, fields, !s.headSent, final, end)
}

// Inform sends an informational head (100 to 199 but 101), at once, on the server's side.
func (s *Stream) Inform(status int, fields []Field) error {
	return s.writeBlock(func(c *Conn, b []byte) []byte { return c.encoder.answer(b, status, fields, -1) }, fields, !s.headSent, interim, false)
}

// WriteTrailer writes the fields behind the content, and ends this side of the stream. Everything goes out.
func (s *Stream) WriteTrailer(fields []Field) error {
	if len(fields) == 0 {
		return s.End()
	}
	return s.writeBlock(func(c *Conn, b []byte) []byte { return c.encoder.trailer(b, fields) }, fields, s.headSent, final, true)
}

// End ends this side of the stream. Everything goes out.
func (s *Stream) End() error { return s.Write(nil, true, abate.NoDeadline) }

type blockKind uint8

const (
	interim blockKind = iota
	final
)

// writeBlock writes a head or a trailer.
func (s *Stream) writeBlock(encode func(*Conn, []byte) []byte, fields []Field, inOrder bool, kind blockKind, end bool) error {
	c := s.conn
	c.mu.Lock()
	if err := s.mayWrite(inOrder); err != nil {
		c.mu.Unlock()
		return err
	}
	if err := s.awaitRoom(abate.NoDeadline); err != nil {
		c.mu.Unlock()
		return err
	}
	at := c.beginBlock(blockSize(fields))
	c.out.b = encode(c, c.out.b)
	c.endBlock(at, s.id, end)
	s.headSent = s.headSent || kind == final
	if end {
		s.endSent()
	}
	if end || kind == interim || len(c.out.b) >= flushFrom {
		c.flushAndUnlock()
	} else {
		c.mu.Unlock()
	}
	return nil
}

// mayWrite tells whether a frame may be written. mu is held.
func (s *Stream) mayWrite(inOrder bool) error {
	switch {
	case s.err != nil:
		return s.err
	case !inOrder || s.sendEnded:
		return ErrEnded
	case s.interrupted:
		return ErrInterrupted
	}
	return nil
}

// awaitRoom waits until there is room for a head. mu is held.
func (s *Stream) awaitRoom(until time.Duration) error {
	c := s.conn
	for !c.hasRoom() {
		s.needsNoWindow = true
		c.headers.join(s)
		inTime := c.wait(&s.wr, until)
		c.pass(s)
		s.needsNoWindow = false
		switch {
		case s.err != nil:
			return s.err
		case c.dead:
			return c.endOf(s)
		case s.id == 0 && c.closing: // a request that was not begun
			return ErrGoingAway
		case s.interrupted:
			return ErrInterrupted
		case !inTime:
			return ErrTimeUp
		}
	}
	return nil
}

// blockSize is the most that a block of those fields takes, but for pseudo fields of its own.
func blockSize(fields []Field) int {
	n := 64
	for i := range fields {
		n += len(fields[i].Name) + len(fields[i].Value) + 8
	}
	return n
}

// beginBlock makes room for a block and its frame, and leaves out where the frame begins. mu is held.
func (c *Conn) beginBlock(size int) (at int) {
	c.makeRoom(size + frameOverhead)
	at = len(c.out.b)
	c.out.b = append(c.out.b, make([]byte, frameOverhead)...)
	return at
}

// endBlock makes frames of the block that begins behind at: one, if it fits. mu is held.
func (c *Conn) endBlock(at int, id uint32, end bool) {
	flags := uint8(0)
	if end {
		flags = flagEndStream
	}
	n := len(c.out.b) - at - frameOverhead
	if n <= maxFrame {
		appendFrame(c.out.b[:at], n, headersFrame, flags|flagEndHeaders, id)
		return
	}
	block := append([]byte(nil), c.out.b[at+frameOverhead:]...)
	c.out.b = c.out.b[:at]
	c.makeRoom(n + (n/maxFrame+1)*frameOverhead)
	for kind := headersFrame; len(block) > 0; kind, flags = continuationFrame, 0 {
		piece := block[:min(len(block), maxFrame)]
		block = block[len(piece):]
		if len(block) == 0 {
			flags |= flagEndHeaders
		}
		c.out.b = append(appendFrame(c.out.b, len(piece), kind, flags, id), piece...)
	}
}

// Write writes content; end if there is no more and no trailer. It waits while the peer has no window for it: until the time
// is up (ErrTimeUp; part of it may have gone out), for StallTimeout at most, after which the stream is reset; or until it is
// interrupted, or the stream ends (a *StreamError). p is free again when it returns. What was written goes out with what
// follows: see Flush.
func (s *Stream) Write(p []byte, end bool, until time.Duration) error {
	c := s.conn
	c.mu.Lock()
	err := s.mayWrite(s.headSent)
	for err == nil {
		n := s.putAll(p, end)
		if p = p[n:]; len(p) == 0 && s.sendEnded == end {
			break
		}
		err = s.awaitWindow(until)
	}
	c.pass(s)
	if err != nil || end || c.out != nil && len(c.out.b) >= flushFrom {
		c.flushAndUnlock()
	} else {
		c.mu.Unlock()
	}
	return err
}

// putAll is put, and makes room by writing out what there is. mu is held, but not all the time.
func (s *Stream) putAll(p []byte, end bool) (n int) {
	c := s.conn
	for {
		n += s.put(p[n:], end)
		if n == len(p) || c.hasRoom() || c.flushing || s.err != nil {
			return n
		}
		c.flushAndUnlock()
		c.mu.Lock()
		if s.err != nil {
			return n
		}
	}
}

// put writes as much of p as goes without waiting, and the end of the stream if that is all. mu is held.
func (s *Stream) put(p []byte, end bool) (n int) {
	c := s.conn
	for n < len(p) {
		if (c.senders.first != nil || c.turn != nil) && c.turn != s || !c.hasRoom() {
			return n // others were first
		}
		piece := min(len(p)-n, c.sendWindow, s.sendWindow, maxFrame)
		if piece <= 0 {
			return n
		}
		last := end && n+piece == len(p)
		s.putFrame(p[n:n+piece], last)
		n += piece
		if last || c.turn == s && c.senders.first != nil { // a turn is one frame
			return n
		}
	}
	if end {
		s.putFrame(nil, true)
	}
	return n
}

// putFrame writes one frame of content, for which there is window. mu is held.
func (s *Stream) putFrame(p []byte, end bool) {
	c := s.conn
	flags := uint8(0)
	if end {
		flags = flagEndStream
	}
	c.makeRoom(frameOverhead + len(p))
	c.out.b = append(appendFrame(c.out.b, len(p), dataFrame, flags, s.id), p...)
	c.sendWindow -= len(p)
	s.sendWindow -= len(p)
	c.calm = min(c.calm+2, patience) // its window updates are no bother
	if end {
		s.endSent()
	}
}

// awaitWindow waits until there may be window and room for s. mu is held.
func (s *Stream) awaitWindow(until time.Duration) error {
	c := s.conn
	now := abate.Now()
	if now >= until {
		return ErrTimeUp
	}
	limit := min(until, later(now, c.config.StallTimeout))
	c.pass(s)
	if s.sendWindow > 0 {
		c.senders.join(s)
		c.callSender()
	}
	inTime := true
	if c.turn != s {
		inTime = c.wait(&s.wr, limit)
		c.senders.leave(s)
	}
	switch {
	case s.err != nil:
		return s.err
	case s.interrupted:
		return ErrInterrupted
	case inTime:
		return nil
	case limit < until:
		s.reset(Cancel, errStalled)
		return s.err
	}
	return ErrTimeUp
}

// Flush sends what has been written. It does not wait for the peer. It happens by itself at the end of the stream, when more
// than 16 KiB have come together, and when a read or write on this stream waits.
func (s *Stream) Flush() {
	s.conn.mu.Lock()
	s.conn.flushAndUnlock()
}

// endSent notes that this side of the stream has ended. mu is held.
func (s *Stream) endSent() {
	s.sendEnded = true
	if s.recvEnded {
		s.conn.unlist(s)
	}
}

// reset ends the stream on this side, and tells the peer. mu is held.
func (s *Stream) reset(code Code, cause error) {
	c := s.conn
	if s.listed {
		c.makeRoom(frameOverhead + 4)
		c.out.b = appendReset(c.out.b, s.id, code)
		if !s.recvEnded {
			c.remember(s.id)
		}
		c.unlist(s)
	}
	s.sendEnded = true
	s.fail(&StreamError{Code: code, Cause: cause})
}

// Reset ends the stream in both directions. The peer must not take what it has for complete.
func (s *Stream) Reset(code Code) {
	s.conn.mu.Lock()
	s.reset(code, nil)
	s.conn.flushAndUnlock()
}
