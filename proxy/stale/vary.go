package stale

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/abate-go/abate/internal/fieldname"
	"github.com/abate-go/abate/proxy/h1"
)

// member splits the first member that is not empty off a comma-separated list (RFC 9110 section 5.6.1). At the list's
// end it is empty.
func member(list []byte) (first, rest []byte) {
	for len(list) > 0 {
		first, list, _ = bytes.Cut(list, []byte{','})
		first = skipBlank(first)
		for len(first) > 0 && blank(first[len(first)-1]) {
			first = first[:len(first)-1]
		}
		if len(first) > 0 {
			return first, list
		}
	}
	return nil, nil
}

// hasMember reports whether a list of names has this one, in whatever case.
func hasMember(list, name []byte) bool {
	for {
		var m []byte
		if m, list = member(list); len(m) == 0 {
			return false
		}
		if bytes.EqualFold(m, name) {
			return true
		}
	}
}

// appendConnection appends a list of what the Connection fields name: fields that are about this connection only.
func appendConnection(list []byte, fields []h1.Field) []byte {
	for i := range fields {
		if f := &fields[i]; f.Is("connection") {
			list = append(append(list, f.Value...), ',')
		}
	}
	return list
}

var acceptEncoding = []byte("accept-encoding")

// varyOf returns the names in a response's Vary in lower case with commas between them, "" if there are none. A
// response with an encoding depends on Accept-Encoding even when its service forgot to say so, as some do by default: a
// client that cannot decode it must not get it.
func varyOf(fields []h1.Field) string {
	var room [128]byte
	names, encoded := room[:0], false
	for i := range fields {
		f := &fields[i]
		encoded = encoded || f.Is("content-encoding")
		if !f.Is("vary") {
			continue
		}
		for name, list := member(f.Value); len(name) > 0; name, list = member(list) {
			names = appendName(names, name)
		}
	}
	if encoded && !hasMember(names, acceptEncoding) {
		names = appendName(names, acceptEncoding)
	}
	return string(names)
}

func appendName(names, name []byte) []byte {
	if len(names) > 0 {
		names = append(names, ',')
	}
	for _, c := range name {
		names = append(names, fieldname.Lower(c))
	}
	return names
}

// appendSelection appends what a request has in the fields that vary names. Two requests get the same variant if this
// is the same (RFC 9111 section 4.1): the same lines in the same order, or the field absent in both. Unlike that
// section says one may, values that mean the same but are written differently are not taken for equal.
func appendSelection(dst []byte, vary string, fields []h1.Field) []byte {
	for name := ""; vary != ""; {
		name, vary, _ = strings.Cut(vary, ",")
		for i := range fields {
			if f := &fields[i]; f.Is(name) {
				dst = append(dst, 1)
				dst = binary.AppendUvarint(dst, uint64(len(f.Value)))
				dst = append(dst, f.Value...)
			}
		}
		dst = append(dst, 0)
	}
	return dst
}
