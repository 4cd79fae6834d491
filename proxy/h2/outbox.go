package h2

// outbox holds the frames that wait to be written, in the order in which the peer will read them. That order is also
// the one in which their heads were compressed. The mutex of the connection guards it.
type outbox struct {
	frames *chunk // nil for none
	taken  uint64 // how many bytes have left frames to be written
	hpack  encoder
}

const (
	// maxOut is how much may wait to be written. Heads and what the protocol demands may exceed it.
	maxOut = 64 << 10
	// flushFrom is how much has come together when it is written unasked.
	flushFrom = 16 << 10
	// maxOwed is how much more than maxOut a peer that does not read may cause to be sent, by PING and the like.
	maxOwed = 64 << 10
)

// waiting returns how many bytes wait.
func (o *outbox) waiting() int {
	if o.frames == nil {
		return 0
	}
	return len(o.frames.b)
}

// hasRoom reports whether content may be added.
func (o *outbox) hasRoom() bool { return o.waiting() < maxOut*3/4 }

// position returns where the next frame begins, among all bytes that are sent.
func (o *outbox) position() uint64 { return o.taken + uint64(o.waiting()) }

// take removes all that waits, which is not nothing.
func (o *outbox) take() *chunk {
	b := o.frames
	o.frames = nil
	o.taken += uint64(len(b.b))
	return b
}

// release gives back the memory of frames that nobody writes.
func (o *outbox) release() {
	if o.frames != nil {
		o.frames.put()
		o.frames = nil
	}
}

func (o *outbox) room(n int) *chunk {
	o.frames = o.frames.room(n)
	return o.frames
}

func (o *outbox) ping(flags uint8, data uint64) {
	f := o.room(frameOverhead + 8)
	f.b = appendPing(f.b, flags, data)
}

func (o *outbox) reset(id uint32, code Code) {
	f := o.room(frameOverhead + 4)
	f.b = appendReset(f.b, id, code)
}

func (o *outbox) window(id uint32, more int) {
	f := o.room(frameOverhead + 4)
	f.b = appendWindow(f.b, id, more)
}

func (o *outbox) goAway(last uint32, code Code, problem string) {
	f := o.room(frameOverhead + 8 + len(problem))
	f.b = appendGoAway(f.b, last, code, problem)
}

func (o *outbox) settingsAck() {
	f := o.room(frameOverhead)
	f.b = appendFrame(f.b, 0, settingsFrame, flagAck, 0)
}

// greeting adds what a connection begins with.
func (o *outbox) greeting(server bool, config *Config) {
	f := o.room(classes[0])
	f.b = appendGreeting(f.b, server, config)
}

func (o *outbox) data(id uint32, p []byte, end bool) {
	flags := uint8(0)
	if end {
		flags = flagEndStream
	}
	f := o.room(frameOverhead + len(p))
	f.b = append(appendFrame(f.b, len(p), dataFrame, flags, id), p...)
}

func (o *outbox) request(id uint32, h *Head, end bool) {
	at := o.beginBlock(blockSize(h.Fields) + len(h.Method) + len(h.Scheme) + len(h.Authority) + len(h.Path) + 64)
	o.frames.b = o.hpack.request(o.frames.b, h)
	o.endBlock(at, id, end)
}

func (o *outbox) answer(id uint32, status int, list []Field, length int64, end bool) {
	at := o.beginBlock(blockSize(list))
	o.frames.b = o.hpack.answer(o.frames.b, status, list, length)
	o.endBlock(at, id, end)
}

func (o *outbox) trailer(id uint32, list []Field) {
	at := o.beginBlock(blockSize(list))
	o.frames.b = o.hpack.trailer(o.frames.b, list)
	o.endBlock(at, id, true)
}

// blockSize returns the most that a block with those fields takes, without the pseudo fields of a request.
func blockSize(list []Field) int {
	n := 64
	for i := range list {
		n += len(list[i].Name) + len(list[i].Value) + 8
	}
	return n
}

// beginBlock makes room for a block, and for the frame that begins at the index that it returns.
func (o *outbox) beginBlock(size int) (at int) {
	f := o.room(size + frameOverhead)
	at = len(f.b)
	f.b = append(f.b, make([]byte, frameOverhead)...)
	return at
}

// endBlock makes frames of the block behind at: one, if it fits.
func (o *outbox) endBlock(at int, id uint32, end bool) {
	flags := uint8(0)
	if end {
		flags = flagEndStream
	}
	f := o.frames
	n := len(f.b) - at - frameOverhead
	if n <= maxFrame {
		appendFrame(f.b[:at], n, headersFrame, flags|flagEndHeaders, id)
		return
	}
	block := append([]byte(nil), f.b[at+frameOverhead:]...)
	f.b = f.b[:at]
	f = o.room(n + (n/maxFrame+1)*frameOverhead)
	for kind := headersFrame; len(block) > 0; kind, flags = continuationFrame, 0 {
		piece := block[:min(len(block), maxFrame)]
		block = block[len(piece):]
		if len(block) == 0 {
			flags |= flagEndHeaders
		}
		f.b = append(appendFrame(f.b, len(piece), kind, flags, id), piece...)
	}
}
