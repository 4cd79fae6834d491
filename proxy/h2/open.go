package h2

import (
	"math"
	"time"

	"github.com/abate-go/abate/core"
)

// Open sends a request, on the client's side: its head, and as much of body as goes without waiting, in one write. n is
// how much that is. end says that body is all of the content: if n is less than its length, the rest is for Write,
// whose end must be true then. If the connection has too much to write already, Open waits for that.
//
// The error is ErrGoingAway, ErrTooManyStreams, ErrTimeUp or a *StreamError that says Refused: nothing was sent in any
// case, and there is no stream. h and body are free again when it returns. Every stream needs a Close.
func (c *Conn) Open(h *Head, body []byte, end bool, until time.Duration) (s *Stream, n int, err error) {
	s = newStream(c)
	s.at = math.MaxUint64 // far behind all that has been sent
	c.mu.Lock()
	if err = c.mayOpen(); err == nil && !c.out.hasRoom() {
		if err = s.awaitRoom(until); err == nil {
			err = c.mayOpen()
		}
	}
	if err != nil {
		c.mu.Unlock()
		s.recycle()
		return nil, 0, err
	}
	c.begin(s)
	s.toHead = string(h.Method) == "HEAD"
	c.out.request(s.id, h, end && len(body) == 0)
	s.headSent = true
	if end && len(body) == 0 {
		s.endSent()
	} else if len(body) > 0 {
		n = s.putAll(body, end)
	}
	c.flushAndUnlock()
	return s, n, nil
}

// mayOpen returns why no stream can be opened, nil if one can. mu is held.
func (c *Conn) mayOpen() error {
	switch {
	case c.closing:
		return ErrGoingAway
	case len(c.streams.open) >= c.peer.streams:
		return ErrTooManyStreams
	}
	return nil
}

// begin enters a new stream of this side. mu is held.
func (c *Conn) begin(s *Stream) {
	id, more := c.streams.nextID()
	c.closing = c.closing || !more
	s.id, s.at, s.left = id, c.out.position(), -1
	if len(c.streams.open) == 0 && c.config.PingAfter > 0 { // the peer had nothing to say before
		c.pulse.restart(core.Now())
	}
	c.enlist(s)
}
