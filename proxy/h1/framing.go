package h1

import (
	"bytes"
	"math"
)

const maxOptions = 16

// framing is what the fields that belong to one connection say: where the body ends,
// and what happens to the connection afterwards.
type framing struct {
	length   int64 // the Content-Length field, -1 without one
	chunked  bool
	close    bool     // the options of Connection
	keep     bool     //
	switches bool     //
	options  int      // how many there are, known or not
	named    [][]byte // those that are names of other fields
	upgrade  []byte   // the Upgrade field
}

// field reads one of the fields that requests and responses share. line is all of it.
func (f *framing) field(k kind, value, line []byte) *Error {
	switch k {
	case contentLength:
		return f.contentLength(value, line)
	case transferEncoding:
		return f.transferEncoding(value, line)
	case connectionField:
		return f.connection(value)
	}
	return nil
}

func (f *framing) contentLength(value, line []byte) *Error {
	if f.length >= 0 {
		return errTwoLengths
	}
	if bytes.IndexByte(line, '\t') >= 0 {
		return errTab
	}
	if len(value) == 0 {
		return errLength
	}
	var n int64
	for _, c := range value {
		d := int64(c) - '0'
		if chars[c]&isDigit == 0 || n > (math.MaxInt64-d)/10 {
			return errLength
		}
		n = n*10 + d
	}
	f.length = n
	return nil
}

func (f *framing) transferEncoding(value, line []byte) *Error {
	const chunked = "chunked"
	switch {
	case f.chunked:
		return errTwoCodings
	case bytes.IndexByte(line, '\t') >= 0:
		return errTab
	case fold(value, chunked):
		f.chunked = true
		return nil
	case len(value) == 0 || foldPrefix(value, chunked):
		return errCodingList
	default:
		return errCoding
	}
}

// connection reads a Connection field. Empty elements of the list are skipped (RFC
// 9110 section 5.6.1.2).
func (f *framing) connection(value []byte) *Error {
	for len(value) > 0 {
		var option []byte
		option, value = element(value)
		if len(option) == 0 {
			continue
		}
		if f.options++; f.options > maxOptions {
			return errOptions
		}
		switch {
		case fold(option, "keep-alive"):
			f.keep = true
		case fold(option, "close"):
			f.close = true
		case fold(option, "upgrade"):
			f.switches = true
		case !token(option):
			return errOption
		default:
			f.named = append(f.named, option)
		}
	}
	return nil
}

// persists reports whether the connection stays open after a message of HTTP/1.minor
// (RFC 9112 section 9.3).
func (f *framing) persists(minor int) bool {
	return !f.close && (minor > 0 || f.keep)
}

// settle checks what only all fields together can say.
func (f *framing) settle(minor int) *Error {
	switch {
	case f.chunked && f.length >= 0:
		return errTwoFramings
	case f.chunked && minor == 0:
		return errCodingIn10
	}
	return nil
}

// drop removes the fields that Connection names, in place.
func (f *framing) drop(fields []Field) []Field {
	if len(f.named) == 0 {
		return fields
	}
	kept := fields[:0]
	for _, field := range fields {
		if !f.names(field.Name) {
			kept = append(kept, field)
		}
	}
	return kept
}

func (f *framing) names(name []byte) bool {
	for _, option := range f.named {
		if bytes.EqualFold(option, name) { // both are tokens, so ASCII
			return true
		}
	}
	return false
}

// switchesTo returns the protocols that may be switched to, nil if there are none: if
// Connection does not name Upgrade it was meant for somebody else (RFC 9110 section
// 7.8), and HTTP/1.0 cannot switch. h2c among them makes it nil as well: the requests
// inside would pass unseen.
func (f *framing) switchesTo(minor int) []byte {
	if !f.switches || minor == 0 || len(f.upgrade) == 0 {
		return nil
	}
	for rest := f.upgrade; len(rest) > 0; {
		var protocol []byte
		protocol, rest = element(rest)
		if name, _, _ := bytes.Cut(protocol, []byte{'/'}); fold(name, "h2c") {
			return nil
		}
	}
	return f.upgrade
}

// protocols reports whether an Upgrade field is a list of protocols.
func protocols(value []byte) bool {
	for len(value) > 0 {
		var protocol []byte
		protocol, value = element(value)
		name, version, versioned := bytes.Cut(protocol, []byte{'/'})
		if len(protocol) > 0 && (!token(name) || versioned && !token(version)) {
			return false
		}
	}
	return true
}

// element cuts the first element off a comma-separated list.
func element(list []byte) (first, rest []byte) {
	if i := bytes.IndexByte(list, ','); i >= 0 {
		return trim(list[:i]), list[i+1:]
	}
	return trim(list), nil
}
