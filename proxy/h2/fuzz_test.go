package h2_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/abate-go/abate/proxy/h2"
)

// replay is a connection whose peer sends everything at once, in pieces of one size, and reads all.
type replay struct {
	data  []byte
	piece int
	sent  atomic.Int64
}

func (r *replay) Read(p []byte) (int, error) {
	if len(r.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.data[:min(r.piece, len(r.data))])
	r.data = r.data[n:]
	return n, nil
}

func (r *replay) Write(p []byte) (int, error)      { r.sent.Add(int64(len(p))); return len(p), nil }
func (r *replay) Close() error                     { return nil }
func (r *replay) LocalAddr() net.Addr              { return nil }
func (r *replay) RemoteAddr() net.Addr             { return nil }
func (r *replay) SetDeadline(time.Time) error      { return nil }
func (r *replay) SetReadDeadline(time.Time) error  { return nil }
func (r *replay) SetWriteDeadline(time.Time) error { return nil }

// frames builds what a peer sends.
func frames(write func(f *http2.Framer, block func(pairs ...string) []byte)) []byte {
	var b, fields bytes.Buffer
	f := http2.NewFramer(&b, nil)
	f.AllowIllegalWrites = true
	e := hpack.NewEncoder(&fields)
	write(f, func(pairs ...string) []byte {
		fields.Reset()
		for i := 0; i < len(pairs); i += 2 {
			e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
		}
		return bytes.Clone(fields.Bytes())
	})
	return b.Bytes()
}

func seeds(f *testing.F, answers bool) {
	head := get
	if answers {
		head = []string{":status", "200"}
	}
	for _, write := range []func(f *http2.Framer, block func(...string) []byte){
		func(f *http2.Framer, block func(...string) []byte) {
			whole := block(head...)
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: whole, EndStream: true, EndHeaders: true})
		},
		func(f *http2.Framer, block func(...string) []byte) {
			long := block(append(head, "content-length", "5")...)
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: long, EndHeaders: true})
			f.WriteDataPadded(1, false, []byte("he"), make([]byte, 3))
			f.WriteData(1, false, []byte("llo"))
			trailer := block("a", "b")
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: trailer, EndStream: true, EndHeaders: true})
		},
		func(f *http2.Framer, block func(...string) []byte) {
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: block(head...)})
			f.WriteContinuation(3, true, block("cookie", "a", "cookie", "b", "te", "trailers"))
			f.WriteRSTStream(3, http2.ErrCodeCancel)
			f.WritePriority(5, http2.PriorityParam{})
			f.WriteWindowUpdate(0, 100)
			f.WriteWindowUpdate(1, 100)
			f.WritePing(false, [8]byte{1})
			f.WriteSettings(http2.Setting{ID: 1, Val: 0}, http2.Setting{ID: 3, Val: 1}, http2.Setting{ID: 4, Val: 0})
			f.WriteGoAway(1, http2.ErrCodeNo, []byte("bye"))
			f.WriteData(1, true, make([]byte, 1000))
		},
		func(f *http2.Framer, block func(...string) []byte) {
			long := block(append(head, "a", strings.Repeat("x", 9000))...)
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: long, EndHeaders: true})
			f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(":status", "103"), EndHeaders: true})
		},
	} {
		f.Add(frames(write), uint16(7))
		f.Add(frames(write), uint16(60000))
	}
}

var settings = frames(func(f *http2.Framer, _ func(...string) []byte) { f.WriteSettings() })

// FuzzServer lets a server read what a client may send. The server must end, answer within bounds and leave nothing
// behind.
func FuzzServer(f *testing.F) {
	seeds(f, false)
	config := &h2.Config{MaxStreams: 5, MaxHeadBytes: 8000}
	f.Fuzz(func(t *testing.T, data []byte, piece uint16) {
		r := &replay{data: append(append([]byte(http2.ClientPreface), settings...), data...), piece: int(piece) + 1}
		running := new(atomic.Int32)
		c := h2.NewServer(r, config, func(s *h2.Stream) {
			running.Add(1)
			defer running.Add(-1)
			h := s.Head()
			if len(h.Method) == 0 || strings.ContainsAny(string(h.Path), " \r\n") {
				t.Errorf("a handler gets %+v", h)
			}
			for _, f := range h.Fields {
				if len(f.Name) == 0 || strings.ContainsAny(string(f.Name), ": \r\nA") ||
					strings.ContainsAny(string(f.Value), "\r\n\x00") {
					t.Errorf("a handler gets %s", f)
				}
			}
			s.Buffered()
			s.WriteHead(200, h.Fields, -1, false)
			for {
				p, err := s.Next(in(patience))
				if err == io.EOF && s.WriteTrailer(s.Trailer(), in(patience)) == nil || err != nil {
					return
				}
				s.Write(p, false, in(patience))
			}
		})
		c.Serve(nil)
		if c.Streams() != 0 || running.Load() != 0 {
			t.Errorf("%d streams and %d handlers are left", c.Streams(), running.Load())
		}
		if sent := r.sent.Load(); sent > 10_000+20*int64(len(data)) && sent > 300_000 {
			t.Errorf("%d bytes for %d", sent, len(data))
		}
	})
}

// FuzzClient lets a client read what a server may answer. All waits of the client must end.
func FuzzClient(f *testing.F) {
	seeds(f, true)
	f.Fuzz(func(t *testing.T, data []byte, piece uint16) {
		r := &replay{data: append(bytes.Clone(settings), data...), piece: int(piece) + 1}
		gate := make(chan struct{})
		c, err := h2.NewClient(gated{r, gate}, &h2.Config{MaxHeadBytes: 8000})
		if err != nil {
			t.Fatal(err)
		}
		var streams []*h2.Stream
		for range 3 {
			s, _, err := c.Open(post("/"), []byte("body"), true, in(patience))
			if err != nil {
				t.Fatal(err)
			}
			streams = append(streams, s)
		}
		close(gate)
		for _, s := range streams {
			h, err := s.AwaitHead(in(patience))
			for err == nil && h.Status < 200 {
				h, err = s.AwaitHead(in(patience))
			}
			for err == nil {
				_, err = s.Next(in(patience))
			}
			if err == h2.ErrTimeUp {
				t.Error("a wait did not end")
			}
			s.Close()
		}
		<-c.Done()
		if c.Streams() != 0 {
			t.Errorf("%d streams are left", c.Streams())
		}
	})
}

// gated is a connection on which nothing arrives before the gate is open.
type gated struct {
	*replay
	gate chan struct{}
}

func (g gated) Read(p []byte) (int, error) { <-g.gate; return g.replay.Read(p) }

// Connections and streams leave no goroutine behind, however they end.
func TestNothingIsLeftBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("connections", func(t *testing.T) {
		addr := serve(t, nil, echo)
		for i := range 20 {
			c := dial(t, addr, nil)
			if _, _, _, err := ask(t, c, post("/"), random(100_000)); err != nil {
				t.Fatal(err)
			}
			s, _, err := c.Open(post("/"), random(1000), false, in(patience))
			if err != nil {
				t.Fatal(err)
			}
			switch i % 4 {
			case 0:
				c.Close()
			case 1:
				s.Close()
				c.Drain()
				<-c.Done()
			case 2:
				s.Reset(h2.Cancel)
			}
		}
	})
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
}

// A call costs no memory, on either side, once the pools are full: 5 allocations are allowed to both together.
func TestCallsAllocateNothing(t *testing.T) {
	c := dial(t, serve(t, nil, unary), nil)
	for range 100 {
		if !call(c) {
			t.Fatal("a call failed")
		}
	}
	n := testing.AllocsPerRun(1000, func() {
		if !call(c) {
			t.Fatal("a call failed")
		}
	})
	if n > 5 && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
}
