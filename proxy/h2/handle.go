package h2

import (
	"encoding/binary"
	"slices"
)

// handleFrame does what a frame says. An error ends the connection.
func (r *reader) handleFrame(f *frame) error {
	switch {
	case !r.begun && (f.kind != settingsFrame || f.has(flagAck)):
		return &ConnError{Code: ProtocolError, Problem: "the first frame is not SETTINGS"}
	case r.block.id != 0 && (f.kind != continuationFrame || f.id != r.block.id):
		return &ConnError{Code: ProtocolError, Problem: "a head is followed by something else than its CONTINUATION"}
	}
	switch f.kind {
	case dataFrame:
		return r.handleData(f)
	case headersFrame:
		return r.handleHeaders(f)
	case continuationFrame:
		return r.handleContinuation(f)
	case resetFrame:
		return r.handleReset(f)
	case settingsFrame:
		return r.handleSettings(f)
	case pingFrame:
		return r.handlePing(f)
	case goAwayFrame:
		return r.handleGoAway(f)
	case windowFrame:
		return r.handleWindow(f)
	case priorityFrame:
		return r.handlePriority(f)
	case pushFrame:
		return &ConnError{Code: ProtocolError, Problem: "PUSH_PROMISE, which nobody has allowed"}
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.charge(1)
}

// unpadded returns the payload without padding; false if the padding is longer than the payload.
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

func (r *reader) handleData(f *frame) error {
	p, ok := f.unpadded()
	if f.id == 0 || !ok {
		return &ConnError{Code: ProtocolError, Problem: "DATA without a stream, or with more padding than payload"}
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(f.payload)
	if !c.inflow.take(n) {
		return &ConnError{Code: FlowControlError, Problem: "more content than the window of the connection"}
	}
	r.progress()
	s := c.streams.open[f.id]
	if s == nil || s.recvEnded || !s.headDone {
		c.giveBack(n)
		return r.strayData(f.id, s, n == 0)
	}
	if !s.inflow.take(n) {
		c.giveBack(n)
		return r.streamError(s, FlowControlError, "more content than the window of the stream")
	}
	c.giveBack(n - len(p))
	s.inflow.skip(n - len(p))
	end := f.has(flagEndStream)
	if s.left >= 0 {
		s.left -= int64(len(p))
		if s.left < 0 || end && s.left > 0 {
			c.giveBack(len(p))
			return r.streamError(s, ProtocolError, wrongLength)
		}
	}
	if len(p) > 0 {
		s.in = s.in.room(len(p))
		s.in.b = append(s.in.b, p...)
	}
	if end {
		s.recvDone()
	}
	c.waits.wakeSoon(&s.recv)
	if len(p) == 0 && !end {
		return r.charge(1)
	}
	return nil
}

// strayData handles content that no stream can take: s, if there is one, has had its end, or has no head yet. mu is
// held.
func (r *reader) strayData(id uint32, s *Stream, empty bool) error {
	c := r.conn
	switch {
	case s != nil && s.recvEnded:
		return r.streamError(s, StreamClosed, "content after the end of the stream")
	case s != nil:
		return r.streamError(s, ProtocolError, "content before the head")
	case c.streams.isIdle(id):
		return &ConnError{Code: ProtocolError, Problem: "DATA on a stream that was never opened"}
	case c.server && !c.streams.remembers(id):
		return r.refuse(id, StreamClosed)
	case empty:
		return r.charge(1)
	}
	return nil
}

func (r *reader) handleReset(f *frame) error {
	switch {
	case len(f.payload) != 4:
		return &ConnError{Code: FrameSizeError, Problem: "RST_STREAM is not 4 bytes long"}
	case f.id == 0:
		return &ConnError{Code: ProtocolError, Problem: "RST_STREAM without a stream"}
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams.open[f.id]
	if s == nil {
		if c.streams.isIdle(f.id) {
			return &ConnError{Code: ProtocolError, Problem: "RST_STREAM on a stream that was never opened"}
		}
		return r.charge(1)
	}
	code := Code(binary.BigEndian.Uint32(f.payload))
	c.unlist(s)
	s.fail(&StreamError{Code: code, Peer: true, Refused: !c.server && code == RefusedStream})
	r.hookLater(s)
	if c.server && r.now-s.began < rash {
		return c.toll.chargeReset(r.now)
	}
	return nil
}

func (r *reader) handlePing(f *frame) error {
	switch {
	case len(f.payload) != 8:
		return &ConnError{Code: FrameSizeError, Problem: "PING is not 8 bytes long"}
	case f.id != 0:
		return &ConnError{Code: ProtocolError, Problem: "PING on a stream"}
	}
	data := binary.BigEndian.Uint64(f.payload)
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if !f.has(flagAck) {
		c.out.ping(flagAck, data)
		return r.charge(1)
	}
	if data == drainPing && c.draining == saidFirst {
		c.sayLast()
	}
	return r.charge(1)
}

func (r *reader) handleGoAway(f *frame) error {
	switch {
	case len(f.payload) < 8:
		return &ConnError{Code: FrameSizeError, Problem: "GOAWAY is shorter than 8 bytes"}
	case f.id != 0:
		return &ConnError{Code: ProtocolError, Problem: "GOAWAY on a stream"}
	}
	last := binary.BigEndian.Uint32(f.payload) & maxStreamID
	why := &ConnError{Code: Code(binary.BigEndian.Uint32(f.payload[4:])), Peer: true, Problem: quote(f.payload[8:])}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	c.goneAway = why
	if c.server {
		return r.charge(1)
	}
	c.closing = true
	for id, s := range c.streams.open {
		if id > last {
			c.unlist(s)
			s.fail(&StreamError{Code: why.Code, Peer: true, Refused: true, Cause: why})
			r.hookLater(s)
		}
	}
	return r.charge(1)
}

// quote returns what an error repeats of the debug data of a peer.
func quote(b []byte) string {
	words := slices.Clone(b[:min(len(b), 128)])
	for i, x := range words {
		if x < ' ' || x > '~' {
			words[i] = '?'
		}
	}
	return string(words)
}

func (r *reader) handlePriority(f *frame) error {
	if f.id == 0 {
		return &ConnError{Code: ProtocolError, Problem: "PRIORITY without a stream"}
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(f.payload) != 5 {
		if s := c.streams.open[f.id]; s != nil {
			return r.streamError(s, FrameSizeError, "PRIORITY is not 5 bytes long")
		}
		return &ConnError{Code: FrameSizeError, Problem: "PRIORITY is not 5 bytes long"}
	}
	return r.charge(1)
}

func (r *reader) handleWindow(f *frame) error {
	if len(f.payload) != 4 {
		return &ConnError{Code: FrameSizeError, Problem: "WINDOW_UPDATE is not 4 bytes long"}
	}
	more := int(binary.BigEndian.Uint32(f.payload) & maxWindow)
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.id == 0 {
		if more == 0 {
			return &ConnError{Code: ProtocolError, Problem: "WINDOW_UPDATE by nothing"}
		}
		if !c.line.widen(more) {
			return &ConnError{Code: FlowControlError, Problem: "the window of the connection exceeds 2^31-1"}
		}
		return r.charge(1)
	}
	s := c.streams.open[f.id]
	switch {
	case s == nil && c.streams.isIdle(f.id):
		return &ConnError{Code: ProtocolError, Problem: "WINDOW_UPDATE on a stream that was never opened"}
	case s == nil:
		return r.charge(1)
	case more == 0:
		return r.streamError(s, ProtocolError, "WINDOW_UPDATE by nothing")
	case s.send.window+more > maxWindow:
		return r.streamError(s, FlowControlError, "the window of the stream exceeds 2^31-1")
	}
	r.widen(s, more)
	return r.charge(1)
}

// widen changes the window of a stream for what is sent. mu is held.
func (r *reader) widen(s *Stream, more int) {
	s.send.window += more
	if s.send.window > 0 && s.send.in == nil {
		r.conn.waits.wakeSoon(&s.send.waiter)
	}
}
