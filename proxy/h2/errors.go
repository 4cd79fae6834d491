package h2

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Code is a reason for the end of a stream or a connection, as RFC 9113 §7 numbers them.
type Code uint32

// The codes of RFC 9113 §7.
const (
	NoError            Code = 0x0
	ProtocolError      Code = 0x1
	InternalError      Code = 0x2
	FlowControlError   Code = 0x3
	SettingsTimeout    Code = 0x4
	StreamClosed       Code = 0x5
	FrameSizeError     Code = 0x6
	RefusedStream      Code = 0x7
	Cancel             Code = 0x8
	CompressionError   Code = 0x9
	ConnectError       Code = 0xa
	EnhanceYourCalm    Code = 0xb
	InadequateSecurity Code = 0xc
	HTTP11Required     Code = 0xd
)

var codeNames = [...]string{
	"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
	"FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
	"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
}

// String returns the name of the code in RFC 9113.
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return fmt.Sprintf("error code %#x", uint32(c))
}

// StreamError is the early end of a stream: the peer reset it, its connection ended, or this side gave it up.
type StreamError struct {
	// Code is what the peer, or this side, gave as the reason.
	Code Code
	// Refused says that the peer has certainly not acted on the request: it said so (REFUSED_STREAM, or GOAWAY with a
	// lower last stream), or nothing of the request had been written. It may be sent again, whatever its method.
	Refused bool
	// Peer says that the peer ended the stream, or the connection in good order; if not, this side or the network did.
	Peer bool
	// Cause is what ended the connection, or what was wrong with the answer; nil for a reset by the peer.
	Cause error
}

// Error says who ended the stream and why.
func (e *StreamError) Error() string {
	who := "the stream was given up"
	if e.Peer {
		who = "the peer ended the stream"
	}
	said := ""
	if e.Refused {
		said = ", unprocessed"
	}
	if e.Cause != nil {
		return fmt.Sprintf("HTTP/2: %s%s (%s): %v", who, said, e.Code, e.Cause)
	}
	return fmt.Sprintf("HTTP/2: %s%s (%s)", who, said, e.Code)
}

// Unwrap returns Cause.
func (e *StreamError) Unwrap() error { return e.Cause }

// ConnError is the end of a connection by GOAWAY: one side broke the protocol, or asked too much of the other.
type ConnError struct {
	// Code is that of the GOAWAY frame.
	Code Code
	// Peer says that the peer sent it; if not, this side did, and the peer is to blame.
	Peer bool
	// Problem is what was wrong, in words, or the debug data of the peer.
	Problem string
}

// Error says who ended the connection and why.
func (e *ConnError) Error() string {
	if e.Peer {
		return fmt.Sprintf("HTTP/2: the peer ended the connection (%s) %s", e.Code, e.Problem)
	}
	return fmt.Sprintf("HTTP/2: %s: %s", e.Code, e.Problem)
}

var (
	// ErrTimeUp says that the time of a wait is up. It is a timeout in the sense of net.Error, os.ErrDeadlineExceeded and
	// context.DeadlineExceeded. The stream is as it was, and one may wait again.
	ErrTimeUp error = timeUp{}
	// ErrInterrupted says that Stream.Interrupt or Stream.StopReading ended a wait.
	ErrInterrupted = errors.New("HTTP/2: the wait was interrupted")
	// ErrGoingAway says that a connection takes no new streams: a side has sent GOAWAY, or it has ended. Nothing was sent.
	ErrGoingAway = errors.New("HTTP/2: the connection takes no new streams")
	// ErrTooManyStreams says that the peer allows no more streams at once. Nothing was sent.
	ErrTooManyStreams = errors.New("HTTP/2: the connection has as many streams as its peer allows")
	// ErrEnded says that a stream was written out of order: before its head, or after the end of this side.
	ErrEnded = errors.New("HTTP/2: written out of order: before the head, or after the end")
)

type timeUp struct{}

func (timeUp) Error() string   { return "HTTP/2: the time is up" }
func (timeUp) Timeout() bool   { return true }
func (timeUp) Temporary() bool { return true }
func (timeUp) Is(target error) bool {
	return target == os.ErrDeadlineExceeded || target == context.DeadlineExceeded
}
