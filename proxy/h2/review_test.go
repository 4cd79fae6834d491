package h2_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/abate-go/abate/proxy/h2"
)

// Content that was on its way when many streams were given up at once is not taken for an attack: the other streams go
// on.
func TestContentOfManyStreamsThatWereGivenUpIsNoFlood(t *testing.T) {
	t.Parallel()
	const many = 900
	t.Run("by the client", func(t *testing.T) {
		c, r := rawServer(t, nil)
		r.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2000})
		<-c.Agreed()
		var list []*h2.Stream
		for range many {
			s, _, err := c.Open(post("/"), nil, true, in(patience))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
		}
		other, _, err := c.Open(post("/"), nil, true, in(patience))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		ok := r.fields(":status", "200")
		for i := range many {
			r.headers(uint32(2*i+1), false, ok)
		}
		for _, s := range list {
			if _, err := s.AwaitHead(in(patience)); err != nil {
				t.Fatal(err)
			}
		}
		for _, s := range list {
			s.Close()
		}
		for range 3 {
			for i := range many {
				r.WriteData(uint32(2*i+1), false, []byte("late"))
			}
		}
		r.headers(2*many+1, true, ok)
		if _, err := other.AwaitHead(in(patience)); err != nil {
			t.Error(err)
		}
	})
	t.Run("by the server", func(t *testing.T) {
		r := rawClient(t, serve(t, nil, func(s *h2.Stream) { s.WriteHead(503, nil, 0, true) }))
		for i := range uint32(many) {
			r.request(2*i+1, false)
		}
		for n := 0; n < many; n++ {
			r.await("RST_STREAM", func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream })
		}
		for range 3 {
			for i := range uint32(many) {
				r.WriteData(2*i+1, false, []byte("late"))
			}
		}
		for i := range uint32(many) {
			r.headers(2*i+1, true, r.fields("x-sum", "1"))
		}
		r.alive()
	})
}

// Empty content for a stream that has been given up counts as a frame without a use.
func TestEmptyContentBehindTheEndIsAFlood(t *testing.T) {
	t.Parallel()
	addr, ended := serveOne(t, nil, func(s *h2.Stream) { s.WriteHead(503, nil, 0, true) })
	r := rawClient(t, addr)
	r.request(1, false)
	r.await("RST_STREAM", func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream })
	for range 100_000 {
		if r.WriteData(1, false, nil); r.failed.Load() {
			break
		}
	}
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the server has put up with all of it")
	}
}

// Informational heads that nobody asks for take no memory.
func TestInformationalHeadsAreBounded(t *testing.T) {
	c, r := rawServer(t, &h2.Config{PingAfter: -1}) // reading them may take long, and r answers no PING
	r.WriteSettings()
	s, _, err := c.Open(post("/"), nil, true, in(patience))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	before := heap()
	value := string(bytes.Repeat([]byte{'x'}, 3000))
	many := []string{":status", "103"}
	for range 15 {
		many = append(many, "a", value)
	}
	for range 2000 {
		r.headers(1, false, r.fields(many...))
	}
	r.WritePing(false, [8]byte{1, 2, 3})
	r.await("an answer to PING", func(f http2.Frame) bool { p, ok := f.(*http2.PingFrame); return ok && p.IsAck() })
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("they take %d KiB", grown>>10)
	}
	runtime.KeepAlive(s)
}

func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// Trailers take memory as heads do.
func TestTrailersAreBounded(t *testing.T) {
	addr := serve(t, &h2.Config{PingAfter: -1}, func(s *h2.Stream) {
		for s.Err() == nil {
			if _, err := s.Next(in(patience)); err != nil {
				break
			}
		}
		still(s)
	})
	r := rawClient(t, addr)
	before := heap()
	value := string(bytes.Repeat([]byte{'x'}, 3000))
	var many []string
	for range 20 {
		many = append(many, "a", value)
	}
	for i := range uint32(1000) {
		r.request(2*i+1, false)
	}
	for i := range uint32(1000) {
		r.headers(2*i+1, true, r.fields(many...))
	}
	r.alive()
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("they take %d KiB", grown>>10)
	}
}

// A head needs no window: it does not wait behind content that needs one.
func TestHeadsDoNotWaitForTheWindow(t *testing.T) {
	handle := func(s *h2.Stream) {
		switch string(s.Head().Path) {
		case "/":
			sends(100_000)(s)
		case "/large":
			s.WriteHead(200, field("x-large", strings.Repeat("x", 40_000)), 0, true)
		default:
			s.WriteHead(200, nil, 0, true)
		}
	}
	virtual(t, nil, handle, func(r *raw, c *h2.Conn, ended chan error) {
		go http2.NewFramer(r, nil).WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		r.await("the answer to SETTINGS", func(f http2.Frame) bool {
			s, ok := f.(*http2.SettingsFrame)
			return ok && s.IsAck()
		})
		for i, path := range []string{"/", "/large", "/large", "/small"} {
			r.headers(uint32(2*i+1), true, r.fields(":method", "GET", ":scheme", "http", ":path", path))
			if i == 0 {
				r.content(1, 3*16384)
			}
			synctest.Wait()
		} // now the first waits for the window, the next two for the client to read, and the last for room
		frames := r.listen()
		synctest.Wait()
		r.Close()
		<-ended
		for _, f := range of(http2.FrameHeaders, frames) {
			if f.Header().StreamID == 7 {
				return
			}
		}
		t.Error("the head did not come")
	})
}
