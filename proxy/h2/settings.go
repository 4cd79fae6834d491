package h2

import "encoding/binary"

// greet writes what a connection begins with: the preface of a client, SETTINGS, and the window of the connection. mu is held,
// or nobody else knows c.
func (c *Conn) greet() {
	c.makeRoom(classes[0])
	b := c.out.b
	if !c.server {
		b = append(b, preface...)
	}
	at := len(b)
	b = appendFrame(b, 0, settingsFrame, 0, 0)
	if c.server {
		b = appendSetting(b, maxConcurrentStreams, c.config.MaxStreams)
	} else {
		b = appendSetting(b, enablePush, 0)
	}
	b = appendSetting(b, maxHeaderListSize, c.config.MaxHeadBytes)
	if c.config.StreamWindow != initialWindow {
		b = appendSetting(b, initialWindowSize, c.config.StreamWindow)
	}
	appendFrame(b[:at], len(b)-at-frameOverhead, settingsFrame, 0, 0)
	if more := c.config.ConnWindow - initialWindow; more > 0 {
		b = appendWindow(b, 0, more)
		c.window += more
	}
	c.out.b = b
}

func (c *Conn) handleSettings(f *frame) error {
	switch {
	case f.id != 0:
		return &ConnError{Code: ProtocolError, Problem: "SETTINGS on a stream"}
	case f.has(flagAck) && len(f.payload) > 0:
		return &ConnError{Code: FrameSizeError, Problem: "an acknowledgement of SETTINGS that is not empty"}
	case len(f.payload)%6 != 0:
		return &ConnError{Code: FrameSizeError, Problem: "the length of SETTINGS is not a multiple of 6"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.has(flagAck) {
		return c.bother(1)
	}
	if !c.begun {
		c.begun, c.expecting = true, nothing
		c.peer.streams = silentStreams // unless it names a number
	}
	cost := 1
	for p := f.payload; len(p) > 0; p = p[6:] {
		if err := c.set(binary.BigEndian.Uint16(p), binary.BigEndian.Uint32(p[2:])); err != nil {
			return err
		}
		cost++
	}
	c.makeRoom(frameOverhead)
	c.out.b = appendFrame(c.out.b, 0, settingsFrame, flagAck, 0)
	return c.bother(cost)
}

// set obeys one setting of the peer. mu is held.
func (c *Conn) set(name uint16, value uint32) error {
	switch name {
	case headerTableSize:
		c.encoder.resize(int(min(value, tableSize)))
	case enablePush:
		if value > 1 || value == 1 && !c.server {
			return &ConnError{Code: ProtocolError, Problem: "SETTINGS_ENABLE_PUSH is not 0 or 1, or a server wants to be pushed to"}
		}
	case maxConcurrentStreams:
		c.peer.streams = int(min(value, maxStreamID))
	case initialWindowSize:
		if value > maxWindow {
			return &ConnError{Code: FlowControlError, Problem: "SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31-1"}
		}
		return c.setWindow(int(value))
	case maxFrameSize:
		if value < maxFrame || value > 1<<24-1 {
			return &ConnError{Code: ProtocolError, Problem: "SETTINGS_MAX_FRAME_SIZE is not from 2^14 to 2^24-1"}
		}
	}
	return nil
}

// setWindow changes the windows of all streams for what is sent; they may become negative. mu is held.
func (c *Conn) setWindow(window int) error {
	more := window - c.peer.window
	c.peer.window = window
	if more == 0 {
		return nil
	}
	for _, s := range c.streams {
		if s.sendWindow+more > maxWindow {
			return &ConnError{Code: FlowControlError, Problem: "SETTINGS_INITIAL_WINDOW_SIZE has the window of a stream exceed 2^31-1"}
		}
		s.widen(more)
	}
	c.calm -= len(c.streams) / 8 // it is work for all of them
	return nil
}
