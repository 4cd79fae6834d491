package h2

import (
	"encoding/binary"
	"io"
	"os"

	"github.com/abate-go/abate/internal/nowait"
)

// input holds the bytes that were read from the socket and not handled yet. It holds memory while there are some. It
// belongs to the goroutine that reads.
type input struct {
	socket
	bytes   *chunk // nil while there are none
	handled int    // how many of them have been handled
	full    bool   // the last read filled all the space
	ready   func(fd uintptr) bool
	readErr error // of ready
}

// rest returns the bytes that have not been handled.
func (in *input) rest() []byte {
	if in.bytes == nil {
		return nil
	}
	return in.bytes.b[in.handled:]
}

// expect handles what the connection begins with, as far as it has come. It returns what is missing.
func (in *input) expect(first string) (string, error) {
	got := in.rest()
	n := min(len(got), len(first))
	if string(got[:n]) != first[:n] {
		problem := "the connection does not begin with the preface of HTTP/2"
		return first, &ConnError{Code: ProtocolError, Problem: problem}
	}
	in.handled += n
	return first[n:], nil
}

// nextFrame reads the frame at the beginning of b. n is its length, 0 if it has not come in whole.
func nextFrame(b []byte) (f frame, n int, err error) {
	if len(b) < frameOverhead {
		return f, 0, nil
	}
	length := int(b[0])<<16 | int(b[1])<<8 | int(b[2])
	if length > maxFrame {
		return f, 0, &ConnError{Code: FrameSizeError, Problem: "a frame is longer than SETTINGS_MAX_FRAME_SIZE"}
	}
	n = frameOverhead + length
	if len(b) < n {
		return f, 0, nil
	}
	f = frame{frameType(b[3]), b[4], binary.BigEndian.Uint32(b[5:]) & maxStreamID, b[frameOverhead:n]}
	return f, n, nil
}

func (in *input) fill() error {
	in.compact()
	if in.raw != nil {
		if err := in.raw.Read(in.ready); err != nil {
			return err
		}
		return in.readErr
	}
	space := in.space()
	n, err := in.nc.Read(space)
	in.full = n == len(space)
	if in.bytes.b = in.bytes.b[:len(in.bytes.b)+n]; n > 0 {
		return nil
	}
	return err
}

// readReady reads what there is. It takes the memory only now: a connection that waits holds none.
func (in *input) readReady(fd uintptr) bool {
	n, err := nowait.Read(fd, in.space())
	if err == nowait.ErrWouldBlock {
		in.compact()
		return false
	}
	in.bytes.b = in.bytes.b[:len(in.bytes.b)+n]
	switch {
	case err != nil:
		in.readErr = os.NewSyscallError("read", err)
	case n == 0:
		in.readErr = io.EOF
	default:
		in.readErr = nil
	}
	return true
}

// space returns where the next bytes go.
func (in *input) space() []byte {
	if in.bytes == nil {
		class := 3 // more than one frame of the largest size
		if in.raw == nil && !in.full {
			class = 1 // it is held while waiting
		}
		in.bytes, in.handled = newChunk(classes[class]), 0
	}
	return in.bytes.b[len(in.bytes.b):cap(in.bytes.b)]
}

// compact gives back memory whose bytes have all been handled, or makes room for the rest of the frame that has begun.
func (in *input) compact() {
	if in.bytes == nil {
		return
	}
	rest := in.rest()
	if len(rest) == 0 {
		in.release()
		return
	}
	need := frameOverhead
	if len(rest) >= frameOverhead {
		need += int(rest[0])<<16 | int(rest[1])<<8 | int(rest[2])
	}
	if in.handled+need <= cap(in.bytes.b) && len(in.bytes.b) < cap(in.bytes.b) {
		return
	}
	in.bytes.b = in.bytes.b[:copy(in.bytes.b, rest)]
	in.handled = 0
	in.bytes = in.bytes.room(need - len(rest))
}

func (in *input) release() {
	if in.bytes != nil {
		in.bytes.put()
		in.bytes, in.handled = nil, 0
	}
}
