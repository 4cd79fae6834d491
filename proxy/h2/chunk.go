package h2

import "sync"

// chunk is a piece of memory from a pool: for received content, frames to be sent, or what was read from the socket. A
// connection that has nothing to do holds none.
type chunk struct {
	b     []byte
	class int // an index into classes; -1 for another size
}

// classes are the sizes of chunks.
var classes = [...]int{1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10}

var chunks [len(classes)]sync.Pool

// newChunk returns an empty chunk with room for n bytes.
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

func (c *chunk) put() {
	if c.class >= 0 && cap(c.b) == classes[c.class] {
		c.b = c.b[:0]
		chunks[c.class].Put(c)
	}
}

// room returns c, or a larger chunk in its place, with room for n more bytes. c may be nil.
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
