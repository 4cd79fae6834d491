package h2

import "golang.org/x/net/http2/hpack"

// maxFields is how many fields a head or trailer may have, as over HTTP/1.1.
const maxFields = 256

// fields are the fields of the heads and trailers of one stream, and the memory that holds them.
type fields struct {
	arena []byte
	list  []Field
	size  int  // of the current head, as RFC 9113 §6.5.2 measures it
	over  bool // it is too long, and its fields are no longer kept
}

// Write appends to the arena: the decoder of Huffman's code needs a writer.
func (f *fields) Write(p []byte) (int, error) {
	f.arena = append(f.arena, p...)
	return len(p), nil
}

// decoder reads header blocks: RFC 7541.
type decoder struct {
	table
}

// next is a field while it is read. Its value lies in the arena, and so does its name unless the static table has it.
type next struct {
	fixed     []byte // a name from the static table
	name, end int    // in the arena: the name is [name:value], the value [value:end]
	value     int
}

// decode adds the fields of a complete block to f. Fields beyond max, in the measure of RFC 9113 §6.5.2, are read but
// not kept. It reports false if the block is damaged, and with it the state of the whole connection.
func (d *decoder) decode(block []byte, f *fields, max int) bool {
	f.size, f.over = 0, false
	begun := len(f.list)
	for updates := 0; len(block) > 0; {
		first := block[0]
		mark := len(f.arena)
		var n next
		var ok bool
		switch {
		case first&0x80 != 0:
			var i int
			if i, block, ok = integer(block, 7); !ok || !d.copyField(i, f, &n) {
				return false
			}
		case first&0xe0 == 0x20:
			var size int
			size, block, ok = integer(block, 5)
			if updates++; !ok || size > tableSize || len(f.list) > begun || f.size > 0 || updates > 2 {
				return false
			}
			d.max = size
			d.evict(size)
			continue
		default:
			bits := 4
			if first&0x40 != 0 {
				bits = 6
			}
			if block, ok = d.literal(block, bits, f, &n); !ok {
				return false
			}
			if bits == 6 {
				d.add(n.nameIn(f), f.arena[n.value:n.end], 0)
			}
		}
		f.keep(&n, mark, begun, max)
	}
	return true
}

func (n *next) nameIn(f *fields) []byte {
	if n.fixed != nil {
		return n.fixed
	}
	return f.arena[n.name:n.value:n.value]
}

// keep adds the field to the list, or drops its bytes.
func (f *fields) keep(n *next, mark, begun, max int) {
	name := n.nameIn(f)
	f.size += len(name) + n.end - n.value + entryOverhead
	if f.size > max || len(f.list)-begun >= maxFields {
		f.over = true
	}
	if f.over {
		f.arena = f.arena[:mark]
		return
	}
	f.list = append(f.list, Field{Name: name, Value: f.arena[n.value:n.end:n.end]})
}

// copyName copies the name with index i to the arena, unless the static table has it.
func (d *decoder) copyName(i int, f *fields, n *next) bool {
	switch {
	case i <= 0 || i > len(static)+d.count():
		return false
	case i <= len(static):
		n.fixed = staticFields[i].Name
	default:
		name, _ := d.get(i - len(static))
		f.arena = append(f.arena, name...)
	}
	return true
}

func (d *decoder) copyField(i int, f *fields, n *next) bool {
	n.name = len(f.arena)
	if !d.copyName(i, f, n) {
		return false
	}
	n.value = len(f.arena)
	if i <= len(static) {
		f.arena = append(f.arena, static[i-1].value...)
	} else {
		_, value := d.get(i - len(static))
		f.arena = append(f.arena, value...)
	}
	n.end = len(f.arena)
	return true
}

// literal reads a field whose value is written in full. Its name is too, or has an index in that many bits.
func (d *decoder) literal(block []byte, bits int, f *fields, n *next) (rest []byte, ok bool) {
	i, rest, ok := integer(block, bits)
	if !ok {
		return nil, false
	}
	n.name = len(f.arena)
	if i == 0 {
		rest, ok = text(rest, f)
	} else {
		ok = d.copyName(i, f, n)
	}
	if !ok {
		return nil, false
	}
	n.value = len(f.arena)
	rest, ok = text(rest, f)
	n.end = len(f.arena)
	return rest, ok
}

// text reads a string into the arena.
func text(b []byte, f *fields) (rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, false
	}
	huffman := b[0]&0x80 != 0
	n, b, ok := integer(b, 7)
	if !ok || n > len(b) {
		return nil, false
	}
	if !huffman {
		f.arena = append(f.arena, b[:n]...)
	} else if _, err := hpack.HuffmanDecode(f, b[:n]); err != nil {
		return nil, false
	}
	return b[n:], true
}

// integer reads a number that begins in the last bits of the first byte: RFC 7541 §5.1. Numbers of 2^28 and more, which
// no block needs, are refused.
func integer(b []byte, bits int) (n int, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, false
	}
	mask := 1<<bits - 1
	n = int(b[0]) & mask
	if n < mask {
		return n, b[1:], true
	}
	for i := 1; i < len(b) && i <= 4; i++ {
		n += int(b[i]&0x7f) << (7 * (i - 1))
		if b[i]&0x80 == 0 {
			return n, b[i+1:], true
		}
	}
	return 0, nil, false
}
