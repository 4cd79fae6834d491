package proxy

import "sync"

// bufferSize is the size of the buffers that requests and answers go through: what Linux hands over in one read of a
// busy loopback or a fast network is rarely more.
const bufferSize = 16 << 10

// maxHead is how long the head of a message may be.
const maxHead = 64 << 10

// buffers are taken when there is something to read and given back when it has gone on, so that idle connections hold
// none.
var buffers = sync.Pool{New: func() any {
	b := make([]byte, bufferSize)
	return &b
}}

// longBuffers are for heads that do not fit, and for the content of long answers.
var longBuffers = sync.Pool{New: func() any {
	b := make([]byte, maxHead)
	return &b
}}

// widenFrom is how much content has passed when more is taken at once.
const widenFrom = 256 << 10

// input is the bytes read from a connection and not used yet: buf[r:w].
type input struct {
	buf  *[]byte // nil while there is nothing
	r, w int
}

// unread is what has been read and not used.
func (in *input) unread() []byte {
	if in.buf == nil {
		return nil
	}
	return (*in.buf)[in.r:in.w]
}

// take marks n bytes of unread as used.
func (in *input) take(n int) { in.r += n }

// space is where the next bytes go. It takes a buffer if there is none, and makes room at the front only when
// everything has been used: what has been handed out stays where it is.
func (in *input) space() []byte {
	if in.buf == nil {
		in.buf = buffers.Get().(*[]byte)
		in.r, in.w = 0, 0
	}
	if in.r == in.w {
		in.r, in.w = 0, 0
	}
	return (*in.buf)[in.w:]
}

// grow makes room for a head that does not fit; false when it is longer than maxHead.
func (in *input) grow() bool {
	if in.r > 0 {
		in.w = copy(*in.buf, in.unread())
		in.r = 0
		return true
	}
	if len(*in.buf) >= maxHead {
		return false
	}
	long := longBuffers.Get().(*[]byte)
	copy(*long, (*in.buf)[:in.w])
	in.put()
	in.buf = long
	return true
}

// widen has the next bytes go to a long buffer, if all that there is has been used.
func (in *input) widen() {
	if in.buf != nil && in.r == in.w && len(*in.buf) == bufferSize {
		in.put()
		in.buf, in.r, in.w = longBuffers.Get().(*[]byte), 0, 0
	}
}

func (in *input) put() {
	switch {
	case in.buf == nil:
	case len(*in.buf) == bufferSize:
		buffers.Put(in.buf)
	default:
		longBuffers.Put(in.buf)
	}
	in.buf = nil
}

// release gives the buffer back if nothing is left in it.
func (in *input) release() {
	if in.r == in.w {
		in.put()
		in.r, in.w = 0, 0
	}
}
