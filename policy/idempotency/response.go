package idempotency

import (
	"encoding/binary"
	"errors"
	"slices"
)

// Field is one field of an answer's head.
type Field struct{ Name, Value string }

// TrailerMark begins the name of a stored field that came behind the body. No field of a header is called so.
const TrailerMark = ":"

// Response is an answer as it is stored and replayed.
type Response struct {
	// Status is its HTTP status.
	Status int
	// Header has its fields in their order, those of one name as often as they came.
	Header []Field
	// Body is all of it.
	Body []byte
	// Truncated reports whether the answer was too large to be stored: it can be reported, not replayed. Only Status is
	// stored with it.
	Truncated bool
}

// EffectUnknown reports whether the answer is that of an attempt of which nobody can say whether it took effect. See
// Unknown.
func (r Response) EffectUnknown() bool { return r.Truncated && r.Status >= 500 }

// The first byte of a stored answer says what follows.
const (
	whole     = 1 // status, number of fields, lengths of names and values, names and values, body
	truncated = 2 // status
)

// AppendTo appends the answer to b, in a form that ParseResponse reads and that does not change between versions: what
// a Store keeps.
func (r Response) AppendTo(b []byte) []byte {
	if r.Truncated {
		return binary.AppendVarint(append(b, truncated), int64(r.Status))
	}
	size := 1 + (2+2*len(r.Header))*binary.MaxVarintLen32 + len(r.Body)
	for _, f := range r.Header {
		size += len(f.Name) + len(f.Value)
	}
	b = append(slices.Grow(b, size), whole)
	b = binary.AppendVarint(b, int64(r.Status))
	b = binary.AppendUvarint(b, uint64(len(r.Header)))
	for _, f := range r.Header {
		b = binary.AppendUvarint(b, uint64(len(f.Name)))
		b = binary.AppendUvarint(b, uint64(len(f.Value)))
	}
	for _, f := range r.Header {
		b = append(append(b, f.Name...), f.Value...)
	}
	return append(b, r.Body...)
}

// errResponse is what ParseResponse says of anything else.
var errResponse = errors.New("idempotency: the stored answer is not one, or of a later version")

// ParseResponse reads what AppendTo wrote. Body is a part of b and not a copy.
func ParseResponse(b []byte) (Response, error) {
	if len(b) == 0 || b[0] != whole && b[0] != truncated {
		return Response{}, errResponse
	}
	status, n := binary.Varint(b[1:])
	if n <= 0 || int64(int(status)) != status {
		return Response{}, errResponse
	}
	r := Response{Status: int(status), Truncated: b[0] == truncated}
	b = b[1+n:]
	if r.Truncated {
		if len(b) > 0 {
			return Response{}, errResponse
		}
		return r, nil
	}
	var ok bool
	if r.Header, b, ok = parseHeader(b); !ok {
		return Response{}, errResponse
	}
	if len(b) > 0 {
		r.Body = slices.Clip(b)
	}
	return r, nil
}

// parseHeader reads the fields off the front of b.
func parseHeader(b []byte) (header []Field, rest []byte, ok bool) {
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b))/2 { // each has two lengths at least
		return nil, nil, false
	}
	b = b[n:]
	if count == 0 {
		return nil, b, true
	}
	lengths := make([]int, 2*count)
	total := 0
	for i := range lengths {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)) {
			return nil, nil, false
		}
		b = b[n:]
		lengths[i] = int(length)
		if total += int(length); total > len(b) {
			return nil, nil, false
		}
	}
	text := string(b[:total]) // one copy for all
	cut := func(length int) (s string) {
		s, text = text[:length], text[length:]
		return s
	}
	header = make([]Field, count)
	for i := range header {
		header[i] = Field{cut(lengths[2*i]), cut(lengths[2*i+1])}
	}
	return header, b[total:], true
}
