package h2_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/abate-go/abate/proxy/h2"
)

// raw is a peer that sends the frames that a test wants, made by another implementation.
type raw struct {
	t testing.TB
	net.Conn
	*http2.Framer
	block  bytes.Buffer
	enc    *hpack.Encoder
	frames uint32      // for a test to count
	failed atomic.Bool // a write did
	polite bool        // answers PING
}

func newRaw(t testing.TB, nc net.Conn) *raw {
	r := &raw{t: t, Conn: nc}
	r.Framer = http2.NewFramer(r, nc)
	r.AllowIllegalWrites, r.AllowIllegalReads = true, true
	r.enc = hpack.NewEncoder(&r.block)
	nc.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { nc.Close() })
	return r
}

// Write records the first error.
func (r *raw) Write(p []byte) (int, error) {
	n, err := r.Conn.Write(p)
	if err != nil {
		r.failed.Store(true)
	}
	return n, err
}

// rawClient returns a client of the server at addr that has sent its preface and SETTINGS.
func rawClient(t testing.TB, addr string) *raw {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(nc, http2.ClientPreface)
	r := newRaw(t, nc)
	r.WriteSettings()
	return r
}

// rawServer runs a client against a peer whose frames the test writes.
func rawServer(t testing.TB, config *h2.Config) (*h2.Conn, *raw) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l.Addr().String(), config)
	nc, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(nc, make([]byte, len(http2.ClientPreface))); err != nil {
		t.Fatal(err)
	}
	return c, newRaw(t, nc)
}

// fields encodes a block of names and values.
func (r *raw) fields(pairs ...string) []byte {
	r.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		r.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(r.block.Bytes())
}

// get are the pseudo-header fields of a request.
var get = []string{":method", "GET", ":scheme", "http", ":authority", "s.test", ":path", "/"}

func (r *raw) request(id uint32, end bool, more ...string) {
	r.headers(id, end, r.fields(append(get[:len(get):len(get)], more...)...))
}

func (r *raw) headers(id uint32, end bool, block []byte) {
	r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: end, EndHeaders: true})
}

// await reads frames until one is wanted, and returns it.
func (r *raw) await(what string, wanted func(http2.Frame) bool) http2.Frame {
	r.t.Helper()
	for {
		f, err := r.ReadFrame()
		if err != nil {
			r.t.Fatalf("waiting for %s: %v", what, err)
		}
		if wanted(f) {
			return f
		}
	}
}

// alive checks that the connection goes on, and that what was sent before has been handled.
func (r *raw) alive() {
	r.t.Helper()
	r.WritePing(false, [8]byte{1, 2, 3})
	r.await("an answer to PING", func(f http2.Frame) bool {
		if g, ok := f.(*http2.GoAwayFrame); ok {
			r.t.Fatalf("GOAWAY %v %q", g.ErrCode, g.DebugData())
		}
		p, ok := f.(*http2.PingFrame)
		return ok && p.IsAck() && p.Data == [8]byte{1, 2, 3}
	})
}

// isGoAway checks that the connection ends for that reason.
func (r *raw) isGoAway(code h2.Code, words string) {
	r.t.Helper()
	wanted := func(f http2.Frame) bool { return f.Header().Type == http2.FrameGoAway }
	g := r.await("GOAWAY "+code.String(), wanted).(*http2.GoAwayFrame)
	if h2.Code(g.ErrCode) != code || !strings.Contains(string(g.DebugData()), words) {
		r.t.Fatalf("GOAWAY %v %q, want %v %q", g.ErrCode, g.DebugData(), code, words)
	}
	for {
		if _, err := r.ReadFrame(); err != nil {
			if errors.Is(err, io.EOF) {
				return
			}
			r.t.Fatalf("the end of the connection: %v", err)
		}
	}
}

// isReset checks that a stream ends for that reason, and that the connection goes on.
func (r *raw) isReset(id uint32, code h2.Code) {
	r.t.Helper()
	f := r.await("RST_STREAM "+code.String(), func(f http2.Frame) bool {
		if g, ok := f.(*http2.GoAwayFrame); ok {
			r.t.Fatalf("GOAWAY %v %q", g.ErrCode, g.DebugData())
		}
		return f.Header().Type == http2.FrameRSTStream
	}).(*http2.RSTStreamFrame)
	if f.StreamID != id || h2.Code(f.ErrCode) != code {
		r.t.Fatalf("RST_STREAM %v on %d, want %v on %d", f.ErrCode, f.StreamID, code, id)
	}
	r.alive()
}

// head reads the next head and decodes it.
func (r *raw) head(d *hpack.Decoder) (id uint32, fields map[string]string, end bool) {
	r.t.Helper()
	wanted := func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders }
	f := r.await("HEADERS", wanted).(*http2.HeadersFrame)
	list, err := d.DecodeFull(f.HeaderBlockFragment())
	if err != nil {
		r.t.Fatal(err)
	}
	fields = make(map[string]string)
	for _, x := range list {
		fields[x.Name] = x.Value
	}
	return f.StreamID, fields, f.StreamEnded()
}
