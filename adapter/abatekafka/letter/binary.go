package letter

import (
	"encoding/binary"
	"time"
)

// maxAttempts is the largest number of attempts that Spring believes; beyond it starts again with 1.
const maxAttempts = 32767

func int32Bytes(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }
func int64Bytes(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// bigInteger writes as Java's BigInteger.toByteArray does: big-endian two's complement in as few bytes as keep the
// sign, at least one. v is not negative.
func bigInteger(v int64) []byte {
	b := int64Bytes(v)
	for len(b) > 1 && b[0] == 0 && b[1] < 0x80 {
		b = b[1:]
	}
	return b
}

// fromBigInteger reads 1 to 8 bytes, minimal or not.
func fromBigInteger(b []byte) (int64, bool) {
	if len(b) < 1 || len(b) > 8 {
		return 0, false
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v, true
}

// bigTime reads a time in milliseconds.
func bigTime(b []byte) (time.Time, bool) {
	ms, ok := fromBigInteger(b)
	t := time.UnixMilli(ms).UTC()
	return t, ok && plausible(t)
}

// readAttempts reads what Spring takes: one byte without a sign, or four.
func readAttempts(b []byte) (int, bool) {
	n := 0
	switch len(b) {
	case 1:
		n = int(b[0])
	case 4:
		n = int(int32(binary.BigEndian.Uint32(b)))
	}
	return n, n >= 1 && n <= maxAttempts
}
