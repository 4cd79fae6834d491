package h2

import (
	"encoding/binary"
	"errors"
)

// handleFrame does what a frame says. An error ends the connection.
func (c *Conn) handleFrame(f *frame) error {
	switch {
	case !c.begun && (f.kind != settingsFrame || f.has(flagAck)):
		return &ConnError{Code: ProtocolError, Problem: "the first frame is not SETTINGS"}
	case c.block.id != 0 && (f.kind != continuationFrame || f.id != c.block.id):
		return &ConnError{Code: ProtocolError, Problem: "a head is followed by something else than its CONTINUATION"}
	}
	switch f.kind {
	case dataFrame:
		return c.handleData(f)
	case headersFrame:
		return c.handleHeaders(f)
	case continuationFrame:
		return c.handleContinuation(f)
	case resetFrame:
		return c.handleReset(f)
	case settingsFrame:
		return c.handleSettings(f)
	case pingFrame:
		return c.handlePing(f)
	case goAwayFrame:
		return c.handleGoAway(f)
	case windowFrame:
		return c.handleWindow(f)
	case priorityFrame:
		return c.handlePriority(f)
	case pushFrame:
		return &ConnError{Code: ProtocolError, Problem: "PUSH_PROMISE, which nobody has allowed"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bother(1)
}

// unpadded is the payload without padding.
func (f *frame) unpadded() ([]byte, bool) {
	p := f.payload
	if !f.has(flagPadded) {
		return p, true
	}
	if len(p) == 0 || int(p[0]) >= len(p) {
		return nil, false
	}
	return p[1 : len(p)-int(p[0])], true
}

func (c *Conn) handleData(f *frame) error {
	p, ok := f.unpadded()
	if f.id == 0 || !ok {
		return &ConnError{Code: ProtocolError, Problem: "DATA without a stream, or with more padding than payload"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(f.payload)
	if c.window -= n; c.window < 0 {
		return &ConnError{Code: FlowControlError, Problem: "more content than the window of the connection"}
	}
	c.goesOn()
	s := c.streams[f.id]
	if s == nil || s.recvEnded || !s.headDone {
		c.giveBackWindow(n)
		return c.strayData(f.id, s, n == 0)
	}
	if s.window -= n; s.window < 0 {
		c.giveBackWindow(n)
		return c.streamError(s, FlowControlError, "more content than the window of the stream")
	}
	c.giveBackWindow(n - len(p))
	s.given += n - len(p)
	end := f.has(flagEndStream)
	if s.left >= 0 {
		s.left -= int64(len(p))
		if s.left < 0 || end && s.left > 0 {
			c.giveBackWindow(len(p))
			return c.streamError(s, ProtocolError, "the content has another length than its head says")
		}
	}
	if len(p) > 0 {
		s.in = s.in.room(len(p))
		s.in.b = append(s.in.b, p...)
	}
	if end {
		s.recvDone()
	}
	c.rouseSoon(&s.rd)
	if len(p) == 0 && !end {
		return c.bother(1)
	}
	return nil
}

// recvDone notes that the peer has ended its side of the stream. mu is held.
func (s *Stream) recvDone() {
	s.recvEnded = true
	if s.sendEnded {
		s.conn.unlist(s)
	}
}

// strayData is content that no stream wants: s, if there is one, has had its end or not its head. mu is held.
func (c *Conn) strayData(id uint32, s *Stream, empty bool) error {
	switch {
	case s != nil && s.recvEnded:
		return c.streamError(s, StreamClosed, "content after the end of the stream")
	case s != nil:
		return c.streamError(s, ProtocolError, "content before the head")
	case c.isIdle(id):
		return &ConnError{Code: ProtocolError, Problem: "DATA on a stream that was never opened"}
	case c.server && !c.remembers(id):
		return c.refuse(id, StreamClosed)
	case empty:
		return c.bother(1)
	}
	return nil
}

// isIdle tells whether a stream has not been opened yet, or never can be. mu is held.
func (c *Conn) isIdle(id uint32) bool {
	return id%2 == 0 || id > c.lastID && !(c.server && c.draining == saidLast) // else it came too late
}

// refuse resets a stream that there is none of. mu is held.
func (c *Conn) refuse(id uint32, code Code) error {
	c.makeRoom(frameOverhead + 4)
	c.out.b = appendReset(c.out.b, id, code)
	c.remember(id)
	return c.bother(10)
}

// streamError resets a stream on which the peer broke the protocol. mu is held.
func (c *Conn) streamError(s *Stream, code Code, problem string) error {
	s.reset(code, errors.New(problem))
	c.hookLater(s)
	return c.bother(10)
}

// remember notes a stream that this side has ended and of which frames may be on their way: twice as many as may have been
// open at once. A client knows all streams that were open without that: it has opened them. mu is held.
func (c *Conn) remember(id uint32) {
	if !c.server {
		return
	}
	if len(c.recent) < 2*c.config.MaxStreams {
		c.recent = append(c.recent, id)
		return
	}
	c.recent[c.recentAt] = id
	c.recentAt = (c.recentAt + 1) % len(c.recent)
}

func (c *Conn) remembers(id uint32) bool {
	for _, other := range c.recent {
		if other == id {
			return true
		}
	}
	return false
}

func (c *Conn) handleReset(f *frame) error {
	switch {
	case len(f.payload) != 4:
		return &ConnError{Code: FrameSizeError, Problem: "RST_STREAM is not 4 bytes long"}
	case f.id == 0:
		return &ConnError{Code: ProtocolError, Problem: "RST_STREAM without a stream"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[f.id]
	if s == nil {
		if c.isIdle(f.id) {
			return &ConnError{Code: ProtocolError, Problem: "RST_STREAM on a stream that was never opened"}
		}
		return c.bother(1)
	}
	code := Code(binary.BigEndian.Uint32(f.payload))
	c.unlist(s)
	s.fail(&StreamError{Code: code, Peer: true, Refused: !c.server && code == RefusedStream})
	c.hookLater(s)
	if c.server && c.now-s.began < rash {
		return c.rashReset(c.now)
	}
	return nil
}

func (c *Conn) handlePing(f *frame) error {
	switch {
	case len(f.payload) != 8:
		return &ConnError{Code: FrameSizeError, Problem: "PING is not 8 bytes long"}
	case f.id != 0:
		return &ConnError{Code: ProtocolError, Problem: "PING on a stream"}
	}
	data := binary.BigEndian.Uint64(f.payload)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.has(flagAck) {
		c.makeRoom(frameOverhead + 8)
		c.out.b = appendPing(c.out.b, flagAck, data)
		return c.bother(1)
	}
	if data == drainPing && c.draining == saidFirst {
		c.sayLast()
	}
	return c.bother(1)
}

func (c *Conn) handleGoAway(f *frame) error {
	switch {
	case len(f.payload) < 8:
		return &ConnError{Code: FrameSizeError, Problem: "GOAWAY is shorter than 8 bytes"}
	case f.id != 0:
		return &ConnError{Code: ProtocolError, Problem: "GOAWAY on a stream"}
	}
	last := binary.BigEndian.Uint32(f.payload) & maxStreamID
	why := &ConnError{Code: Code(binary.BigEndian.Uint32(f.payload[4:])), Peer: true, Problem: quote(f.payload[8:])}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goneAway = why
	if c.server {
		return c.bother(1)
	}
	c.closing = true
	for id, s := range c.streams {
		if id > last {
			c.unlist(s)
			s.fail(&StreamError{Code: why.Code, Peer: true, Refused: true, Cause: why})
			c.hookLater(s)
		}
	}
	return c.bother(1)
}

// quote is what an error repeats of the words of a peer.
func quote(b []byte) string {
	words := []byte(nil)
	for _, x := range b[:min(len(b), 128)] {
		if x < ' ' || x > '~' {
			x = '?'
		}
		words = append(words, x)
	}
	return string(words)
}

func (c *Conn) handlePriority(f *frame) error {
	if f.id == 0 {
		return &ConnError{Code: ProtocolError, Problem: "PRIORITY without a stream"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(f.payload) != 5 {
		if s := c.streams[f.id]; s != nil {
			return c.streamError(s, FrameSizeError, "PRIORITY is not 5 bytes long")
		}
		return &ConnError{Code: FrameSizeError, Problem: "PRIORITY is not 5 bytes long"}
	}
	return c.bother(1)
}

func (c *Conn) handleWindow(f *frame) error {
	if len(f.payload) != 4 {
		return &ConnError{Code: FrameSizeError, Problem: "WINDOW_UPDATE is not 4 bytes long"}
	}
	more := int(binary.BigEndian.Uint32(f.payload) & maxWindow)
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.id == 0 {
		if more == 0 {
			return &ConnError{Code: ProtocolError, Problem: "WINDOW_UPDATE by nothing"}
		}
		if c.sendWindow += more; c.sendWindow > maxWindow {
			return &ConnError{Code: FlowControlError, Problem: "the window of the connection exceeds 2^31-1"}
		}
		c.callSender()
		return c.bother(1)
	}
	s := c.streams[f.id]
	switch {
	case s == nil && c.isIdle(f.id):
		return &ConnError{Code: ProtocolError, Problem: "WINDOW_UPDATE on a stream that was never opened"}
	case s == nil:
		return c.bother(1)
	case more == 0:
		return c.streamError(s, ProtocolError, "WINDOW_UPDATE by nothing")
	case s.sendWindow+more > maxWindow:
		return c.streamError(s, FlowControlError, "the window of the stream exceeds 2^31-1")
	}
	s.widen(more)
	return c.bother(1)
}

// widen changes the window of a stream for what is sent. mu is held.
func (s *Stream) widen(more int) {
	s.sendWindow += more
	if s.sendWindow > 0 && !s.queued {
		s.conn.rouseSoon(&s.wr)
	}
}
