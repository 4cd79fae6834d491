package h2

func (c *Conn) handleHeaders(f *frame) error {
	p, ok := f.unpadded()
	if ok && f.has(flagPriority) {
		if ok = len(p) >= 5; ok {
			p = p[5:]
		}
	}
	if f.id == 0 || !ok {
		return &ConnError{Code: ProtocolError, Problem: "HEADERS without a stream, or with more padding than payload"}
	}
	end := f.has(flagEndStream)
	if f.has(flagEndHeaders) {
		return c.handleBlock(f.id, p, end)
	}
	c.block = block{id: f.id, bytes: append(c.block.bytes[:0], p...), end: end}
	return nil
}

func (c *Conn) handleContinuation(f *frame) error {
	b := &c.block
	if b.id == 0 {
		return &ConnError{Code: ProtocolError, Problem: "CONTINUATION without a head before it"}
	}
	b.bytes = append(b.bytes, f.payload...)
	b.frames++
	if len(b.bytes) > c.config.MaxHeadBytes || b.frames > 16+c.config.MaxHeadBytes/1024 {
		return &ConnError{Code: EnhanceYourCalm, Problem: "a head does not end"}
	}
	if !f.has(flagEndHeaders) {
		return nil
	}
	id := b.id
	b.id = 0
	err := c.handleBlock(id, b.bytes, b.end)
	if cap(b.bytes) > keptArena {
		b.bytes = nil
	}
	return err
}

var errBlock = &ConnError{Code: CompressionError, Problem: "a head cannot be decompressed"}

// skip decodes a block that nobody wants: the next ones build on it.
func (c *Conn) skip(block []byte) error {
	c.scratch.arena, c.scratch.list = c.scratch.arena[:0], c.scratch.list[:0]
	if !c.decode(block, &c.scratch, 0) {
		return errBlock
	}
	return nil
}

// handleBlock handles a complete head or trailer.
func (c *Conn) handleBlock(id uint32, block []byte, end bool) error {
	c.blocks++
	c.mu.Lock()
	s := c.streams[id]
	if s != nil {
		s.pins++ // its goroutine may end meanwhile
	}
	c.goesOn()
	c.mu.Unlock()
	if s == nil {
		if c.server {
			return c.newRequest(id, block, end)
		}
		return c.strayHead(id, block)
	}
	begun, mark := len(s.got.list), len(s.got.arena)
	ok := c.decode(block, &s.got, c.config.MaxHeadBytes)
	var err error
	c.mu.Lock()
	switch {
	case !ok:
		err = errBlock
	case !s.listed: // it ended meanwhile
	case s.recvEnded:
		err = c.streamError(s, StreamClosed, "a head after the end of the stream")
	case s.got.over:
		err = c.streamError(s, Cancel, "the head of the answer, or a trailer, is too long")
	case !s.headDone:
		err = c.handleAnswer(s, begun, mark, end)
	default:
		err = c.handleTrailer(s, begun, end)
	}
	c.mu.Unlock()
	c.unpin(s)
	return err
}

// strayHead is a head on a stream that a client does not have.
func (c *Conn) strayHead(id uint32, block []byte) error {
	c.mu.Lock()
	idle := c.isIdle(id)
	err := c.bother(1)
	c.mu.Unlock()
	switch {
	case idle:
		return &ConnError{Code: ProtocolError, Problem: "HEADERS on a stream that was never opened"}
	case err != nil:
		return err
	}
	return c.skip(block)
}

// handleAnswer takes the head of an answer. mu is held.
func (c *Conn) handleAnswer(s *Stream, begun, mark int, end bool) error {
	h := Head{Fields: s.got.list[begun:len(s.got.list):len(s.got.list)], Length: -1}
	problem := h.parseAnswer()
	if problem == "" && h.Status < 200 && end {
		problem = "an informational head ends the stream"
	}
	if problem != "" {
		return c.streamError(s, ProtocolError, problem)
	}
	if h.Status < 200 {
		if s.headBytes += s.got.size; len(s.infos) >= maxInfos || s.headBytes > c.config.MaxHeadBytes {
			s.got.list, s.got.arena = s.got.list[:begun], s.got.arena[:mark]
			return c.bother(1)
		}
		info := h
		s.infos = append(s.infos, &info)
		c.rouseSoon(&s.rd)
		return c.bother(1)
	}
	s.head, s.headDone, s.left = h, true, h.Length
	if s.toHead || h.Status == 204 || h.Status == 304 {
		s.left = 0
	}
	if end {
		if s.left > 0 {
			return c.streamError(s, ProtocolError, "the content has another length than its head says")
		}
		s.recvDone()
	}
	c.rouseSoon(&s.rd)
	return nil
}

// maxInfos is how many informational heads are kept until somebody wants them; all of a stream are no longer than one head
// may be. They may be left out.
const maxInfos = 8

// handleTrailer takes a trailer. mu is held.
func (c *Conn) handleTrailer(s *Stream, begun int, end bool) error {
	list := s.got.list[begun:len(s.got.list):len(s.got.list)]
	problem := checkTrailer(list)
	switch {
	case !end:
		problem = "a second head that does not end the stream"
	case s.left > 0:
		problem = "the content has another length than its head says"
	}
	if problem != "" {
		return c.streamError(s, ProtocolError, problem)
	}
	if c.server {
		s.headBytes += s.got.size
		if c.heads += s.got.size; c.heads > maxHeads {
			s.got = fields{} // its handler may take a while to end
			return c.streamError(s, EnhanceYourCalm, "the heads and trailers of all streams take too much")
		}
	}
	s.trailer = list
	s.recvDone()
	c.rouseSoon(&s.rd)
	return nil
}

// newRequest takes the head of a request that opens a stream.
func (c *Conn) newRequest(id uint32, block []byte, end bool) error {
	known, err := c.admitID(id)
	if err != nil {
		return err
	}
	if known {
		return c.skip(block)
	}
	c.mu.Lock()
	last, full := c.draining == saidLast, c.full()
	switch {
	case last: // it comes too late, and the client knows
		c.remember(id)
	case full:
		err = c.refuse(id, RefusedStream)
	}
	if !last {
		c.lastID = id
	}
	c.mu.Unlock()
	if full || last || err != nil {
		if skipped := c.skip(block); skipped != nil {
			return skipped
		}
		return err
	}
	s := newStream(c)
	s.id, s.began = id, c.now
	if !c.decode(block, &s.got, c.config.MaxHeadBytes) {
		s.recycle()
		return errBlock
	}
	s.head = Head{Fields: s.got.list[:len(s.got.list):len(s.got.list)], Length: -1}
	problem, over := "", s.got.over
	if !over {
		problem = s.head.parseRequest(&s.got.arena)
	}
	if problem == "" && end && s.head.Length > 0 {
		problem = "the content has another length than its head says"
	}
	return c.enter(s, end, over, problem)
}

// maxHeads is how much memory the heads and trailers of all streams that a client has open may take before more are refused.
const maxHeads = 4 << 20

// full tells whether a client has as many streams open as it may, or their heads take too much. mu is held.
func (c *Conn) full() bool {
	return len(c.streams) >= c.config.MaxStreams || c.running >= 2*c.config.MaxStreams || c.heads > maxHeads
}

// enter takes a stream that a client has opened, unless it is malformed.
func (c *Conn) enter(s *Stream, end, over bool, problem string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		s.recycle()
		return nil
	}
	s.left, s.headDone, s.recvEnded = s.head.Length, true, end
	s.window, s.grant, s.sendWindow = c.config.StreamWindow, c.config.StreamWindow, c.peer.window
	if over || problem != "" {
		var err error
		if over {
			err = c.answerTooLong(s)
		} else {
			err = c.refuse(s.id, ProtocolError)
		}
		s.recycle()
		return err
	}
	if len(c.streams) == 0 && c.config.PingAfter > 0 {
		c.alarmAt(later(c.now, c.config.PingAfter))
	}
	c.streams[s.id], s.listed = s, true
	s.headBytes = s.got.size
	c.heads += s.headBytes
	c.fresh = append(c.fresh, s)
	return nil
}

// answerTooLong answers a request whose head is too long. mu is held.
func (c *Conn) answerTooLong(s *Stream) error {
	at := c.beginBlock(64)
	c.out.b = c.encoder.answer(c.out.b, 431, nil, 0)
	c.endBlock(at, s.id, true)
	if s.recvEnded {
		return c.bother(10)
	}
	return c.refuse(s.id, NoError)
}

// admitID tells whether a head is for a stream that this side has ended, so that it is to be left aside; an error if it can
// not open a stream.
func (c *Conn) admitID(id uint32) (known bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case id%2 == 0:
		return false, &ConnError{Code: ProtocolError, Problem: "a client opened a stream with an even id"}
	case id > c.lastID:
		if id > c.lastID+2 && c.draining != saidLast {
			c.skipped = id - 2
		}
		return false, nil
	case c.remembers(id):
		return true, c.bother(1)
	case id > c.skipped:
		return false, &ConnError{Code: StreamClosed, Problem: "HEADERS on a stream that has ended"}
	}
	return false, &ConnError{Code: ProtocolError, Problem: "a stream was opened after one with a higher id"}
}
