package h2

import (
	"errors"
	"time"

	"github.com/abate-go/abate/core"
)

var errStalled = errors.New("the peer left the window closed for too long")

// WriteHead writes the head of the answer, on the server's side; end if the answer has nothing else. A length of 0 or
// more becomes its content-length. It goes out with what follows: see Flush.
func (s *Stream) WriteHead(status int, fields []Field, length int64, end bool) error {
	if err := s.beginBlock(!s.headSent, core.NoDeadline); err != nil {
		return err
	}
	s.headSent = true
	s.conn.out.answer(s.id, status, fields, length, end)
	s.endBlock(end, end)
	return nil
}

// Inform sends an informational head (100 to 199 but 101), at once, on the server's side.
func (s *Stream) Inform(status int, fields []Field) error {
	if err := s.beginBlock(!s.headSent, core.NoDeadline); err != nil {
		return err
	}
	s.conn.out.answer(s.id, status, fields, -1, false)
	s.endBlock(false, true)
	return nil
}

// WriteTrailer writes the fields behind the content, and ends this side of the stream. Everything goes out. It waits
// while the peer takes nothing, until the time is up (ErrTimeUp): then the stream has not ended.
func (s *Stream) WriteTrailer(fields []Field, until time.Duration) error {
	if len(fields) == 0 {
		return s.End()
	}
	if err := s.beginBlock(s.headSent, until); err != nil {
		return err
	}
	s.conn.out.trailer(s.id, fields)
	s.endBlock(true, true)
	return nil
}

// End ends this side of the stream. Everything goes out.
func (s *Stream) End() error { return s.Write(nil, true, core.NoDeadline) }

// beginBlock waits until a head or a trailer may be written. Unless that fails, it returns with mu held.
func (s *Stream) beginBlock(inOrder bool, until time.Duration) error {
	s.conn.mu.Lock()
	err := s.mayWrite(inOrder)
	if err == nil {
		err = s.awaitRoom(until)
	}
	if err != nil {
		s.conn.mu.Unlock()
	}
	return err
}

// endBlock notes that a head or a trailer was written: it ends this side of the stream if end, and goes out at once if
// now. mu is held, and free afterwards.
func (s *Stream) endBlock(end, now bool) {
	if end {
		s.endSent()
	}
	if now || s.conn.out.waiting() >= flushFrom {
		s.conn.flushAndUnlock()
	} else {
		s.conn.mu.Unlock()
	}
}

// mayWrite returns why no frame may be written, nil if one may. mu is held.
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
	for !c.out.hasRoom() {
		c.line.heads.join(&s.send)
		inTime := c.wait(&s.send.waiter, until)
		c.line.leave(&s.send)
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

// Write writes content; end if there is no more and no trailer. It waits while the peer has no window for it: until the
// time is up (ErrTimeUp; part of it may have gone out), it is interrupted, or the stream ends (a *StreamError); but at
// most for StallTimeout, then it resets the stream. p is free again when it returns. What was written goes out with
// what follows: see Flush.
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
	c.line.leave(&s.send)
	if err != nil || end || c.out.waiting() >= flushFrom {
		c.flushAndUnlock()
	} else {
		c.mu.Unlock()
	}
	return err
}

// WriteNow is Write without a wait: it writes the beginning of p, as far as there is window and room for it. It returns
// how much that was.
func (s *Stream) WriteNow(p []byte) (n int, err error) {
	c := s.conn
	c.mu.Lock()
	if err = s.mayWrite(s.headSent); err == nil {
		n = s.putAll(p, false)
	}
	c.line.leave(&s.send)
	if n < len(p) || c.out.waiting() >= flushFrom {
		c.flushAndUnlock()
	} else {
		c.mu.Unlock()
	}
	return n, err
}

// Crowded reports whether there is no room for a head: the peer takes nothing for the moment.
func (s *Stream) Crowded() bool {
	s.conn.mu.Lock()
	defer s.conn.mu.Unlock()
	return !s.conn.out.hasRoom()
}

// putAll is put, and makes room by writing out what there is. mu is held, but free in between.
func (s *Stream) putAll(p []byte, end bool) (n int) {
	c := s.conn
	for {
		n += s.put(p[n:], end)
		if n == len(p) || c.out.hasRoom() || c.writer.flushing || s.err != nil {
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
		piece := c.line.share(&s.send, len(p)-n)
		if piece == 0 {
			return n
		}
		last := end && n+piece == len(p)
		yield := s.putFrame(p[n:n+piece], last)
		n += piece
		if last || yield {
			return n
		}
	}
	if end {
		s.putFrame(nil, true)
	}
	return n
}

// putFrame writes one frame of content, and reports whether others are next. mu is held.
func (s *Stream) putFrame(p []byte, end bool) (yield bool) {
	c := s.conn
	c.out.data(s.id, p, end)
	yield = c.line.spend(&s.send, len(p))
	c.toll.credit(2) // for the window updates that follow from it
	if end {
		s.endSent()
	}
	return yield
}

// awaitWindow waits until there may be window and room for s. mu is held.
func (s *Stream) awaitWindow(until time.Duration) error {
	c := s.conn
	now := core.Now()
	if now >= until {
		return ErrTimeUp
	}
	limit := min(until, later(now, c.config.StallTimeout))
	c.line.leave(&s.send)
	inTime := true
	if !c.line.joinContent(&s.send) {
		inTime = c.wait(&s.send.waiter, limit)
		s.send.leave()
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

// Flush sends what has been written. It does not wait for the peer. The end of a stream, 16 KiB that have come
// together, and a read or write that waits on the stream do the same.
func (s *Stream) Flush() {
	s.conn.mu.Lock()
	s.conn.flushAndUnlock()
}

// recvDone notes that the peer has ended its side of the stream. mu is held.
func (s *Stream) recvDone() {
	s.recvEnded = true
	if s.sendEnded {
		s.conn.unlist(s)
	}
}

// endSent notes that this side of the stream has ended. mu is held.
func (s *Stream) endSent() {
	s.sendEnded = true
	if s.recvEnded {
		s.conn.unlist(s)
	}
}

// reset ends the stream on this side, and says so to the peer. mu is held.
func (s *Stream) reset(code Code, cause error) {
	c := s.conn
	if s.listed {
		c.out.reset(s.id, code)
		if !s.recvEnded {
			c.streams.remember(s.id)
		}
		c.unlist(s)
	}
	s.sendEnded = true
	s.fail(&StreamError{Code: code, Cause: cause})
}

// Reset ends the stream in both directions. The peer knows by that that what it has is not complete.
func (s *Stream) Reset(code Code) {
	s.conn.mu.Lock()
	s.reset(code, nil)
	s.conn.flushAndUnlock()
}

// Close ends the use of a stream on the client's side. It resets the stream (CANCEL) unless that has ended in both
// directions. Nothing of it may be used afterwards, on any goroutine. On the server's side, the return of the handler
// does that.
func (s *Stream) Close() {
	c := s.conn
	if c.server {
		return
	}
	s.OnGone(nil)
	c.mu.Lock()
	if s.listed {
		s.reset(Cancel, nil)
	}
	s.release()
	c.endIfOver()
}
