package h1

import (
	"encoding/binary"
	"math/bits"
)

// Classes of characters, bits of chars.
const (
	isToken  = 1 << iota // RFC 9110 section 5.6.2
	isTarget             // visible ASCII without '#', which would begin a fragment
	isHost               // of a host name: narrower than RFC 3986's reg-name, wider than DNS
	isHex
	isDigit
)

// chars holds the classes of every byte, lower its lower-case form.
var chars, lower = tables()

func tables() (class, low [256]uint8) {
	add := func(bit uint8, set string) {
		for i := range len(set) {
			class[set[i]] |= bit
		}
	}
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	add(isToken, digits+letters+"!#$%&'*+-.^_`|~")
	add(isHost, digits+letters+"-._~")
	add(isHex, digits+"abcdefABCDEF")
	add(isDigit, digits)
	for c := range 256 {
		if '!' <= c && c <= '~' && c != '#' {
			class[c] |= isTarget
		}
		low[c] = uint8(c)
		if 'A' <= c && c <= 'Z' {
			low[c] += 'a' - 'A'
		}
	}
	return class, low
}

// all reports whether every byte of b is of the class; an empty b is.
func all(b []byte, class uint8) bool {
	for _, c := range b {
		if chars[c]&class == 0 {
			return false
		}
	}
	return true
}

// token reports whether b is a token (RFC 9110 section 5.6.2), so not empty.
func token(b []byte) bool { return len(b) > 0 && all(b, isToken) }

// fold reports whether name, in lower case, is want.
func fold(name []byte, want string) bool {
	if len(name) != len(want) {
		return false
	}
	for i, c := range name {
		if lower[c] != want[i] {
			return false
		}
	}
	return true
}

// foldPrefix reports whether name, in lower case, begins with want.
func foldPrefix(name []byte, want string) bool {
	return len(name) >= len(want) && fold(name[:len(want)], want)
}

// textEnd returns the index of the first byte of b, from i on, that is a control
// character other than tab, len(b) if there is none. It looks at eight bytes at a
// time: this is most of what a head consists of.
func textEnd(b []byte, i int) int {
	const each = 0x0101010101010101
	for ; ; i++ {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			// The high bit of a byte is set if it is below 0x20, or 0x7f, which is 0 after the
			// exclusive or. A borrow may set it wrongly, but only behind one that is rightly set.
			if found := ((x - each*0x20) | ((x ^ each*0x7f) - each)) &^ x & (each * 0x80); found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
			i += 8
		}
		for i < len(b) && b[i] >= 0x20 && b[i] != 0x7f {
			i++ // at once false after a find above
		}
		if i == len(b) || b[i] != '\t' {
			return i
		}
	}
}

// trim removes white space (RFC 9110 section 5.6.3) from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}
