package h2

import "sync"

// chunk is a piece of memory from a pool: received content, frames to be sent, or what has been read from the socket. A
// connection that has nothing to do holds none.
type chunk struct {
	b     []byte
	class int // in classes, -1 for one of unusual size
}

// classes are the sizes of chunks.
var classes = [...]int{1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10}

var chunks [len(classes)]sync.Pool

// newChunk is an empty chunk with room for n bytes.
func newChunk(n int) *chunk {
	for class, size := range classes {
		if n > size {
			continue
		}
		if c, ok := chunks[class].Get().(*chunk); ok {
			return c
		}
		return &chunk{make([]byte, 0, size), class}
	}
	return &chunk{make([]byte, 0, n), -1}
}

// put gives the chunk back.
func (c *chunk) put() {
	if c.class >= 0 && cap(c.b) == classes[c.class] {
		c.b = c.b[:0]
		chunks[c.class].Put(c)
	}
}

// room is c, or a larger chunk in its place, with room for n bytes more. c may be nil.
func (c *chunk) room(n int) *chunk {
	if c == nil {
		return newChunk(n)
	}
	if len(c.b)+n <= cap(c.b) {
		return c
	}
	larger := newChunk(max(len(c.b)+n, min(2*cap(c.b), classes[len(classes)-1])))
	larger.b = append(larger.b, c.b...)
	c.put()
	return larger
}

// streamPool is the streams that have ended.
var streamPool = sync.Pool{New: func() any { return new(Stream) }}

// What a stream keeps of its memory for the next one.
const (
	keptArena  = 4 << 10
	keptFields = 64
)

// recycle keeps a stream for later. Nobody may know it any more.
func (s *Stream) recycle() {
	for _, c := range [...]*chunk{s.in, s.cur} {
		if c != nil {
			c.put()
		}
	}
	arena, list := s.got.arena[:0], s.got.list[:0]
	if cap(arena) > keptArena {
		arena = nil
	}
	if cap(list) > keptFields {
		list = nil
	}
	*s = Stream{got: fields{arena: arena, list: list}}
	streamPool.Put(s)
}

// newStream is a stream of c. It holds no channels, which belong to a bubble in tests with virtual time.
func newStream(c *Conn) *Stream {
	s := streamPool.Get().(*Stream)
	s.conn, s.recv.woken.L, s.send.woken.L = c, &c.mu, &c.mu
	return s
}
