package h2_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// floods are clients that cause work without a use. The server must end their connections.
var floods = []struct {
	name  string
	words string
	do    func(r *raw, i uint32)
}{
	{"PING", "bring nothing", func(r *raw, i uint32) { r.WritePing(false, [8]byte{}) }},
	{"answers to PING", "bring nothing", func(r *raw, i uint32) { r.WritePing(true, [8]byte{}) }},
	{"SETTINGS", "bring nothing", func(r *raw, i uint32) { r.WriteSettings(http2.Setting{ID: 3, Val: i}) }},
	{"empty DATA", "bring nothing", func(r *raw, i uint32) {
		if i == 0 {
			r.request(1, false)
		}
		r.WriteData(1, false, nil)
	}},
	{"WINDOW_UPDATE", "bring nothing", func(r *raw, i uint32) { r.WriteWindowUpdate(0, 1) }},
	{"PRIORITY", "bring nothing", func(r *raw, i uint32) { r.WritePriority(2*i+1, http2.PriorityParam{}) }},
	{"unknown frames", "bring nothing", func(r *raw, i uint32) { r.WriteRawFrame(99, 0, i, nil) }},
	{"GOAWAY", "bring nothing", func(r *raw, i uint32) { r.WriteGoAway(0, 0, nil) }},
	{"malformed requests", "bring nothing", func(r *raw, i uint32) { r.headers(2*i+1, true, r.fields("a", "b")) }},
	{"too many streams", "bring nothing", func(r *raw, i uint32) { r.request(2*i+1, false) }},
	{"streams that are reset at once", "reset at once",
		func(r *raw, i uint32) { r.request(2*i+1, true); r.WriteRSTStream(2*i+1, 8) }},
	{"streams that are reset for errors of the client", "bring nothing",
		func(r *raw, i uint32) { r.request(2*i+1, true); r.WriteWindowUpdate(2*i+1, 0) }},
	{"CONTINUATION", "does not end", func(r *raw, i uint32) {
		if i == 0 {
			r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.fields(get...)})
		}
		r.WriteContinuation(1, false, nil)
	}},
	{"CONTINUATION with fields", "does not end", func(r *raw, i uint32) {
		if i == 0 {
			r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.fields(get...)})
		}
		r.WriteContinuation(1, false, bytes.Repeat([]byte{0x82}, 1000))
	}},
}

func TestFloodsAreEnded(t *testing.T) {
	t.Parallel()
	for _, f := range floods {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			addr, ended := serveOne(t, &h2.Config{MaxStreams: 50}, still)
			r := rawClient(t, addr)
			var stopped atomic.Bool
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for i := uint32(0); !r.failed.Load() && !stopped.Load() && i < 2_000_000; i++ {
					f.do(r, i)
				}
			}()
			go io.Copy(io.Discard, r.Conn) // its GOAWAY may be lost: the connection is reset if the client goes on
			var e *h2.ConnError
			select {
			case err := <-ended:
				if !errors.As(err, &e) || e.Peer || e.Code != h2.EnhanceYourCalm || !strings.Contains(e.Problem, f.words) {
					t.Errorf("the connection ended with %v, want %q", err, f.words)
				}
			case <-time.After(patience):
				t.Error("the server puts up with it")
			}
			stopped.Store(true)
			<-sent
		})
	}
}

// serveOne serves one client, and returns a channel that gets the error with which its connection ended.
func serveOne(t testing.TB, config *h2.Config, handle func(*h2.Stream)) (addr string, ended chan error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	ended = make(chan error, 1)
	go func() {
		nc, err := l.Accept()
		if err != nil {
			ended <- err
			return
		}
		ended <- h2.NewServer(nc, config, handle).Serve(nil)
	}()
	return l.Addr().String(), ended
}

// A client that cancels its calls in an outage is not taken for an attacker.
func TestCancelledCallsAreNoFlood(t *testing.T) {
	t.Parallel()
	r := rawClient(t, serve(t, nil, still))
	for i := range uint32(3000) {
		id := 4*i + 1
		r.request(id, true, "x-answer", "now")
		r.await("the answer", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
		r.request(id+2, true)
		r.WriteRSTStream(id+2, http2.ErrCodeCancel)
	}
	r.alive()
}

// The socket is a local one: it delivers what it accepts, so that only the server decides how much the client can send.
// The test is not parallel, because the memory of other tests would count.
func TestClientThatReadsNothingIsBounded(t *testing.T) {
	server, client := socketPair(t)
	ended := make(chan error, 1)
	go func() { ended <- h2.NewServer(server, &h2.Config{StallTimeout: -1}, still).Serve(nil) }()
	before := heap()
	io.WriteString(client, http2.ClientPreface)
	r := newRaw(t, client)
	r.WriteSettings()
	pings := 0
	for most := 50_000; pings < most && !r.failed.Load(); pings++ {
		r.WritePing(false, [8]byte{})
	}
	if !r.failed.Load() {
		t.Fatalf("the server has taken %d pings whose answers nobody reads", pings)
	}
	var e *h2.ConnError
	if err := <-ended; !errors.As(err, &e) || e.Peer || e.Code != h2.EnhanceYourCalm {
		t.Errorf("the connection ended with %v", err)
	}
	if grown := heap() - before; grown > 50<<20 {
		t.Errorf("%d bytes more in use", grown)
	}
}

// socketPair returns both ends of a local connection that is not TCP.
func socketPair(t testing.TB) (server, client net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "h2") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("unix", dir+"/s"); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func TestTooManyStreamsAreRefused(t *testing.T) {
	t.Parallel()
	r := rawClient(t, serve(t, &h2.Config{MaxStreams: 3}, still))
	for id := uint32(1); id <= 7; id += 2 {
		r.request(id, true)
	}
	r.isReset(7, h2.RefusedStream)
	r.WriteData(7, true, nil) // was on its way
	r.WriteRSTStream(1, http2.ErrCodeCancel)
	r.request(9, true, "x-answer", "now")
	if id, _, _ := r.head(hpack.NewDecoder(4096, nil)); id != 9 {
		t.Errorf("answer to %d", id)
	}
}

func TestHeadsThatAreTooLong(t *testing.T) {
	t.Parallel()
	r := rawClient(t, serve(t, &h2.Config{MaxHeadBytes: 9000}, still))
	d := hpack.NewDecoder(4096, nil)
	var many []string
	for range 257 {
		many = append(many, "a", "b")
	}
	for i, more := range [][]string{{"a", strings.Repeat("b", 8000), "c", strings.Repeat("d", 1000)}, many} {
		for j, end := range []bool{true, false} {
			id := uint32(8*i + 4*j + 1)
			r.request(id, end, more...)
			if at, fields, ends := r.head(d); at != id || fields[":status"] != "431" || !ends {
				t.Errorf("answer to %d: %v, ends: %t", at, fields, ends)
			}
			if !end {
				r.isReset(id, h2.NoError)
			}
			r.request(id+2, true, append(more[:2:2], "x-answer", "now")...) // the state of the compression is as it should be
			if at, fields, _ := r.head(d); at != id+2 || fields[":status"] != "204" {
				t.Errorf("answer to %d: %v", at, fields)
			}
		}
	}
	// 4 KiB of a block that says two thousand times: the longest field that the table holds.
	r.request(101, true, "x", strings.Repeat("y", 3900))
	r.headers(103, true, bytes.Repeat([]byte{0x80 | 62}, 4000))
	if _, fields, _ := r.head(d); fields[":status"] != "431" {
		t.Errorf("got %v", fields)
	}
	r.alive()
}

// The heads of open streams are bounded together as well.
func TestHeadsOfAllStreamsAreBounded(t *testing.T) {
	t.Parallel()
	r := rawClient(t, serve(t, nil, still))
	id := uint32(1)
	for refused := false; !refused; id += 2 {
		if id > 2*200 {
			t.Fatalf("%d heads of 60 KB are held", id/2)
		}
		block := r.fields(append(get, "a", strings.Repeat("\x7e", 60_000))...)
		for kind, first := http2.FrameHeaders, true; first || len(block) > 0; kind, first = http2.FrameContinuation, false {
			n := min(len(block), 16384)
			flags := http2.Flags(0)
			if first {
				flags = http2.FlagHeadersEndStream
			}
			if n == len(block) {
				flags |= http2.FlagHeadersEndHeaders
			}
			r.WriteRawFrame(kind, flags, id, block[:n])
			block = block[n:]
		}
		r.WritePing(false, [8]byte{1})
		r.await("PING", func(f http2.Frame) bool {
			if rst, ok := f.(*http2.RSTStreamFrame); ok {
				refused = rst.ErrCode == http2.ErrCodeRefusedStream
			}
			return f.Header().Type == http2.FramePing
		})
	}
	for i := uint32(1); i < id; i += 2 {
		r.WriteRSTStream(i, http2.ErrCodeCancel)
	}
	r.alive()
	eventually(t, "room again", func() bool {
		r.request(id, true, "x-answer", "now")
		id += 2
		return r.await("an answer", func(f http2.Frame) bool {
			k := f.Header().Type
			return k == http2.FrameHeaders || k == http2.FrameRSTStream
		}).Header().Type == http2.FrameHeaders
	})
}

// A handler that returns without an answer, or with half of one, must not pass for a whole one.
func TestUnfinishedAnswersAreReset(t *testing.T) {
	t.Parallel()
	addr := serve(t, nil, func(s *h2.Stream) {
		switch string(s.Head().Path) {
		case "/half":
			s.WriteHead(200, nil, -1, false)
			s.Write([]byte("half"), false, in(patience))
		case "/reset":
			s.Reset(h2.EnhanceYourCalm)
		case "/early":
			s.WriteHead(200, nil, -1, false)
			s.Write([]byte("whole"), true, in(patience))
			if err := s.Write([]byte("more"), false, in(patience)); err != h2.ErrEnded {
				t.Errorf("written after the end: %v", err)
			}
		}
	})
	c := dial(t, addr, nil)
	for path, code := range map[string]h2.Code{
		"/none": h2.InternalError, "/half": h2.InternalError, "/reset": h2.EnhanceYourCalm,
	} {
		_, _, _, err := ask(t, c, post(path), []byte("body"))
		if e := failure(t, err, code, false); !e.Peer {
			t.Errorf("%s: %+v", path, e)
		}
	}
	s := open(t, c, post("/early"), "a part", false) // the rest of it is not wanted
	eventually(t, "the end", s.Gone)
	failure(t, s.Err(), h2.NoError, false)
	if p, complete := await(t, s); p != "whole" || !complete {
		t.Errorf("got %q", p)
	}
	if err := s.Write([]byte("more"), false, core.NoDeadline); err == nil {
		t.Error("more was written")
	}
}
