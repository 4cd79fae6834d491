package h2

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// encoder writes header blocks: RFC 7541. A field is added to the table when it comes for the second time, so that one
// that differs in each request (a time limit, an id) does not evict those that stay. Nothing is written in Huffman's
// code: what is sent often is an index anyway.
type encoder struct {
	table
	seen    [64]uint32 // hashes of fields that were sent lately, each at its own index
	resized bool       // the peer does not know of the present size yet
	lower   []byte     // a name that was not in lower case
}

// hash differs for most fields that differ, by their lengths and by both ends of their values. Equal hashes are not yet
// equal fields.
func hash(name, value []byte) uint32 {
	const spread, mix = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := (head8(name)^uint64(len(name))<<56)*mix + tail8(name)
	h = (h ^ h>>32 ^ head8(value)) * spread
	h = (h ^ h>>29 ^ tail8(value) ^ uint64(len(value))<<48) * mix
	return uint32(h >> 32)
}

// head8 returns the first eight bytes of b, or all if it is shorter.
func head8(b []byte) (n uint64) {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	for i, c := range b {
		n |= uint64(c) << (8 * i)
	}
	return n
}

// tail8 returns the last eight bytes of b, or nothing if it is shorter.
func tail8(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b[len(b)-8:])
	}
	return 0
}

// resize follows the peer's SETTINGS_HEADER_TABLE_SIZE. The next block begins with the change, so that both sides make
// it at the same place. If the size changes again before that, the smallest size counts: not all decoders take two
// changes at once.
func (e *encoder) resize(max int) {
	max = min(max, tableSize)
	if e.resized {
		max = min(max, e.max)
	}
	if max == e.max {
		return
	}
	e.resized, e.max = true, max
	e.evict(max)
}

func (e *encoder) begin(b []byte) []byte {
	if !e.resized {
		return b
	}
	e.resized = false
	return appendInteger(b, 0x20, 5, e.max)
}

func (e *encoder) field(b, name, value []byte) []byte {
	for _, c := range name {
		if 'A' <= c && c <= 'Z' {
			e.lower = append(e.lower[:0], name...)
			for i, c := range e.lower {
				if 'A' <= c && c <= 'Z' {
					e.lower[i] = c + 'a' - 'A'
				}
			}
			name = e.lower
			break
		}
	}
	if secret(name) {
		return appendLiteral(b, 0x10, 4, name, value)
	}
	h := hash(name, value)
	for i := len(e.entries) - 1; i >= e.first; i-- {
		if e.entries[i].hash != h {
			continue
		}
		n := len(e.entries) - i
		if tname, tvalue := e.get(n); bytes.Equal(tname, name) && bytes.Equal(tvalue, value) {
			return appendInteger(b, 0x80, 7, len(static)+n)
		}
	}
	last := &e.seen[h%uint32(len(e.seen))]
	if *last != h || len(name)+len(value)+entryOverhead > e.max/4 {
		*last = h
		return appendLiteral(b, 0, 4, name, value)
	}
	b = appendLiteral(b, 0x40, 6, name, value) // before add: it may evict no index that this uses, but it shifts them
	e.add(name, value, h)
	return b
}

// secret reports whether a field holds what nobody may guess by trying how well it compresses: RFC 7541 §7.1.3.
func secret(name []byte) bool {
	switch string(name) {
	case "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key":
		return true
	}
	return false
}

// pseudo appends a pseudo-header field that is not in the static table with this value; its name has that index.
func (e *encoder) pseudo(b []byte, index int, value []byte) []byte {
	return e.field(b, staticFields[index].Name, value)
}

var protocolName = []byte(":protocol")

func (e *encoder) request(b []byte, h *Head) []byte {
	b = e.begin(b)
	switch string(h.Method) {
	case "GET":
		b = append(b, 0x80|2)
	case "POST":
		b = append(b, 0x80|3)
	default:
		b = e.pseudo(b, 2, h.Method)
	}
	if len(h.Protocol) > 0 {
		b = e.field(b, protocolName, h.Protocol)
	}
	if string(h.Method) != "CONNECT" || len(h.Protocol) > 0 {
		switch string(h.Scheme) {
		case "http", "":
			b = append(b, 0x80|6)
		case "https":
			b = append(b, 0x80|7)
		default:
			b = e.pseudo(b, 6, h.Scheme)
		}
		if len(h.Path) == 1 && h.Path[0] == '/' {
			b = append(b, 0x80|4)
		} else {
			b = e.pseudo(b, 4, h.Path)
		}
	}
	if len(h.Authority) > 0 {
		b = e.pseudo(b, 1, h.Authority)
	}
	return e.rest(b, h.Fields, h.Length)
}

func (e *encoder) answer(b []byte, status int, list []Field, length int64) []byte {
	b = e.begin(b)
	var digits [20]byte
	switch status {
	case 200:
		b = append(b, 0x80|8)
	case 204:
		b = append(b, 0x80|9)
	case 304:
		b = append(b, 0x80|11)
	case 404:
		b = append(b, 0x80|13)
	default:
		b = e.pseudo(b, 8, strconv.AppendInt(digits[:0], int64(status), 10))
	}
	return e.rest(b, list, length)
}

func (e *encoder) trailer(b []byte, list []Field) []byte { return e.rest(e.begin(b), list, -1) }

// contentLength is the index of "content-length" in the static table.
const contentLength = 28

func (e *encoder) rest(b []byte, list []Field, length int64) []byte {
	for i := range list {
		b = e.field(b, list[i].Name, list[i].Value)
	}
	if length >= 0 {
		var digits [20]byte
		b = e.pseudo(b, contentLength, strconv.AppendInt(digits[:0], length, 10))
	}
	return b
}

// appendLiteral appends a field that is written in full; for its name, an index suffices if the static table has it.
func appendLiteral(b []byte, kind byte, bits int, name, value []byte) []byte {
	i := staticNames[string(name)]
	b = appendInteger(b, kind, bits, int(i))
	if i == 0 {
		b = append(appendInteger(b, 0, 7, len(name)), name...)
	}
	return append(appendInteger(b, 0, 7, len(value)), value...)
}

// appendInteger appends a number whose first part shares a byte with kind: RFC 7541 §5.1.
func appendInteger(b []byte, kind byte, bits, n int) []byte {
	mask := 1<<bits - 1
	if n < mask {
		return append(b, kind|byte(n))
	}
	b = append(b, kind|byte(mask))
	for n -= mask; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}
