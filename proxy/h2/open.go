package h2

import (
	"math"
	"time"

	"github.com/abate-go/abate"
)

// Open sends a request, on the client's side: its head, and as much of body as goes without waiting, in one write. n is how
// much that is. end tells that body is all of the content: if n is less than its length, the rest is for Write, whose end
// must be true then. If the connection has too much to write already, Open waits for that.
//
// The error is ErrGoingAway, ErrTooManyStreams, ErrTimeUp or a *StreamError that says Refused: nothing was sent in any case,
// and there is no stream. h and body are free again when it returns. Every stream needs a Close.
func (c *Conn) Open(h *Head, body []byte, end bool, until time.Duration) (s *Stream, n int, err error) {
	s = newStream(c)
	s.at = math.MaxUint64 // far behind all that has been sent
	c.mu.Lock()
	if err = c.mayOpen(); err == nil && !c.hasRoom() {
		if err = s.awaitRoom(until); err == nil {
			err = c.mayOpen()
		}
	}
	if err != nil {
		c.mu.Unlock()
		s.recycle()
		return nil, 0, err
	}
	c.begin(s, h)
	at := c.beginBlock(blockSize(h.Fields) + len(h.Method) + len(h.Scheme) + len(h.Authority) + len(h.Path) + 64)
	c.out.b = c.encoder.request(c.out.b, h)
	c.endBlock(at, s.id, end && len(body) == 0)
	s.headSent = true
	if end && len(body) == 0 {
		s.endSent()
	} else if len(body) > 0 {
		n = s.putAll(body, end)
	}
	c.flushAndUnlock()
	return s, n, nil
}

// mayOpen tells whether a stream can be opened. mu is held.
func (c *Conn) mayOpen() error {
	switch {
	case c.closing:
		return ErrGoingAway
	case len(c.streams) >= c.peer.streams:
		return ErrTooManyStreams
	}
	return nil
}

// begin enters a new stream of this side. mu is held.
func (c *Conn) begin(s *Stream, h *Head) {
	if c.lastID == 0 {
		c.lastID = 1
	} else {
		c.lastID += 2
	}
	s.id = c.lastID
	c.closing = c.closing || s.id >= maxStreamID-2
	s.at = c.taken
	if c.out != nil {
		s.at += uint64(len(c.out.b))
	}
	s.left = -1
	s.window, s.grant, s.sendWindow = c.config.StreamWindow, c.config.StreamWindow, c.peer.window
	s.toHead = string(h.Method) == "HEAD"
	if len(c.streams) == 0 && c.config.PingAfter > 0 { // it could not be heard before
		c.heard, c.pinging, c.pings = abate.Now(), false, 0
		c.alarmAt(later(c.heard, c.config.PingAfter))
	}
	c.streams[s.id], s.listed = s, true
}

// Close gives up a stream on the client's side: it is reset (CANCEL) unless it has ended in both directions. Nothing of it
// may be used afterwards, on any goroutine. On the server's side that happens when the handler returns.
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
