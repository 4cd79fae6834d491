package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// content reads n bytes of the content of a stream, or fewer if it ends before.
func (r *raw) content(id uint32, n int) (got []byte, ended bool) {
	r.t.Helper()
	for len(got) < n && !ended {
		d := r.await(fmt.Sprintf("content of %d", id), func(f http2.Frame) bool {
			return f.Header().Type == http2.FrameData && f.Header().StreamID == id
		}).(*http2.DataFrame)
		got, ended = append(got, d.Data()...), d.StreamEnded()
	}
	return got, ended
}

// quiet checks that no content is sent now.
func (r *raw) quiet() {
	r.t.Helper()
	r.WritePing(false, [8]byte{7})
	r.await("PING", func(f http2.Frame) bool {
		if f.Header().Type == http2.FrameData {
			r.t.Fatalf("%d bytes beyond the window", f.Header().Length)
		}
		return f.Header().Type == http2.FramePing
	})
}

// sends answers with so many bytes.
func sends(n int) func(*h2.Stream) {
	return func(s *h2.Stream) {
		s.WriteHead(200, nil, int64(n), false)
		s.Write(bytes.Repeat([]byte("x"), n), true, in(patience))
	}
}

func TestWindowsAreObeyed(t *testing.T) {
	t.Parallel()
	r := rawClient(t, serve(t, nil, sends(200_000)))
	r.request(1, true)
	r.content(1, 65535)
	r.quiet()
	r.WriteWindowUpdate(1, 1000) // the window of the connection is closed as well
	r.quiet()
	r.WriteWindowUpdate(0, 100_000)
	if got, _ := r.content(1, 1000); len(got) != 1000 {
		t.Errorf("%d bytes", len(got))
	}
	r.quiet()
	r.WriteWindowUpdate(1, 50_000)
	if got, _ := r.content(1, 50_000); len(got) != 50_000 {
		t.Errorf("%d bytes", len(got))
	}
	r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000}) // now the window is below 0
	r.quiet()
	r.WriteWindowUpdate(1, 64535)
	r.quiet() // and now it is 0
	r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1001})
	if got, _ := r.content(1, 1); len(got) != 1 {
		t.Errorf("%d bytes", len(got))
	}
	r.quiet()
	r.WriteWindowUpdate(1, 1<<20)
	r.WriteWindowUpdate(0, 1<<20)
	if got, ended := r.content(1, 1<<20); len(got) != 200_000-65535-51_001 || !ended {
		t.Errorf("%d bytes, ended: %t", len(got), ended)
	}
}

// Streams that wait for the window of the connection share it: one frame each, one after the other.
func TestWindowOfTheConnectionIsShared(t *testing.T) {
	const n, grants = 20, 7
	virtual(t, nil, sends(100_000), func(r *raw, c *h2.Conn, ended chan error) {
		frames := r.listen()
		r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		for i := range n {
			r.request(uint32(2*i+1), true)
		}
		for range grants {
			synctest.Wait() // now all of them wait
			r.WriteWindowUpdate(0, 3*16384)
		}
		synctest.Wait()
		r.Close()
		<-ended
		got := make(map[uint32]int)
		for _, f := range of(http2.FrameData, frames) {
			got[f.Header().StreamID]++
		}
		if len(got) < n {
			t.Errorf("only %d streams of %d have had anything: %v", len(got), n, got)
		}
	})
}

// A stream that nobody reads stops at its window, and the others go on. If it is given up, its window is given back.
func TestStreamsThatNobodyReadsStopAlone(t *testing.T) {
	t.Parallel()
	resume := make(chan struct{})
	addr := serve(t, &h2.Config{ConnWindow: 256 << 10}, func(s *h2.Stream) {
		if string(s.Head().Path) == "/stop" {
			<-resume
			s.Reset(h2.Cancel)
			return
		}
		echo(s)
	})
	c := dial(t, addr, nil)
	if _, _, _, err := ask(t, c, post("/go"), nil); err != nil { // the peer's windows have come with the answer
		t.Fatal(err)
	}
	var stopped []*h2.Stream
	for range 3 {
		s, n, err := c.Open(post("/stop"), make([]byte, 100_000), true, in(patience))
		if err != nil || n != 65535 {
			t.Fatalf("%d bytes were sent, %v", n, err)
		}
		stopped = append(stopped, s)
	}
	for range 20 {
		body := random(300_000)
		if _, got, _, err := ask(t, c, post("/go"), body); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	close(resume)
	for _, s := range stopped {
		_, err := s.AwaitHead(in(patience))
		failure(t, err, h2.Cancel, false)
		s.Close()
	}
	for range 10 { // the window of the connection is there again
		eventually(t, "the whole window of a stream", func() bool {
			s, n, err := c.Open(post("/go"), make([]byte, 65535), true, in(patience))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			return n == 65535
		})
	}
}

// Content that nobody reads, and padding, do not use up the window of the connection for good.
func TestWhatNobodyReadsIsGivenBack(t *testing.T) {
	t.Parallel()
	addr := serve(t, &h2.Config{ConnWindow: 65535}, func(s *h2.Stream) {
		for string(s.Head().Path) == "/read" {
			if _, err := s.Next(in(patience)); err != nil {
				break
			}
		}
		s.WriteHead(204, nil, -1, true)
	})
	c := dial(t, addr, nil)
	for range 30 {
		if head, _, _, err := ask(t, c, post("/"), make([]byte, 20_000)); err != nil || head.Status != 204 {
			t.Fatal(err)
		}
	}
	eventually(t, "the window of the connection", func() bool {
		s, n, err := c.Open(post("/"), make([]byte, 20_000), true, in(patience))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return n == 20_000
	})
	r := rawClient(t, addr)
	r.headers(1, false, r.fields(":method", "POST", ":scheme", "http", ":path", "/read"))
	const each = 1 + 4 + 255
	conn, stream := 65535, 65535
	for range 5000 {
		for min(conn, stream) < each {
			update := func(f http2.Frame) bool { return f.Header().Type == http2.FrameWindowUpdate }
			w := r.await("WINDOW_UPDATE", update).(*http2.WindowUpdateFrame)
			if w.StreamID == 0 {
				conn += int(w.Increment)
			} else {
				stream += int(w.Increment)
			}
		}
		r.WriteDataPadded(1, false, []byte("data"), make([]byte, 255))
		conn, stream = conn-each, stream-each
	}
	r.alive()
}

// The window of a stream that is read at once grows, so that latency does not slow it down.
func TestWindowOfAStreamGrows(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings()
	s := open(t, c, post("/"), "", true)
	r.await("the request", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
	r.headers(1, false, r.fields(":status", "200"))
	window, most := 65535, 0
	for sum := 0; sum < 4<<20; {
		n := min(window, 16384)
		r.WriteData(1, false, make([]byte, n))
		window -= n
		sum += n
		for got := 0; got < n; {
			p, err := s.Next(in(patience))
			if err != nil {
				t.Fatal(err)
			}
			got += len(p)
		}
		if _, err := s.Next(in(1)); err != h2.ErrTimeUp { // gives the last piece back
			t.Fatal(err)
		}
		r.WritePing(false, [8]byte{9})
		r.await("PING", func(f http2.Frame) bool {
			if w, ok := f.(*http2.WindowUpdateFrame); ok && w.StreamID == 1 {
				window += int(w.Increment)
			}
			return f.Header().Type == http2.FramePing
		})
		most = max(most, window)
	}
	if most < 400<<10 || most > 512<<10 {
		t.Errorf("the window was %d bytes at most", most)
	}
}

// Next, Buffered and what comes meanwhile do not lose or double a byte.
func TestBufferedStaysForNext(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings()
	s := open(t, c, post("/"), "", true)
	r.headers(1, false, r.fields(":status", "200"))
	var want, got []byte
	add := func(n int, end bool) {
		p := random(n)
		want = append(want, p...)
		r.WriteData(1, end, p)
		r.alive() // it has come, and its reader can see it
	}
	if p, complete := s.Buffered(); p != nil || complete {
		t.Errorf("%d bytes, complete: %t", len(p), complete)
	}
	add(10, false)
	for range 2 {
		if p, complete := s.Buffered(); !bytes.Equal(p, want) || complete {
			t.Errorf("%d bytes, complete: %t", len(p), complete)
		}
	}
	add(5000, false)
	if p, complete := s.Buffered(); !bytes.Equal(p, want) || complete {
		t.Errorf("%d bytes, complete: %t", len(p), complete)
	}
	add(7, false)
	for len(got) < 5017 {
		p, err := s.Next(in(patience))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p...)
	}
	add(9, true)
	if p, complete := s.Buffered(); !bytes.Equal(p, want[5017:]) || !complete {
		t.Errorf("%d bytes, complete: %t", len(p), complete)
	}
	p, err := s.Next(in(patience))
	if got = append(got, p...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
	if _, complete := s.Buffered(); !complete {
		t.Error("not complete")
	}
	if _, err := s.Next(in(patience)); err != io.EOF {
		t.Error(err)
	}
}

// Many streams send in both directions at once through a hop, and some are read slowly: nothing is lost, nothing hangs.
func TestStreamsFlowBothWaysAtOnce(t *testing.T) {
	t.Parallel()
	up := dial(t, serve(t, nil, echo), nil)
	addr := serve(t, nil, func(s *h2.Stream) {
		head := h2.Head{Method: []byte("POST"), Authority: []byte("x"), Path: []byte("/"), Length: -1}
		to, _, err := up.Open(&head, nil, false, in(patience))
		if err != nil {
			t.Error(err)
			return
		}
		var both sync.WaitGroup
		both.Go(func() {
			for {
				p, err := s.Next(in(patience))
				if err != nil {
					to.End()
					return
				}
				if err := to.Write(p, false, in(patience)); err != nil {
					t.Error(err)
					return
				}
				to.Flush()
			}
		})
		if _, err := to.AwaitHead(in(patience)); err != nil {
			t.Error(err)
		}
		s.WriteHead(200, nil, -1, false)
		for {
			p, err := to.Next(in(patience))
			if err != nil {
				break
			}
			if err := s.Write(p, false, in(patience)); err != nil {
				t.Error(err)
			}
			s.Flush()
		}
		s.WriteTrailer(to.Trailer(), in(patience))
		both.Wait()
		to.Close()
	})
	c := netHTTP(t)
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			pr, pw := io.Pipe()
			req, _ := http.NewRequest("POST", "http://"+addr+"/", pr)
			want := random(200_000)
			all.Go(func() {
				for p := want; len(p) > 0; {
					n := min(len(p), 1000*(i+1))
					pw.Write(p[:n])
					p = p[n:]
				}
				pw.Close()
			})
			resp, err := c.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
			}
		})
	}
	all.Wait()
}

// Ten thousand streams, open at once, in both directions.
func TestTenThousandStreams(t *testing.T) {
	t.Parallel()
	const conns, each, rounds = 5, 2000, 3
	var most, now atomic.Int64
	addr := serve(t, &h2.Config{MaxStreams: each}, func(s *h2.Stream) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		s.WriteHead(200, nil, -1, false)
		for {
			p, err := s.Next(core.NoDeadline)
			if err != nil {
				s.End()
				return
			}
			s.Write(p, false, in(patience))
			s.Flush()
		}
	})
	var streams []*h2.Stream
	for range conns {
		c := dial(t, addr, nil)
		if s, _, err := c.Open(post("/"), nil, true, in(patience)); err != nil {
			t.Fatal(err)
		} else if _, err := s.AwaitHead(in(patience)); err != nil { // the peer's limit has come with the answer
			t.Fatal(err)
		} else {
			s.Close()
		}
		for range each {
			streams = append(streams, open(t, c, post("/"), "", false))
		}
	}
	for round := range rounds {
		for i, s := range streams {
			if err := s.Write(fmt.Appendf(nil, "%d/%d", i, round), round == rounds-1, in(patience)); err != nil {
				t.Fatal(err)
			}
			s.Flush()
		}
		for i, s := range streams {
			p, err := s.Next(in(time.Minute))
			if want := fmt.Sprintf("%d/%d", i, round); err != nil || string(p) != want {
				t.Fatalf("got %q, %v, want %q", p, err, want)
			}
		}
	}
	if most.Load() < conns*each {
		t.Errorf("%d streams were open at once", most.Load())
	}
}
