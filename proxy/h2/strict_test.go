package h2_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/abate-go/abate/proxy/h2"
)

// breach is something that a client must not do, and what the server does about it.
type breach struct {
	name  string
	do    func(*raw)
	code  h2.Code
	words string // of the GOAWAY; "" if the stream alone ends
	id    uint32 // of that stream
}

var breaches = []breach{
	{"DATA without a stream", func(r *raw) { r.WriteRawFrame(http2.FrameData, 0, 0, nil) },
		h2.ProtocolError, "without a stream", 0},
	{"DATA on an idle stream", func(r *raw) { r.WriteData(1, true, nil) }, h2.ProtocolError, "never opened", 0},
	{"DATA on an even stream", func(r *raw) { r.WriteData(2, true, nil) }, h2.ProtocolError, "never opened", 0},
	{"DATA after the end", func(r *raw) { r.request(1, true); r.WriteData(1, false, []byte("x")) },
		h2.StreamClosed, "", 1},
	{"too much padding", func(r *raw) { r.request(1, false); r.WriteRawFrame(http2.FrameData, 8, 1, []byte{5, 1, 2}) },
		h2.ProtocolError, "padding", 0},
	{"padding without its length", func(r *raw) { r.request(1, false); r.WriteRawFrame(http2.FrameData, 8, 1, nil) },
		h2.ProtocolError, "padding", 0},
	{"more than announced",
		func(r *raw) { r.request(1, false, "content-length", "3"); r.WriteData(1, false, []byte("four")) },
		h2.ProtocolError, "", 1},
	{"less than announced",
		func(r *raw) { r.request(1, false, "content-length", "3"); r.WriteData(1, true, []byte("tw")) },
		h2.ProtocolError, "", 1},
	{"nothing of what was announced", func(r *raw) { r.request(1, true, "content-length", "3") }, h2.ProtocolError, "", 1},
	{"less, and a trailer", func(r *raw) {
		r.request(1, false, "content-length", "3")
		r.headers(1, true, r.fields("a", "b"))
	}, h2.ProtocolError, "", 1},
	{"a frame that is too long", func(r *raw) { r.Write([]byte{0, 0x40, 1, 0, 0, 0, 0, 0, 1}) },
		h2.FrameSizeError, "MAX_FRAME_SIZE", 0},

	{"HEADERS without a stream", func(r *raw) { r.headers(0, true, r.fields(get...)) },
		h2.ProtocolError, "without a stream", 0},
	{"HEADERS on an even stream", func(r *raw) { r.request(2, true) }, h2.ProtocolError, "even", 0},
	{"a lower id", func(r *raw) { r.request(5, true); r.request(3, true) }, h2.ProtocolError, "higher id", 0},
	{"HEADERS on a stream that has ended", func(r *raw) {
		r.request(1, true, "x-answer", "now")
		r.await("the answer", func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
		r.request(1, true)
	}, h2.StreamClosed, "has ended", 0},
	{"HEADERS after the end", func(r *raw) { r.request(1, true); r.headers(1, true, r.fields("a", "b")) },
		h2.StreamClosed, "", 1},
	{"a second head that does not end the stream",
		func(r *raw) { r.request(1, false); r.headers(1, false, r.fields("a", "b")) },
		h2.ProtocolError, "", 1},
	{"a trailer with pseudo fields", func(r *raw) { r.request(1, false); r.headers(1, true, r.fields(":path", "/")) },
		h2.ProtocolError, "", 1},
	{"HEADERS with too much padding", func(r *raw) { r.WriteRawFrame(http2.FrameHeaders, 0xd, 1, []byte{9, 0x82}) },
		h2.ProtocolError, "padding", 0},
	{"HEADERS too short for a priority", func(r *raw) { r.WriteRawFrame(http2.FrameHeaders, 0x25, 1, []byte{0, 0, 0, 0}) },
		h2.ProtocolError, "", 0},
	{"a block that is cut off", func(r *raw) { r.headers(1, true, []byte{0x82, 0x40}) },
		h2.CompressionError, "decompressed", 0},
	{"an index that is not there", func(r *raw) { r.headers(1, true, []byte{0xff, 0xff, 1}) },
		h2.CompressionError, "decompressed", 0},
	{"index 0", func(r *raw) { r.headers(1, true, []byte{0x80}) }, h2.CompressionError, "decompressed", 0},
	{"a table that is too large", func(r *raw) { r.headers(1, true, []byte{0x3f, 0xe2, 0x1f}) },
		h2.CompressionError, "decompressed", 0},
	{"a new size behind a field", func(r *raw) { r.headers(1, true, []byte{0x82, 0x20}) },
		h2.CompressionError, "decompressed", 0},
	{"Huffman's code with wrong padding", func(r *raw) { r.headers(1, true, []byte{0x01, 0x81, 0x00}) },
		h2.CompressionError, "decompressed", 0},
	{"CONTINUATION alone", func(r *raw) { r.WriteContinuation(1, true, nil) }, h2.ProtocolError, "without a head", 0},
	{"CONTINUATION of another stream", func(r *raw) {
		r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.fields(get...)})
		r.WriteContinuation(3, true, nil)
	}, h2.ProtocolError, "something else", 0},
	{"a frame within a head", func(r *raw) {
		r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.fields(get...)})
		r.WritePing(false, [8]byte{})
	}, h2.ProtocolError, "something else", 0},

	{"RST_STREAM without a stream", func(r *raw) { r.WriteRSTStream(0, 8) }, h2.ProtocolError, "without a stream", 0},
	{"RST_STREAM on an idle stream", func(r *raw) { r.WriteRSTStream(1, 8) }, h2.ProtocolError, "never opened", 0},
	{"RST_STREAM of the wrong size",
		func(r *raw) { r.request(1, true); r.WriteRawFrame(http2.FrameRSTStream, 0, 1, []byte{1}) },
		h2.FrameSizeError, "4 bytes", 0},
	{"SETTINGS on a stream", func(r *raw) { r.WriteRawFrame(http2.FrameSettings, 0, 1, nil) },
		h2.ProtocolError, "SETTINGS on a stream", 0},
	{"SETTINGS of the wrong size", func(r *raw) { r.WriteRawFrame(http2.FrameSettings, 0, 0, []byte{1}) },
		h2.FrameSizeError, "multiple of 6", 0},
	{"an acknowledgement that is not empty", func(r *raw) { r.WriteRawFrame(http2.FrameSettings, 1, 0, make([]byte, 6)) },
		h2.FrameSizeError, "not empty", 0},
	{"ENABLE_PUSH of 2", func(r *raw) { r.WriteSettings(http2.Setting{ID: 2, Val: 2}) },
		h2.ProtocolError, "ENABLE_PUSH", 0},
	{"an initial window of 2^31", func(r *raw) { r.WriteSettings(http2.Setting{ID: 4, Val: 1 << 31}) },
		h2.FlowControlError, "INITIAL_WINDOW_SIZE", 0},
	{"a maximum frame size of 16383", func(r *raw) { r.WriteSettings(http2.Setting{ID: 5, Val: 16383}) },
		h2.ProtocolError, "MAX_FRAME_SIZE", 0},
	{"a maximum frame size of 2^24", func(r *raw) { r.WriteSettings(http2.Setting{ID: 5, Val: 1 << 24}) },
		h2.ProtocolError, "MAX_FRAME_SIZE", 0},
	{"a window that grows too far by SETTINGS", func(r *raw) {
		r.request(1, false)
		r.WriteWindowUpdate(1, 1<<31-1-65535)
		r.WriteSettings(http2.Setting{ID: 4, Val: 65536})
	}, h2.FlowControlError, "exceed", 0},
	{"PUSH_PROMISE", func(r *raw) { r.WriteRawFrame(http2.FramePushPromise, 4, 1, make([]byte, 4)) },
		h2.ProtocolError, "PUSH_PROMISE", 0},
	{"PING on a stream", func(r *raw) { r.WriteRawFrame(http2.FramePing, 0, 1, make([]byte, 8)) },
		h2.ProtocolError, "PING on a stream", 0},
	{"PING of the wrong size", func(r *raw) { r.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 7)) },
		h2.FrameSizeError, "8 bytes", 0},
	{"GOAWAY on a stream", func(r *raw) { r.WriteRawFrame(http2.FrameGoAway, 0, 1, make([]byte, 8)) },
		h2.ProtocolError, "GOAWAY on a stream", 0},
	{"GOAWAY of the wrong size", func(r *raw) { r.WriteRawFrame(http2.FrameGoAway, 0, 0, make([]byte, 7)) },
		h2.FrameSizeError, "8 bytes", 0},
	{"WINDOW_UPDATE of the wrong size", func(r *raw) { r.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, make([]byte, 3)) },
		h2.FrameSizeError, "4 bytes", 0},
	{"WINDOW_UPDATE by nothing", func(r *raw) { r.WriteWindowUpdate(0, 0) }, h2.ProtocolError, "by nothing", 0},
	{"WINDOW_UPDATE by nothing on a stream", func(r *raw) { r.request(1, true); r.WriteWindowUpdate(1, 0) },
		h2.ProtocolError, "", 1},
	{"WINDOW_UPDATE on an idle stream", func(r *raw) { r.WriteWindowUpdate(1, 1) }, h2.ProtocolError, "never opened", 0},
	{"WINDOW_UPDATE too far", func(r *raw) { r.WriteWindowUpdate(0, 1<<31-1) }, h2.FlowControlError, "2^31-1", 0},
	{"WINDOW_UPDATE too far on a stream", func(r *raw) { r.request(1, true); r.WriteWindowUpdate(1, 1<<31-1) },
		h2.FlowControlError, "", 1},
	{"PRIORITY without a stream", func(r *raw) { r.WriteRawFrame(http2.FramePriority, 0, 0, make([]byte, 5)) },
		h2.ProtocolError, "PRIORITY without", 0},
	{"PRIORITY of the wrong size",
		func(r *raw) { r.request(1, true); r.WriteRawFrame(http2.FramePriority, 0, 1, make([]byte, 4)) },
		h2.FrameSizeError, "", 1},
	{"more than the window of the stream", func(r *raw) {
		r.request(1, false)
		for range 5 {
			r.WriteData(1, false, make([]byte, 16384))
		}
	}, h2.FlowControlError, "", 1},
	{"more than the window of the connection", func(r *raw) {
		for id := uint32(1); id <= 3; id += 2 {
			r.request(id, false)
			for range 3 {
				r.WriteData(id, false, make([]byte, 16384))
			}
		}
	}, h2.FlowControlError, "window of the connection", 0},
}

// still reads nothing, unless the request asks for an answer at once.
func still(s *h2.Stream) {
	if value(s.Head().Fields, "x-answer") != "" {
		s.WriteHead(204, nil, -1, true)
		return
	}
	gone := make(chan struct{})
	s.OnGone(func() { close(gone) })
	<-gone
}

func TestBreachesEndInTheRightError(t *testing.T) {
	t.Parallel()
	addr := serve(t, &h2.Config{ConnWindow: 81920}, still)
	for _, b := range breaches {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			r := rawClient(t, addr)
			b.do(r)
			if b.id != 0 {
				r.isReset(b.id, b.code)
			} else {
				r.isGoAway(b.code, b.words)
			}
		})
	}
}

func TestMalformedRequestsAreReset(t *testing.T) {
	t.Parallel()
	addr := serve(t, nil, still)
	with := func(more ...string) []string { return append(get[:len(get):len(get)], more...) }
	for name, pairs := range map[string][]string{
		"nothing":                       {},
		"no method":                     {":scheme", "http", ":path", "/"},
		"no path":                       {":method", "GET", ":scheme", "http"},
		"no scheme":                     {":method", "GET", ":path", "/"},
		"an empty path":                 {":method", "GET", ":scheme", "http", ":path", ""},
		"a path that is a word":         {":method", "GET", ":scheme", "http", ":path", "word"},
		"* without OPTIONS":             {":method", "GET", ":scheme", "http", ":path", "*"},
		"a path with a space":           {":method", "GET", ":scheme", "http", ":path", "/a b"},
		"a path with a line end":        {":method", "GET", ":scheme", "http", ":path", "/a\r\nb"},
		"a method with a space":         {":method", "GE T", ":scheme", "http", ":path", "/"},
		"an empty method":               {":method", "", ":scheme", "http", ":path", "/"},
		"an authority with a user":      {":method", "GET", ":scheme", "http", ":path", "/", ":authority", "me@s.test"},
		"an authority with a space":     {":method", "GET", ":scheme", "http", ":path", "/", ":authority", "s test"},
		"CONNECT with a path":           {":method", "CONNECT", ":authority", "s.test:1", ":path", "/"},
		"CONNECT with a scheme":         {":method", "CONNECT", ":authority", "s.test:1", ":scheme", "http"},
		"CONNECT to nobody":             {":method", "CONNECT"},
		"a status":                      with(":status", "200"),
		"an unknown pseudo field":       with(":protocol", "websocket"),
		"two methods":                   with(":method", "GET"),
		"two paths":                     with(":path", "/"),
		"two authorities":               with(":authority", ""),
		"a pseudo field behind another": with("a", "b", ":path", "/"),
		"a name in capitals":            with("Accept", "*/*"),
		"an empty name":                 with("", "x"),
		"a name with a space":           with("a b", "x"),
		"a name with a colon":           with("a:b", "x"),
		"a value with a line end":       with("a", "x\r\ny: z"),
		"a value with a NUL":            with("a", "x\x00"),
		"a value with a space first":    with("a", " x"),
		"a value with a tab last":       with("a", "x\t"),
		"connection":                    with("connection", "close"),
		"keep-alive":                    with("keep-alive", "1"),
		"proxy-connection":              with("proxy-connection", "close"),
		"transfer-encoding":             with("transfer-encoding", "chunked"),
		"upgrade":                       with("upgrade", "h2c"),
		"te":                            with("te", "gzip"),
		"content-length that is a word": with("content-length", "x"),
		"content-length below 0":        with("content-length", "-1"),
		"content-length, empty":         with("content-length", ""),
		"content-length, far too long":  with("content-length", "99999999999999999999"),
		"two content-lengths":           with("content-length", "0", "content-length", "0"),
		"another Host":                  with("host", "other.test"),
		"two Hosts":                     with("host", "s.test", "host", "s.test"),
		"a Host with a user":            {":method", "GET", ":scheme", "http", ":path", "/", "host", "me@s.test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rawClient(t, addr)
			r.headers(1, true, r.fields(pairs...))
			r.isReset(1, h2.ProtocolError)
		})
	}
}

func TestWhatIsAllowedIsTaken(t *testing.T) {
	t.Parallel()
	heads := make(chan string, 10)
	addr := serve(t, nil, func(s *h2.Stream) {
		h := s.Head()
		var words []string
		for _, f := range h.Fields {
			words = append(words, string(f.Name)+"="+string(f.Value))
		}
		body, _ := s.Next(in(patience))
		first := []string{string(h.Method), string(h.Scheme), string(h.Authority), string(h.Path), string(body)}
		heads <- strings.Join(append(first, words...), " ")
		s.WriteHead(204, nil, -1, true)
	})
	r := rawClient(t, addr)
	for _, c := range []struct {
		do   func(id uint32)
		want string
	}{
		{func(id uint32) { r.request(id, true, "te", "trailers", "x", "") }, "GET http s.test /  te=trailers x="},
		{func(id uint32) {
			r.headers(id, true, r.fields(":method", "GET", ":scheme", "https", ":path", "/?", "host", "h.test"))
		}, "GET https h.test /?  host=h.test"},
		{func(id uint32) { r.headers(id, true, r.fields(":method", "OPTIONS", ":scheme", "http", ":path", "*")) },
			"OPTIONS http  * "},
		{func(id uint32) { r.headers(id, true, r.fields(":method", "CONNECT", ":authority", "s.test:443")) },
			"CONNECT  s.test:443  "},
		{func(id uint32) { r.request(id, true, "cookie", "a=1", "b", "c", "cookie", "d=2") },
			"GET http s.test /  cookie=a=1; d=2 b=c"},
		{func(id uint32) {
			r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.fields(get...), EndHeaders: true,
				PadLength: 200,
				Priority:  http2.PriorityParam{StreamDep: id, Weight: 3}})
			r.WriteDataPadded(id, true, []byte("padded"), make([]byte, 255))
		}, "GET http s.test / padded"},
		{func(id uint32) {
			block := r.fields(append(get, "a", strings.Repeat("x", 100))...)
			r.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:1], EndStream: true})
			for i := 1; i < 10; i++ {
				r.WriteContinuation(id, false, block[i:i+1])
			}
			r.WriteContinuation(id, true, block[10:])
		}, "GET http s.test /  a=" + strings.Repeat("x", 100)},
		{func(id uint32) {
			r.WriteRawFrame(0xbe, 0xff, 77, []byte("unknown"))
			r.WritePriority(4711, http2.PriorityParam{StreamDep: 3})
			r.WriteSettings(http2.Setting{ID: 0xabc, Val: 1}, http2.Setting{ID: 1, Val: 0})
			r.request(id, false, "content-length", "3")
			r.WriteData(id, false, nil)
			r.WriteData(id, true, []byte("abc"))
		}, "GET http s.test / abc content-length=3"},
		{func(id uint32) {
			r.WriteSettings(http2.Setting{ID: 1, Val: 4096})
			r.enc.SetMaxDynamicTableSize(0)
			r.enc.SetMaxDynamicTableSize(100)
			r.request(id+10, true)
		}, "GET http s.test / "},
	} {
		id := uint32(1)
		if r.frames++; r.frames > 1 {
			id = r.frames*2 - 1
		}
		c.do(id)
		if got := <-heads; got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	r.alive()
}

func TestWhatIsNoHTTP2IsTurnedAway(t *testing.T) {
	t.Parallel()
	addr := serve(t, nil, still)
	for _, begin := range []string{"GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXM\r\n\r\n", "\x16\x03\x01"} {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(nc, begin)
		newRaw(t, nc).isGoAway(h2.ProtocolError, "preface")
	}
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(nc, http2.ClientPreface)
	r := newRaw(t, nc)
	r.WritePing(false, [8]byte{})
	r.isGoAway(h2.ProtocolError, "not SETTINGS")
}
