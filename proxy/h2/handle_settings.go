package h2

import "encoding/binary"

func (r *reader) handleSettings(f *frame) error {
	switch {
	case f.id != 0:
		return &ConnError{Code: ProtocolError, Problem: "SETTINGS on a stream"}
	case f.has(flagAck) && len(f.payload) > 0:
		return &ConnError{Code: FrameSizeError, Problem: "an acknowledgement of SETTINGS that is not empty"}
	case len(f.payload)%6 != 0:
		return &ConnError{Code: FrameSizeError, Problem: "the length of SETTINGS is not a multiple of 6"}
	}
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.has(flagAck) {
		return r.charge(1)
	}
	if !r.begun {
		r.begun, c.pending.what = true, nothing
		c.peer.streams = silentStreams // unless it names a number
	}
	cost := 1
	for p := f.payload; len(p) > 0; p = p[6:] {
		if err := r.set(binary.BigEndian.Uint16(p), binary.BigEndian.Uint32(p[2:])); err != nil {
			return err
		}
		cost++
	}
	c.out.settingsAck()
	return r.charge(cost)
}

// set obeys one setting of the peer. mu is held.
func (r *reader) set(name uint16, value uint32) error {
	c := r.conn
	switch name {
	case headerTableSize:
		c.out.hpack.resize(int(min(value, tableSize)))
	case enablePush:
		if value > 1 || value == 1 && !c.server {
			problem := "SETTINGS_ENABLE_PUSH is not 0 or 1, or a server wants to be pushed to"
			return &ConnError{Code: ProtocolError, Problem: problem}
		}
	case enableConnect:
		if value > 1 || value == 0 && c.peer.extended {
			problem := "SETTINGS_ENABLE_CONNECT_PROTOCOL is not 0 or 1, or is taken back"
			return &ConnError{Code: ProtocolError, Problem: problem}
		}
		c.peer.extended = value == 1
	case maxConcurrentStreams:
		c.peer.streams = int(min(value, maxStreamID))
	case initialWindowSize:
		if value > maxWindow {
			return &ConnError{Code: FlowControlError, Problem: "SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31-1"}
		}
		return r.setWindow(int(value))
	case maxFrameSize:
		if value < maxFrame || value > 1<<24-1 {
			return &ConnError{Code: ProtocolError, Problem: "SETTINGS_MAX_FRAME_SIZE is not from 2^14 to 2^24-1"}
		}
	}
	return nil
}

// setWindow changes the windows of all streams for what is sent; they may become negative. mu is held.
func (r *reader) setWindow(window int) error {
	c := r.conn
	more := window - c.peer.window
	c.peer.window = window
	if more == 0 {
		return nil
	}
	for _, s := range c.streams.open {
		if s.send.window+more > maxWindow {
			problem := "SETTINGS_INITIAL_WINDOW_SIZE has the window of a stream exceed 2^31-1"
			return &ConnError{Code: FlowControlError, Problem: problem}
		}
		r.widen(s, more)
	}
	c.toll.debit(len(c.streams.open) / 8) // it is work for all of them
	return nil
}
