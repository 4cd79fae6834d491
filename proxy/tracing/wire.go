package tracing

import (
	"encoding/binary"
	"math"
)

// The ways in which protocol buffers write a field (protobuf.dev, "Encoding"). Two more are of no use any longer.
const (
	varint  = 0
	fixed64 = 1
	counted = 2 // so many bytes
	fixed32 = 5
)

// appendTag begins a field.
func appendTag(dst []byte, number, kind int) []byte {
	return binary.AppendUvarint(dst, uint64(number)<<3|uint64(kind))
}

// appendVarint writes a field that is a number.
func appendVarint(dst []byte, number int, n uint64) []byte {
	return binary.AppendUvarint(appendTag(dst, number, varint), n)
}

// appendBytes writes a field that is a text, or a message.
func appendBytes[T string | []byte](dst []byte, number int, content T) []byte {
	return append(binary.AppendUvarint(appendTag(dst, number, counted), uint64(len(content))), content...)
}

// each goes over the fields of a message, as far as they can be read. A field has a number or bytes; those of other
// kinds are passed over.
func each(message []byte, field func(number int, n uint64, bytes []byte)) {
	for len(message) > 0 {
		tag, used := binary.Uvarint(message)
		if used <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return
		}
		message = message[used:]
		var n uint64
		var bytes []byte
		switch tag & 7 {
		case varint:
			n, used = binary.Uvarint(message)
		case counted:
			var length uint64
			if length, used = binary.Uvarint(message); used <= 0 || length > uint64(len(message)-used) {
				return
			}
			bytes = message[used : used+int(length)]
			used += int(length)
		case fixed64:
			used = 8
		case fixed32:
			used = 4
		default:
			return
		}
		if used <= 0 || used > len(message) {
			return
		}
		field(int(tag>>3), n, bytes)
		message = message[used:]
	}
}
