package proxy_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
)

// literals adds fields to a block, as HPACK has them without a table.
func literals(block []byte, fields ...string) []byte {
	for i, s := range fields {
		if i%2 == 0 {
			block = append(block, 0)
		}
		block = append(append(block, byte(len(s))), s...)
	}
	return block
}

// cramped is a service that speaks HTTP/2 and never has room for more than window bytes of a request. It tells of the
// nth request, and of the first content of that.
func cramped(t *testing.T, window uint32, head, first func(f *frames, stream uint32, n int)) string {
	var requests atomic.Int32
	s := rawUpstream(t, func(c net.Conn, _ int) {
		f := &frames{c, t}
		if _, err := io.ReadFull(c, make([]byte, 24)); err != nil { // the preface
			return
		}
		f.write(settingsFrame, 0, 0, binary.BigEndian.AppendUint32([]byte{0, 4}, window))
		for number := map[uint32]int{}; ; {
			kind, flags, stream, payload, err := f.read()
			switch {
			case err != nil:
				return
			case kind == settingsFrame && flags&ack == 0:
				f.write(settingsFrame, ack, 0, nil)
			case kind == pingFrame && flags&ack == 0:
				f.write(pingFrame, ack, 0, payload)
			case kind == headersFrame:
				number[stream] = int(requests.Add(1))
				head(f, stream, number[stream])
			case kind == dataFrame && number[stream] > 0:
				first(f, stream, number[stream])
				number[stream] = 0
			}
		}
	})
	return strings.Replace(s.url, "http://", "h2c://", 1)
}

// sayRPC answers a call of gRPC with a message, or, if that is "", with a code alone.
func sayRPC(f *frames, stream uint32, message, code string) {
	head := literals([]byte{0x88}, "content-type", "application/grpc")
	if message == "" {
		f.write(headersFrame, endHeaders|endStream, stream, append(head, literals(nil, "grpc-status", code)...))
		return
	}
	f.write(headersFrame, endHeaders, stream, head)
	f.write(dataFrame, 0, stream, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
	f.write(headersFrame, endHeaders|endStream, stream, literals(nil, "grpc-status", code))
}

// A service may answer a repeated call of which it has no room for what is kept: the attempt waits for its answer, and
// not for the room.
func TestARepeatedCallIsAnsweredWhateverRoomTheServiceHas(t *testing.T) {
	for _, ended := range []bool{false, true} {
		url := cramped(t, 8, func(f *frames, stream uint32, n int) {
			if n > 1 {
				sayRPC(f, stream, "good", "0")
			}
		}, func(f *frames, stream uint32, n int) {
			if n == 1 {
				sayRPC(f, stream, "", "14")
			}
		})
		r := start(t, single([]string{url}, "retryMethods: [/a.B/*]", quickRetry, "attemptTimeout: 1h"))
		c := converse(t, dialGRPC(t, r.addr), "/a.B/Chat").say(strings.Repeat("x", 10_000))
		if ended {
			_ = c.CloseSend()
		}
		c.hear("good").ends(codes.OK)
	}
}

// The answer may come before the goroutine has begun that sends what there is no room for.
func TestAnAnswerMayComeBeforeTheRestIsSent(t *testing.T) {
	url := cramped(t, 8, func(f *frames, stream uint32, _ int) {
		f.write(headersFrame, endHeaders|endStream, stream, statusOK)
	}, func(*frames, uint32, int) {})
	r := start(t, single([]string{url}, noBreaker))
	var all sync.WaitGroup
	for range 8 {
		c := r.dial()
		all.Go(func() {
			for range 200 {
				a, err := c.send("POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 1000\r\n\r\n" +
					strings.Repeat("x", 1000)).read("POST")
				if err != nil || a.status != 200 {
					t.Errorf("got %+v, %v", a, err)
					return
				}
			}
		})
	}
	all.Wait()
}
