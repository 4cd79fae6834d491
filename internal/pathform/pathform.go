// Package pathform gives the path of a request the one form in which it is matched and sent, and finds what a server
// may read in another way than whoever matched it.
package pathform

import (
	"bytes"
	"unicode/utf8"
)

// Canonical returns the canonical form of a path, without a query: characters that need no escape have none, other
// escapes are in upper case (RFC 3986 §6.2.2), and there are no dot segments and no empty ones. A slash at the end
// stays. It works in place and allocates nothing; a path that is canonical is not written to. What does not begin
// with a slash, and what has a % that begins no escape, is returned as it is.
func Canonical(path []byte) []byte {
	if isCanonical(path) || malformed(path) {
		return path
	}
	return withoutDots(unescaped(path))
}

// isCanonical reports whether Canonical would change nothing.
func isCanonical(path []byte) bool {
	if len(path) == 0 || path[0] != '/' {
		return true
	}
	for i, c := range path {
		switch c {
		case '/':
			if rest := path[i+1:]; len(rest) > 0 && (rest[0] == '/' || rest[0] == '.' && isDots(rest)) {
				return false
			}
		case '%':
			if v, ok := hexPair(path[i+1:]); ok && (unreserved(v) || path[i+1] >= 'a' || path[i+2] >= 'a') {
				return false
			}
		}
	}
	return true
}

// malformed reports whether a % begins no escape. What stands behind it could become one.
func malformed(path []byte) bool {
	for i, c := range path {
		if c == '%' {
			if _, ok := hexPair(path[i+1:]); !ok {
				return true
			}
		}
	}
	return false
}

// isDots reports whether b begins with a dot segment.
func isDots(b []byte) bool {
	if n := bytes.IndexByte(b, '/'); n >= 0 {
		b = b[:n]
	}
	return string(b) == "." || string(b) == ".."
}

func unescaped(path []byte) []byte {
	out := path[:0]
	for i := 0; i < len(path); i++ {
		v, ok := byte(0), false
		if path[i] == '%' {
			v, ok = hexPair(path[i+1:])
		}
		switch {
		case !ok:
			out = append(out, path[i])
			continue
		case unreserved(v):
			out = append(out, v)
		default:
			out = append(out, '%', upper(path[i+1]), upper(path[i+2]))
		}
		i += 2
	}
	return out
}

func withoutDots(path []byte) []byte {
	out := path[:0]
	for i := 0; i < len(path); {
		for i < len(path) && path[i] == '/' {
			i++
		}
		end := i
		for end < len(path) && path[end] != '/' {
			end++
		}
		segment := path[i:end]
		i = end
		switch string(segment) {
		case "", ".":
		case "..":
			out = out[:max(bytes.LastIndexByte(out, '/'), 0)]
		default:
			out = append(append(out, '/'), segment...)
			continue
		}
		if i == len(path) {
			out = append(out, '/')
		}
	}
	return out
}

// Doubt says why two servers may read a path, without its query, in two ways: a dot segment in any disguise, an empty
// segment, an escaped slash, a backslash, a semicolon, a control character, an escape of an escape, bytes that are
// not UTF-8. It is "" if there is no reason.
func Doubt(path []byte) string {
	if !suspicious(path) {
		return ""
	}
	s := scan(path)
	switch {
	case s.dots:
		return "a . or .. between slashes, perhaps escaped"
	case s.empty:
		return "two slashes in a row"
	case s.slash:
		return "an escaped slash or a backslash"
	case s.parameter:
		return "a semicolon"
	case s.control:
		return "a control character"
	case s.twice:
		return "an escape of an escape"
	case s.text:
		return "bytes that are not UTF-8"
	}
	return ""
}

// Disguise says why a path that is in canonical form leads elsewhere for a server that unescapes more, or cuts off what
// follows a semicolon: there is a dot segment in it that RFC 3986 does not know, a NUL, or ASCII in too many
// bytes. It is "" if there is no reason.
// Nobody writes such a path in good faith.
func Disguise(path []byte) string {
	if !suspicious(path) {
		return ""
	}
	switch s := scan(path); {
	case s.dots:
		return "a . or .. between slashes that are escaped, or with a semicolon behind it"
	case s.nul:
		return "a NUL"
	case s.overlong:
		return "ASCII in the disguise of longer UTF-8"
	}
	return ""
}

// suspicious reports whether a path needs a closer look. Most do not.
func suspicious(path []byte) bool {
	for i, c := range path {
		switch c {
		case '%', ';', '\\':
			return true
		case '/':
			if i+1 < len(path) && (path[i+1] == '/' || path[i+1] == '.') {
				return true
			}
		}
	}
	return false
}

// findings are what scan has found.
type findings struct {
	dots, empty, slash, parameter, control, nul, twice, text, overlong bool

	segment int     // dots so far in a segment that has nothing else; -1 for any other segment
	begun   bool    // a slash has been seen, and nothing behind it
	tail    [4]byte // bytes of a rune that is not complete
	pending int
	last    byte
}

// scan reads a path as the most forgiving server would.
func scan(path []byte) (s findings) {
	s.segment = -1
	for i := 0; i < len(path); {
		c, n, depth := decode(path[i:])
		i += n
		s.twice = s.twice || depth > 1
		s.nul = s.nul || c == 0
		s.control = s.control || c < ' ' || c == 0x7f
		s.utf8(c)
		s.last = c
		switch c {
		case '/', '\\':
			s.slash = s.slash || depth > 0 || c == '\\'
			s.empty = s.empty || s.begun
			s.endSegment()
			s.segment, s.begun = 0, true
			continue
		case ';':
			s.parameter = true
			s.endSegment()
		case '.':
			if s.segment >= 0 {
				s.segment++
			}
		default:
			s.segment = -1
		}
		s.begun = false
	}
	s.endSegment()
	s.text = s.text || s.pending > 0
	return s
}

// endSegment notes a dot segment.
func (s *findings) endSegment() {
	s.dots = s.dots || s.segment == 1 || s.segment == 2
	s.segment = -1
}

// utf8 checks that what is unescaped is UTF-8 in its shortest form.
func (s *findings) utf8(c byte) {
	if c < utf8.RuneSelf {
		s.text = s.text || s.pending > 0
		s.pending = 0
		return
	}
	s.overlong = s.overlong || s.last&^1 == 0xc0 && c < 0xc0 // what two bytes would say of ASCII: RFC 3629 §3
	s.tail[s.pending] = c
	s.pending++
	if utf8.FullRune(s.tail[:s.pending]) {
		r, size := utf8.DecodeRune(s.tail[:s.pending])
		s.text = s.text || r == utf8.RuneError && size == 1
		s.pending = 0
	}
}

// decode reads the first character of b, of n bytes, with all of its escapes off. depth is how many there were.
func decode(b []byte) (c byte, n, depth int) {
	c, n = b[0], 1
	for c == '%' {
		v, ok := hexPair(b[n:])
		if !ok {
			break
		}
		c, n, depth = v, n+2, depth+1
	}
	return c, n, depth
}

// hexPair reads two hexadecimal digits.
func hexPair(b []byte) (v byte, ok bool) {
	if len(b) < 2 {
		return 0, false
	}
	high, low := digit(b[0]), digit(b[1])
	return high<<4 | low&15, high < 16 && low < 16
}

func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return 16
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'f' {
		c -= 'a' - 'A'
	}
	return c
}

// unreserved reports whether a character needs no escape (RFC 3986 §2.3).
func unreserved(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~'
}
