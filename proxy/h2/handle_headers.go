package h2

func (r *reader) handleHeaders(f *frame) error {
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
		return r.handleBlock(f.id, p, end)
	}
	r.block = block{id: f.id, bytes: append(r.block.bytes[:0], p...), end: end}
	return nil
}

func (r *reader) handleContinuation(f *frame) error {
	b := &r.block
	if b.id == 0 {
		return &ConnError{Code: ProtocolError, Problem: "CONTINUATION without a head before it"}
	}
	b.bytes = append(b.bytes, f.payload...)
	b.frames++
	if most := r.conn.config.MaxHeadBytes; len(b.bytes) > most || b.frames > 16+most/1024 {
		return &ConnError{Code: EnhanceYourCalm, Problem: "a head does not end"}
	}
	if !f.has(flagEndHeaders) {
		return nil
	}
	id := b.id
	b.id = 0
	err := r.handleBlock(id, b.bytes, b.end)
	if cap(b.bytes) > keptArena {
		b.bytes = nil
	}
	return err
}

const wrongLength = "the content has another length than its head says"

var errBlock = &ConnError{Code: CompressionError, Problem: "a head cannot be decompressed"}

// skip decodes a block that nobody wants: the next ones build on it.
func (r *reader) skip(block []byte) error {
	r.scratch.arena, r.scratch.list = r.scratch.arena[:0], r.scratch.list[:0]
	if !r.hpack.decode(block, &r.scratch, 0) {
		return errBlock
	}
	return nil
}

func (r *reader) handleBlock(id uint32, block []byte, end bool) error {
	c := r.conn
	r.blocks++
	c.mu.Lock()
	s := c.streams.open[id]
	if s != nil {
		s.pins++ // its goroutine may end meanwhile
	}
	r.progress()
	c.mu.Unlock()
	if s == nil {
		if c.server {
			return r.newRequest(id, block, end)
		}
		return r.strayHead(id, block)
	}
	begun, mark := len(s.got.list), len(s.got.arena)
	ok := r.hpack.decode(block, &s.got, r.conn.config.MaxHeadBytes)
	var err error
	c.mu.Lock()
	switch {
	case !ok:
		err = errBlock
	case !s.listed: // it ended meanwhile
	case s.recvEnded:
		err = r.streamError(s, StreamClosed, "a head after the end of the stream")
	case s.got.over:
		err = r.streamError(s, Cancel, "the head of the answer, or a trailer, is too long")
	case !s.headDone:
		err = r.handleAnswer(s, begun, mark, end)
	default:
		err = r.handleTrailer(s, begun, end)
	}
	c.mu.Unlock()
	c.unpin(s)
	return err
}

// strayHead is a head on a stream that a client does not have.
func (r *reader) strayHead(id uint32, block []byte) error {
	c := r.conn
	c.mu.Lock()
	idle := c.streams.isIdle(id)
	err := r.charge(1)
	c.mu.Unlock()
	switch {
	case idle:
		return &ConnError{Code: ProtocolError, Problem: "HEADERS on a stream that was never opened"}
	case err != nil:
		return err
	}
	return r.skip(block)
}

// handleAnswer takes the head of an answer. mu is held.
func (r *reader) handleAnswer(s *Stream, begun, mark int, end bool) error {
	h := Head{Fields: s.got.list[begun:len(s.got.list):len(s.got.list)], Length: -1}
	problem := h.parseAnswer()
	if problem == "" && h.Status < 200 && end {
		problem = "an informational head ends the stream"
	}
	if problem != "" {
		return r.streamError(s, ProtocolError, problem)
	}
	if h.Status < 200 {
		if s.headBytes += s.got.size; len(s.infos) >= maxInfos || s.headBytes > r.conn.config.MaxHeadBytes {
			s.got.list, s.got.arena = s.got.list[:begun], s.got.arena[:mark]
			return r.charge(1)
		}
		info := h
		s.infos = append(s.infos, &info)
		r.conn.waits.wakeSoon(&s.recv)
		return r.charge(1)
	}
	s.head, s.headDone, s.left = h, true, h.Length
	if s.toHead || h.Status == 204 || h.Status == 304 {
		s.left = 0
	}
	if end {
		if s.left > 0 {
			return r.streamError(s, ProtocolError, wrongLength)
		}
		s.recvDone()
	}
	r.conn.waits.wakeSoon(&s.recv)
	return nil
}

// maxInfos is how many informational heads are kept until somebody wants them; all of a stream are no longer than one
// head may be. They may be left out.
const maxInfos = 8

// handleTrailer takes a trailer. mu is held.
func (r *reader) handleTrailer(s *Stream, begun int, end bool) error {
	list := s.got.list[begun:len(s.got.list):len(s.got.list)]
	problem := checkTrailer(list)
	switch {
	case !end:
		problem = "a second head that does not end the stream"
	case s.left > 0:
		problem = wrongLength
	}
	if problem != "" {
		return r.streamError(s, ProtocolError, problem)
	}
	if c := r.conn; c.server {
		s.headBytes += s.got.size
		if c.streams.heads += s.got.size; c.streams.heads > maxHeads {
			s.got = fields{} // its handler may take a while to end
			return r.streamError(s, EnhanceYourCalm, "the heads and trailers of all streams take too much")
		}
	}
	s.trailer = list
	s.recvDone()
	r.conn.waits.wakeSoon(&s.recv)
	return nil
}

// newRequest takes the head of a request that opens a stream.
func (r *reader) newRequest(id uint32, block []byte, end bool) error {
	ok, err := r.admit(id)
	if err != nil {
		return err
	}
	if !ok {
		return r.skip(block)
	}
	s := newStream(r.conn)
	s.id, s.began = id, r.now
	if !r.hpack.decode(block, &s.got, r.conn.config.MaxHeadBytes) {
		s.recycle()
		return errBlock
	}
	s.head = Head{Fields: s.got.list[:len(s.got.list):len(s.got.list)], Length: -1}
	s.headDone, s.recvEnded = true, end
	problem := ""
	if !s.got.over {
		problem = s.head.parseRequest(&s.got.arena, r.conn.config.ExtendedConnect)
	}
	s.left = s.head.Length
	if problem == "" && end && s.left > 0 {
		problem = wrongLength
	}
	return r.enter(s, problem)
}

// admit reports whether a head may open the stream with that id. If not, the head is to be left out.
func (r *reader) admit(id uint32) (ok bool, err error) {
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	switch ok, err = c.streams.admit(id); {
	case err != nil:
		return false, err
	case !ok:
		return false, r.charge(1)
	}
	if c.streams.full() || c.workers.running >= 2*c.config.MaxStreams {
		return false, r.refuse(id, RefusedStream)
	}
	return true, nil
}

// enter takes a stream that a client has opened, unless something is wrong with it.
func (r *reader) enter(s *Stream, problem string) (err error) {
	c := r.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.dead:
	case s.got.over:
		err = r.answerTooLong(s)
	case problem != "":
		err = r.refuse(s.id, ProtocolError)
	default:
		c.enlist(s)
		s.headBytes = s.got.size
		c.streams.heads += s.headBytes
		r.fresh = append(r.fresh, s)
		return nil
	}
	s.recycle()
	return err
}

// answerTooLong answers a request whose head is too long. mu is held.
func (r *reader) answerTooLong(s *Stream) error {
	r.conn.out.answer(s.id, 431, nil, 0, true)
	if s.recvEnded {
		return r.charge(10)
	}
	return r.refuse(s.id, NoError)
}
