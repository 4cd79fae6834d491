package h2

import "encoding/binary"

// frameType is the type of a frame: RFC 9113 §6.
type frameType uint8

const (
	dataFrame         frameType = 0x0
	headersFrame      frameType = 0x1
	priorityFrame     frameType = 0x2
	resetFrame        frameType = 0x3
	settingsFrame     frameType = 0x4
	pushFrame         frameType = 0x5
	pingFrame         frameType = 0x6
	goAwayFrame       frameType = 0x7
	windowFrame       frameType = 0x8
	continuationFrame frameType = 0x9
)

const (
	flagEndStream  = 0x1
	flagAck        = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

const (
	frameOverhead = 9
	maxFrame      = 16384 // the longest payload of a frame that is accepted, and that is sent
	maxStreamID   = 1<<31 - 1
	maxWindow     = 1<<31 - 1
	initialWindow = 65535
)

// preface is how a client begins: RFC 9113 §3.4.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// Settings: RFC 9113 §6.5.2.
const (
	headerTableSize      = 0x1
	enablePush           = 0x2
	maxConcurrentStreams = 0x3
	initialWindowSize    = 0x4
	maxFrameSize         = 0x5
	maxHeaderListSize    = 0x6
	enableConnect        = 0x8 // RFC 8441 §3
)

// What a PING that this side sends is for.
const (
	lifePing  = 0x616c6976653f0000
	drainPing = 0x6c6173743f000000
)

// frame is a frame as it was read. Its payload is valid while the frame is handled.
type frame struct {
	kind    frameType
	flags   uint8
	id      uint32
	payload []byte
}

func (f *frame) has(flag uint8) bool { return f.flags&flag != 0 }

func appendFrame(b []byte, length int, kind frameType, flags uint8, id uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), flags,
		byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

func appendSetting(b []byte, name uint16, value int) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, name), uint32(value))
}

func appendPing(b []byte, flags uint8, data uint64) []byte {
	return binary.BigEndian.AppendUint64(appendFrame(b, 8, pingFrame, flags, 0), data)
}

func appendReset(b []byte, id uint32, code Code) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(b, 4, resetFrame, 0, id), uint32(code))
}

func appendWindow(b []byte, id uint32, more int) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(b, 4, windowFrame, 0, id), uint32(more))
}

func appendGoAway(b []byte, last uint32, code Code, problem string) []byte {
	b = appendFrame(b, 8+len(problem), goAwayFrame, 0, 0)
	b = binary.BigEndian.AppendUint32(b, last)
	return append(binary.BigEndian.AppendUint32(b, uint32(code)), problem...)
}
