package tracing

import (
	"encoding/hex"
	"math/rand/v2"
)

// TraceID names a trace. The zero TraceID is none.
type TraceID [16]byte

// SpanID names a span within its trace. The zero SpanID is none.
type SpanID [8]byte

// String is the id in hexadecimal digits, as it is searched for.
func (id TraceID) String() string { return hex.EncodeToString(id[:]) }

// String is the id in hexadecimal digits.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

// Context is what the field traceparent of W3C Trace Context says: which span a request is made for.
type Context struct {
	Trace TraceID
	Span  SpanID
	Flags byte
}

// The flags of a Context. Others are not passed on: nobody knows what they mean.
const (
	Sampled = 1 // the span above is recorded
	Random  = 2 // the trace id is random (level 2 of the specification)
	known   = Sampled | Random
)

// Sampled reports whether the span is recorded.
func (c Context) Sampled() bool { return c.Flags&Sampled != 0 }

// size is that of version 00: version, trace id, span id and flags, with dashes between.
const size = 55

// Parse reads a traceparent. A version that is not known yet may have more behind the flags. What is not well-formed is
// none: ok is false. It allocates nothing.
func Parse(v []byte) (c Context, ok bool) {
	if len(v) < size || v[2] != '-' || v[35] != '-' || v[52] != '-' {
		return Context{}, false
	}
	if len(v) > size && (v[size] != '-' || v[0] == '0' && v[1] == '0') {
		return Context{}, false
	}
	var version, flags [1]byte
	if !decode(version[:], v[:2]) || version[0] == 0xff || !decode(c.Trace[:], v[3:35]) ||
		!decode(c.Span[:], v[36:52]) || !decode(flags[:], v[53:55]) {
		return Context{}, false
	}
	if c.Flags = flags[0] & known; c.Trace == (TraceID{}) || c.Span == (SpanID{}) {
		return Context{}, false
	}
	return c, true
}

// decode reads hexadecimal digits in lower case: the specification has no others.
func decode(dst, src []byte) bool {
	for i := range dst {
		high, low := digit(src[2*i]), digit(src[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		dst[i] = high<<4 | low
	}
	return true
}

func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

// Append writes c as a traceparent.
func (c Context) Append(dst []byte) []byte {
	v := [size]byte{'0', '0', '-', 35: '-', 52: '-', 53: '0', 54: '0' + c.Flags&known}
	hex.Encode(v[3:35], c.Trace[:])
	hex.Encode(v[36:52], c.Span[:])
	return append(dst, v[:]...)
}

// newTrace draws the id of a trace, which is never 0.
func newTrace() (id TraceID) {
	put(id[:8], rand.Uint64())
	put(id[8:], rand.Uint64()|1)
	return id
}

// NewSpan draws the id of a span, which is never 0.
func NewSpan() (id SpanID) {
	put(id[:], rand.Uint64()|1)
	return id
}

func put(dst []byte, n uint64) {
	for i := range 8 {
		dst[i] = byte(n >> (56 - 8*i))
	}
}
