package h2_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// open opens a stream for a test.
func open(t testing.TB, c *h2.Conn, h *h2.Head, body string, end bool) *h2.Stream {
	t.Helper()
	s, n, err := c.Open(h, []byte(body), end, in(patience))
	if err != nil || n != len(body) {
		t.Fatalf("opened with %d bytes, %v", n, err)
	}
	t.Cleanup(s.Close)
	return s
}

// failure checks that err is a *StreamError of that kind, and returns it.
func failure(t testing.TB, err error, code h2.Code, refused bool) *h2.StreamError {
	t.Helper()
	var e *h2.StreamError
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a StreamError", err)
	}
	if e.Code != code || e.Refused != refused {
		t.Fatalf("got %v (refused: %t), want %v (refused: %t)", e, e.Refused, code, refused)
	}
	return e
}

// answerTo writes a whole answer.
func (r *raw) answerTo(id uint32, body string) {
	r.headers(id, false, r.fields(":status", "200"))
	r.WriteData(id, true, []byte(body))
}

func TestClientTellsWhatWasSent(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings()
	s := open(t, c, post("/p"), "hello", true)
	d := hpack.NewDecoder(4096, nil)
	id, fields, end := r.head(d)
	if id != 1 || end || fields[":method"] != "POST" || fields[":path"] != "/p" || fields[":authority"] != "s.test" ||
		fields[":scheme"] != "http" || fields["x-upper"] != "Case" {
		t.Fatalf("stream %d, ends: %t, %v", id, end, fields)
	}
	data := r.await("DATA", func(f http2.Frame) bool { return f.Header().Type == http2.FrameData }).(*http2.DataFrame)
	if string(data.Data()) != "hello" || !data.StreamEnded() {
		t.Fatalf("got %q, ended: %t", data.Data(), data.StreamEnded())
	}
	r.headers(1, false, r.fields(":status", "103", "link", "</a>"))
	r.headers(1, false, r.fields(":status", "100"))
	r.headers(1, false, r.fields(":status", "299", "a", "b", "content-length", "5"))
	r.WriteData(1, false, []byte("world"))
	r.headers(1, true, r.fields("grpc-status", "0"))
	for _, want := range []int{103, 100, 299, 299} {
		h, err := s.AwaitHead(in(patience))
		if err != nil || h.Status != want {
			t.Fatalf("got %v, %v, want %d", h, err, want)
		}
	}
	if p, complete := await(t, s); p != "world" || !complete {
		t.Errorf("got %q, complete: %t", p, complete)
	}
	if p, err := s.Next(in(patience)); string(p) != "world" || err != nil {
		t.Errorf("got %q, %v", p, err)
	}
	if _, err := s.Next(in(patience)); err != io.EOF || value(s.Trailer(), "grpc-status") != "0" {
		t.Errorf("got %v, trailer %s", err, s.Trailer())
	}
}

// await waits until the content is complete, without taking it.
func await(t testing.TB, s *h2.Stream) (data string, complete bool) {
	t.Helper()
	eventually(t, "the whole content", func() bool {
		var p []byte
		p, complete = s.Buffered()
		data = string(p)
		return complete
	})
	return data, complete
}

func TestAnswersThatBreakTheProtocol(t *testing.T) {
	t.Parallel()
	ok := []string{":status", "200"}
	for _, b := range []breach{
		{"no status", func(r *raw) { r.headers(1, true, r.fields("a", "b")) }, h2.ProtocolError, "", 1},
		{"a status of four digits", func(r *raw) { r.headers(1, true, r.fields(":status", "2000")) },
			h2.ProtocolError, "", 1},
		{"a status that is a word", func(r *raw) { r.headers(1, true, r.fields(":status", "2xx")) }, h2.ProtocolError, "", 1},
		{"status 099", func(r *raw) { r.headers(1, true, r.fields(":status", "099")) }, h2.ProtocolError, "", 1},
		{"status 101", func(r *raw) { r.headers(1, true, r.fields(":status", "101")) }, h2.ProtocolError, "", 1},
		{"two statuses", func(r *raw) { r.headers(1, true, r.fields(":status", "200", ":status", "200")) },
			h2.ProtocolError, "", 1},
		{"a path", func(r *raw) { r.headers(1, true, r.fields(":status", "200", ":path", "/")) }, h2.ProtocolError, "", 1},
		{"a name in capitals", func(r *raw) { r.headers(1, true, r.fields(":status", "200", "Server", "x")) },
			h2.ProtocolError, "", 1},
		{"connection", func(r *raw) { r.headers(1, true, r.fields(":status", "200", "connection", "close")) },
			h2.ProtocolError, "", 1},
		{"an informational head at the end", func(r *raw) { r.headers(1, true, r.fields(":status", "103")) },
			h2.ProtocolError, "", 1},
		{"content before the head", func(r *raw) { r.WriteData(1, false, []byte("x")) }, h2.ProtocolError, "", 1},
		{"too much content", func(r *raw) {
			r.headers(1, false, r.fields(":status", "200", "content-length", "1"))
			r.WriteData(1, false, []byte("xy"))
		}, h2.ProtocolError, "", 1},
		{"too little content", func(r *raw) {
			r.headers(1, false, r.fields(":status", "200", "content-length", "3"))
			r.WriteData(1, true, []byte("xy"))
		}, h2.ProtocolError, "", 1},
		{"no content", func(r *raw) { r.headers(1, true, r.fields(":status", "200", "content-length", "3")) },
			h2.ProtocolError, "", 1},
		{"content with 204",
			func(r *raw) { r.headers(1, false, r.fields(":status", "204")); r.WriteData(1, true, []byte("x")) },
			h2.ProtocolError, "", 1},
		{"a third head", func(r *raw) {
			r.headers(1, false, r.fields(ok...))
			r.headers(1, false, r.fields("a", "b"))
		}, h2.ProtocolError, "", 1},
		{"a head that is too long", func(r *raw) {
			r.headers(1, true, r.fields(append(ok, "a", strings.Repeat("x", 5000))...))
		}, h2.Cancel, "", 1},
		{"more than the window of the stream", func(r *raw) {
			r.headers(1, false, r.fields(ok...))
			for range 5 {
				r.WriteData(1, false, make([]byte, 16384))
			}
		}, h2.FlowControlError, "", 1},
		{"HEADERS on a stream that nobody opened", func(r *raw) { r.headers(7, true, r.fields(ok...)) },
			h2.ProtocolError, "never opened", 0},
		{"HEADERS on an even stream", func(r *raw) { r.headers(2, true, r.fields(ok...)) },
			h2.ProtocolError, "never opened", 0},
		{"RST_STREAM on a stream that nobody opened", func(r *raw) { r.WriteRSTStream(7, 8) },
			h2.ProtocolError, "never opened", 0},
		{"PUSH_PROMISE", func(r *raw) { r.WriteRawFrame(http2.FramePushPromise, 4, 1, []byte{0, 0, 0, 2, 0x82}) },
			h2.ProtocolError, "PUSH_PROMISE", 0},
		{"ENABLE_PUSH of a server", func(r *raw) { r.WriteSettings(http2.Setting{ID: 2, Val: 1}) },
			h2.ProtocolError, "pushed to", 0},
	} {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			c, r := rawServer(t, &h2.Config{MaxHeadBytes: 4096})
			r.WriteSettings()
			s := open(t, c, post("/"), "", true)
			r.await("the request", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
			b.do(r)
			if b.id != 0 {
				r.isReset(b.id, b.code)
			} else {
				r.isGoAway(b.code, b.words)
			}
			_, err := s.AwaitHead(in(patience))
			for err == nil {
				_, err = s.Next(in(patience))
			}
			if e := failure(t, err, b.code, false); e.Cause == nil || e.Peer {
				t.Errorf("the error is said to be the peer's, or does not say what was wrong: %+v", e)
			}
		})
	}
}

func TestAnswersWithoutContent(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings()
	head := post("/")
	head.Method = []byte("HEAD")
	s := open(t, c, head, "", true)
	r.await("the request", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
	r.headers(1, true, r.fields(":status", "200", "content-length", "4711"))
	if h, err := s.AwaitHead(in(patience)); err != nil || h.Length != 4711 {
		t.Errorf("got %+v, %v", h, err)
	}
	if _, err := s.Next(in(patience)); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

func TestRefusedStreamsAreToldApart(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings()
	var streams []*h2.Stream
	for range 5 {
		streams = append(streams, open(t, c, post("/"), "", true))
	}
	for n := 0; n < 5; {
		r.await("the requests", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
		n++
	}
	r.WriteRSTStream(1, http2.ErrCodeRefusedStream)
	r.WriteRSTStream(3, http2.ErrCodeInternal)
	r.WriteGoAway(5, http2.ErrCodeNo, []byte("bye"))
	_, err := streams[0].AwaitHead(in(patience))
	if e := failure(t, err, h2.RefusedStream, true); !e.Peer {
		t.Errorf("%+v", e)
	}
	_, err = streams[1].AwaitHead(in(patience))
	failure(t, err, h2.InternalError, false)
	for _, s := range streams[3:] {
		_, err = s.AwaitHead(in(patience))
		failure(t, err, h2.NoError, true)
	}
	if _, _, err := c.Open(post("/"), nil, true, in(patience)); err != h2.ErrGoingAway || c.CanTake() {
		t.Errorf("another stream: %v, can take: %t", err, c.CanTake())
	}
	r.answerTo(5, "the last")
	if _, err := streams[2].AwaitHead(in(patience)); err != nil {
		t.Error(err)
	}
	if p, err := streams[2].Next(in(patience)); string(p) != "the last" || err != nil {
		t.Errorf("got %q, %v", p, err)
	}
	for _, s := range streams {
		s.Gone()
	}
	<-c.Done() // nothing is left
	if err := c.Err(); err != nil {
		t.Errorf("the connection ended with %v", err)
	}
}

func TestLostConnectionsDoNotSayRefused(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings()
	s := open(t, c, post("/"), "", true)
	r.await("the request", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
	r.Close()
	_, err := s.AwaitHead(in(patience))
	if e := failure(t, err, h2.Cancel, false); e.Cause == nil {
		t.Errorf("%+v", e)
	}
}

// slow is a connection whose writes return late: what was written may have been read, and answered, long before.
type slow struct {
	*net.TCPConn
	late    atomic.Bool
	written chan struct{} // closed when the late write has been made
	release chan struct{}
}

func (s *slow) SyscallConn() (syscall.RawConn, error) {
	raw, err := s.TCPConn.SyscallConn()
	return slowRaw{raw, s}, err
}

type slowRaw struct {
	syscall.RawConn
	s *slow
}

func (r slowRaw) Write(f func(fd uintptr) bool) error {
	late := r.s.late.CompareAndSwap(true, false) // one that has begun before is not meant
	err := r.RawConn.Write(f)
	if late {
		close(r.s.written)
		<-r.s.release
	}
	return err
}

// slowly returns a connection whose next write is late once its late is set, and the peer of it.
func slowly(t *testing.T) (*slow, *h2.Conn, *raw) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn := &slow{TCPConn: nc.(*net.TCPConn), written: make(chan struct{}), release: make(chan struct{})}
	c, err := h2.NewClient(conn, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := io.ReadFull(peer, make([]byte, len(http2.ClientPreface))); err != nil {
		t.Fatal(err)
	}
	r := newRaw(t, peer)
	r.WriteSettings()
	r.await("the acknowledgement", func(f http2.Frame) bool { s, ok := f.(*http2.SettingsFrame); return ok && s.IsAck() })
	conn.late.Store(true)
	return conn, c, r
}

// ending sends a request and returns how it ended.
func ending(c *h2.Conn) <-chan *h2.StreamError {
	ended := make(chan *h2.StreamError, 1)
	go func() {
		var e *h2.StreamError
		s, _, err := c.Open(post("/"), nil, true, in(patience))
		if err == nil {
			defer s.Close()
			_, err = s.AwaitHead(in(patience))
		}
		errors.As(err, &e)
		ended <- e
	}()
	return ended
}

// A peer may have acted on a request whose write has not returned yet. That it went away then must not make it a
// request that was never sent: it would be done again.
func TestARequestWhoseWriteHasNotReturnedIsNotCalledRefused(t *testing.T) {
	t.Parallel()
	conn, c, r := slowly(t)
	ended := ending(c)
	<-conn.written
	r.await("the request", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
	r.Close()
	eventually(t, "the end of the connection", func() bool { return c.Err() != nil })
	close(conn.release)
	if e := <-ended; e == nil || e.Refused {
		t.Errorf("%+v, want an end that is not called refused", e)
	}
}

// A connection on which the peer broke the protocol ends with GOAWAY, behind what waits to be written. A request that
// goes out so is not one that was never sent.
func TestARequestThatIsWrittenBeforeTheLastWordIsNotCalledRefused(t *testing.T) {
	t.Parallel()
	conn, c, r := slowly(t)
	first := ending(c)
	<-conn.written
	second := ending(c) // waits for the write of the first
	eventually(t, "two streams", func() bool { return c.Streams() == 2 })
	r.WriteRawFrame(http2.FrameData, 0, 0, nil) // content of no stream
	eventually(t, "the end of the connection", func() bool { return c.Err() != nil })
	close(conn.release)
	<-first
	e, sent := <-second, false
	r.await("GOAWAY", func(f http2.Frame) bool {
		sent = sent || f.Header().Type == http2.FrameHeaders && f.Header().StreamID == 3
		return f.Header().Type == http2.FrameGoAway
	})
	if e == nil || e.Refused && sent {
		t.Errorf("%+v, and the peer has got it: %t", e, sent)
	}
}

// stuck is a connection whose writes block until it is closed.
type stuck struct {
	net.Conn
	begun, closed chan struct{}
}

func (s stuck) Write([]byte) (int, error) { close(s.begun); <-s.closed; return 0, net.ErrClosed }
func (s stuck) Close() error              { close(s.closed); return s.Conn.Close() }

// A request that was never written can be sent again elsewhere.
func TestUnsentStreamsAreRefused(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer b.Close()
	nc := stuck{a, make(chan struct{}), make(chan struct{})}
	c, err := h2.NewClient(nc, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-nc.begun // with the preface, and what is opened now is not in it
	s := open(t, c, post("/"), "", true)
	c.Close()
	_, err = s.AwaitHead(in(patience))
	failure(t, err, h2.Cancel, true)
}

func TestPeersLimitOfStreamsIsObeyed(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 2})
	r.await("the acknowledgement", func(f http2.Frame) bool { s, ok := f.(*http2.SettingsFrame); return ok && s.IsAck() })
	one, _ := open(t, c, post("/"), "", true), open(t, c, post("/"), "", true)
	if _, _, err := c.Open(post("/"), nil, true, in(patience)); err != h2.ErrTooManyStreams || c.CanTake() {
		t.Fatalf("a third stream: %v, can take: %t", err, c.CanTake())
	}
	r.answerTo(1, "")
	if _, err := one.AwaitHead(in(patience)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "room for a stream", c.CanTake)
	open(t, c, post("/"), "", true)
	if _, idle := c.Idle(); idle || c.Streams() != 2 {
		t.Errorf("idle: %t, %d streams", idle, c.Streams())
	}
}

func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
	r.await("the acknowledgement", func(f http2.Frame) bool { s, ok := f.(*http2.SettingsFrame); return ok && s.IsAck() })
	s, n, err := c.Open(post("/"), []byte("more than ten bytes"), true, in(patience))
	if err != nil || n != 10 {
		t.Fatalf("%d bytes were sent, %v", n, err)
	}
	defer s.Close()
	_, err = s.AwaitHead(in(1))
	for _, err := range []error{err, s.Write([]byte("x"), false, in(1))} {
		var timeout net.Error
		if err != h2.ErrTimeUp || !errors.Is(err, os.ErrDeadlineExceeded) ||
			!errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %v", err)
		}
	}
	ended := make(chan error, 2)
	go func() {
		_, err := s.AwaitHead(core.NoDeadline)
		ended <- err
	}()
	s.StopReading()
	if err := <-ended; err != h2.ErrInterrupted {
		t.Errorf("reading ended with %v", err)
	}
	go func() { ended <- s.Write([]byte("x"), true, core.NoDeadline) }()
	s.Interrupt()
	if err := <-ended; err != h2.ErrInterrupted {
		t.Errorf("writing ended with %v", err)
	}
	if _, err := s.Next(core.NoDeadline); err != h2.ErrInterrupted {
		t.Errorf("reading afterwards: %v", err)
	}
}

func TestHookIsCalledWhenThePeerGoes(t *testing.T) {
	t.Parallel()
	c, r := rawServer(t, nil)
	r.WriteSettings()
	begin := func() *h2.Stream { return open(t, c, post("/"), "", true) }
	reset, lost, spared := begin(), begin(), begin()
	gone := make(chan string, 10)
	reset.OnGone(func() { gone <- "reset" })
	lost.OnGone(func() { gone <- "lost" })
	spared.OnGone(func() { gone <- "spared" })
	spared.OnGone(nil)
	r.WriteRSTStream(1, http2.ErrCodeCancel)
	if got := <-gone; got != "reset" || !reset.Gone() || lost.Gone() {
		t.Errorf("%s is gone first", got)
	}
	r.Close()
	if got := <-gone; got != "lost" {
		t.Errorf("%s is gone next", got)
	}
	<-c.Done()
	spared.OnGone(func() { gone <- "late" })
	if got := <-gone; got != "late" || len(gone) != 0 {
		t.Errorf("%s is gone last", got)
	}
}
