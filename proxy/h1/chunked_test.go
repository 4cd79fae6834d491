package h1_test

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

// decoded is what came of a chunked body.
type decoded struct {
	content string
	trailer []string
	n       int // bytes used up
	done    bool
	err     *h1.Error
}

// decode feeds in to c in pieces of the given lengths, over and over.
func decode(t *testing.T, c *h1.Chunked, in []byte, pieces ...int) decoded {
	t.Helper()
	var d decoded
	var content []byte
	for i := 0; d.n < len(in) && !d.done && d.err == nil; i++ {
		piece := in[d.n:min(d.n+max(pieces[i%len(pieces)], 1), len(in))]
		for len(piece) > 0 && !d.done {
			data, n, done, err := c.Next(piece)
			if err != nil {
				d.err = err
				break
			}
			if n == 0 && !done {
				t.Fatalf("%q: nothing used up of %q", in, piece)
			}
			content = append(content, data...)
			d.n, d.done, piece = d.n+n, done, piece[n:]
		}
	}
	d.content = string(content)
	if d.done {
		d.trailer = fieldLines(c.Trailer())
	}
	return d
}

func TestChunks(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, c := range []struct {
		name, in, content string
		behind            int // bytes that are not used up
		trailer           []string
	}{
		{"no content", "0\r\n\r\n", "", 0, nil},
		{"one chunk", "3\r\nabc\r\n0\r\n\r\n", "abc", 0, nil},
		{"two chunks", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", 0, nil},
		{"digits in both cases", "a\r\n0123456789\r\nA\r\n0123456789\r\n1F\r\n" + long[:31] + "\r\n0\r\n\r\n",
			"01234567890123456789" + long[:31], 0, nil},
		{"line ends as content", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", 0, nil},
		{"16 digits", "0000000000000003\r\nabc\r\n000\r\n\r\n", "abc", 0, nil},
		{"a long chunk", "1388\r\n" + long + "\r\n0\r\n\r\n", long, 0, nil},
		{"another message behind", "3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n", "abc", 16, nil},
		{"extensions", "3;a=b;c=\"d;\xff\"\r\nabc\r\n3; a\r\ndef\r\n0;e\r\n\r\n", "abcdef", 0, nil},
		{"extension of 256 bytes", "3;" + long[:255] + "\r\nabc\r\n0\r\n\r\n", "abc", 0, nil},
		{"many chunks of one byte", strings.Repeat("1\r\nx\r\n", 5000) + "0\r\n\r\n", long, 0, nil},
		{"long extensions on long chunks", strings.Repeat("100;"+long[:200]+"\r\n"+long[:256]+"\r\n", 300) + "0\r\n\r\n",
			strings.Repeat("x", 300*256), 0, nil},
		{"as many extensions as may be", strings.Repeat("1;"+long[:255]+"\r\nx\r\n", 64) + "1;" + long[:63] +
			"\r\nx\r\n0\r\n\r\n", long[:65], 0, nil},
		{"64 trailer fields", "0\r\n" + strings.Repeat("a:\r\n", 64) + "\r\n", "", 0, slices.Repeat([]string{"a: "}, 64)},
		{"trailer of 8 KiB", "0\r\na:" + strings.Repeat("x", 8188) + "\r\n\r\n", "", 0, []string{
			"a: " + strings.Repeat("x", 8188),
		}},
		{"trailer", "1\r\nx\r\n0\r\nGrpc-Status: 0\r\ngrpc-message:  a b \t\r\n\r\nbehind", "x", 6, []string{
			"Grpc-Status: 0", "grpc-message: a b",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var chunked h1.Chunked
			for _, pieces := range [][]int{{len(c.in)}, {1}, {2}, {3, 1}, {7, 5, 64}} {
				chunked.Reset()
				want := decoded{c.content, c.trailer, len(c.in) - c.behind, true, nil}
				if got := decode(t, &chunked, []byte(c.in), pieces...); !reflect.DeepEqual(got, want) {
					t.Fatalf("in pieces of %v: got %.200v, want %.200v", pieces, got, want)
				}
			}
		})
	}
}

func TestContentPointsIntoTheInput(t *testing.T) {
	in := []byte("3\r\nabc\r\n0\r\n\r\n")
	var c h1.Chunked
	data, n, done, err := c.Next(in)
	if err != nil || n != len(in) || !done || string(data) != "abc" || &data[0] != &in[3] || cap(data) != 3 {
		t.Errorf("got %q of %d, %d, %v, %v", data, cap(data), n, done, err)
	}
	if data, n, done, err = c.Next([]byte("1")); data != nil || n != 0 || !done || err != nil {
		t.Errorf("after the end: got %q, %d, %v, %v", data, n, done, err)
	}
}

func TestTheGreatestChunk(t *testing.T) {
	for _, size := range []string{"7fffffffffffffff", "7FFFFFFFFFFFFFF0"} {
		var c h1.Chunked
		if d := decode(t, &c, []byte(size+"\r\nabc"), 5); d.err != nil || d.done || d.content != "abc" {
			t.Errorf("%s: got %v", size, d)
		}
	}
}

func TestChunksRefused(t *testing.T) {
	long := strings.Repeat("x", 10000)
	last := "0\r\n"
	for _, c := range []struct {
		name, in string
		status   int
		words    string
	}{
		{"no size", "\r\nabc", 400, "chunk size"},
		{"no digit", "g\r\nabc", 400, "chunk size"},
		{"sign", "+3\r\nabc", 400, "chunk size"},
		{"negative", "-1\r\nabc", 400, "chunk size"},
		{"prefix", "0x3\r\nabc", 400, "followed by"},
		{"space before the size", " 3\r\nabc", 400, "chunk size"},
		{"extension without size", ";a\r\n", 400, "chunk size"},
		{"17 digits", "00000000000000003\r\nabc", 400, "16 digits"},
		{"size of 2^63", "8000000000000000\r\n", 400, "chunk size"},
		{"size of 2^64", "10000000000000000\r\n", 400, "chunk size"},
		{"the greatest 16 digits", "ffffffffffffffff\r\n", 400, "chunk size"},
		{"space behind the size", "3 \r\nabc", 400, "followed by"},
		{"space before an extension", "3 ;a\r\nabc", 400, "followed by"},
		{"tab behind the size", "3\t;a\r\nabc", 400, "followed by"},
		{"something behind the size", "3 a\r\nabc", 400, "followed by"},
		{"size line ends with LF", "3\nabc", 400, "followed by"},
		{"size line ends with CR", "3\rabc", 400, "followed by"},
		{"NUL in the size", "3\x00\r\nabc", 400, "followed by"},
		{"extension ends with LF", "3;a\nabc", 400, "control"},
		{"CR in an extension", "3;a\rb\r\n", 400, "followed by"},
		{"NUL in an extension", "3;\x00\r\n", 400, "control"},
		{"tab in an extension", "3;\t\r\n", 400, "control"},
		{"DEL in an extension", "3;\x7f\r\n", 400, "control"},
		{"extension of 257 bytes", "3;" + long[:256] + "\r\n", 400, "256 bytes"},
		{"extension without end", "3;" + long, 400, "256 bytes"},
		{"more extensions than content", strings.Repeat("1;"+long[:255]+"\r\nx\r\n", 65), 400, "longer than the content"},
		{"one byte more of extensions", strings.Repeat("1;"+long[:255]+"\r\nx\r\n", 64) + "1;" + long[:64] + "\r\nx\r\n", 400,
			"longer than the content"},
		{"longer than its size", "3\r\nabcd\r\n", 400, "longer or shorter"},
		{"shorter than its size", "3\r\nab\r\n0", 400, "longer or shorter"},
		{"content ends with LF", "3\r\nabc\n", 400, "longer or shorter"},
		{"content ends with CR", "3\r\nabc\r0", 400, "longer or shorter"},
		{"empty line of LF alone", last + "\n", 400, "LF alone"},
		{"empty line of CR alone", last + "\rx", 400, "CR without LF"},
		{"folded trailer", last + " a: b\r\n\r\n", 400, "folded"},
		{"folded trailer line", last + "a: b\r\n\tc\r\n\r\n", 400, "folded"},
		{"trailer line ends with LF", last + "a: b\n", 400, "LF alone"},
		{"CR in a trailer field", last + "a: \rb\r\n\r\n", 400, "CR inside"},
		{"NUL in a trailer field", last + "a: \x00\r\n\r\n", 400, "NUL"},
		{"space before a trailer's colon", last + "a : b\r\n\r\n", 400, "after a field name"},
		{"trailer without a colon", last + "GET / HTTP/1.1\r\n\r\n", 400, "field name"},
		{"bad name of a forbidden field", last + "Content-Length(: b\r\n\r\n", 400, "not allowed"},
		{"trailer of more than 8 KiB", last + "a:" + long[:8189] + "\r\n\r\n", 431, "8 KiB"},
		{"trailer without end", last + "a: " + long, 431, "8 KiB"},
		{"trailer of many lines", last + strings.Repeat("a: "+long[:100]+"\r\n", 80), 431, "8 KiB"},
		{"65 trailer fields", last + strings.Repeat("a:\r\n", 65) + "\r\n", 431, "64"},
		{"65 forbidden trailer fields", last + strings.Repeat("te:\r\n", 65) + "\r\n", 431, "64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var chunked h1.Chunked
			for _, pieces := range [][]int{{len(c.in)}, {1}, {3, 1}} {
				chunked.Reset()
				d := decode(t, &chunked, []byte(c.in), pieces...)
				refused(t, d.err, c.status, c.words)
				if data, n, done, err := chunked.Next([]byte("0\r\n\r\n")); data != nil || n != 0 || done || err != d.err {
					t.Errorf("after the error: got %q, %d, %v, %v", data, n, done, err)
				}
			}
		})
	}
}

func TestForbiddenTrailerFieldsAreDropped(t *testing.T) {
	forbidden := []string{
		"Transfer-Encoding", "Content-Length", "Content-Type", "Content-Encoding", "Content-Range", "Host", "Trailer", "TE",
		"Connection", "Keep-Alive", "Proxy-Connection", "Upgrade", "HTTP2-Settings", "Expect", "Authorization",
		"Proxy-Authorization",
		"Proxy-Authenticate", "WWW-Authenticate", "Cookie", "Set-Cookie", "Cache-Control", "Pragma", "Range", "If-Match",
		"Max-Forwards", "Age", "Date", "Expires", "Location", "Retry-After", "Vary", "Via", "Forwarded", "X-Forwarded-For",
		"Idempotency-Key", "X-Idempotency-Key", "Abate-Attempt", "X-Envoy-Attempt-Count",
	}
	allowed := []string{"Grpc-Status", "Grpc-Retry-Pushback-Ms", "Server-Timing", "ETag", "Content-Digest", "X-Checksum"}
	body := "0\r\n"
	for i, name := range forbidden {
		body += strings.ToLower(name) + ": 1\r\n" + allowed[i%len(allowed)] + ": 2\r\n"
		if (i+1)%len(allowed) != 0 && i != len(forbidden)-1 {
			continue
		}
		var c h1.Chunked
		d := decode(t, &c, []byte(body+"\r\n"), 100)
		if !d.done || slices.ContainsFunc(d.trailer, func(line string) bool { return !strings.HasSuffix(line, ": 2") }) ||
			len(d.trailer) != strings.Count(body, ": 2") {
			t.Errorf("of %q: got %v, %v", body, d.trailer, d.err)
		}
		body = "0\r\n"
	}
}

// reference decodes a whole chunked body by the grammar, if it is one; n is where it
// ends. It knows nothing of limits but those of the size.
func reference(in string) (content string, trailer []string, n int, ok bool) {
	rest := in
	for {
		line, after, found := strings.Cut(rest, "\r\n")
		digits, ext, _ := strings.Cut(line, ";")
		control := func(c rune) bool { return c < ' ' || c == 0x7f }
		if !found || strings.ContainsFunc(ext, control) || len(digits) > 16 || strings.ContainsAny(digits, "+-_xX") {
			return "", nil, 0, false
		}
		size, err := strconv.ParseInt(digits, 16, 64)
		if err != nil {
			return "", nil, 0, false
		}
		if rest = after; size == 0 {
			break
		}
		if size > int64(len(rest)) || !strings.HasPrefix(rest[size:], "\r\n") {
			return "", nil, 0, false
		}
		content += rest[:size]
		rest = rest[size+2:]
	}
	for {
		line, after, found := strings.Cut(rest, "\r\n")
		if !found {
			return "", nil, 0, false
		}
		if rest = after; line == "" {
			return content, trailer, len(in) - len(rest), true
		}
		trailer = append(trailer, line)
	}
}

// FuzzChunked decodes by the grammar, in pieces and in one go, and as net/http does it.
func FuzzChunked(f *testing.F) {
	f.Add([]byte("3\r\nabc\r\n0\r\n\r\n"), []byte{1})
	f.Add([]byte("3;a=b\r\nabc\r\nA;c\r\n0123456789\r\n0\r\nX: y\r\nTE: 1\r\n\r\nbehind"), []byte{4, 0, 9})
	f.Add([]byte("00003\r\nabc\r\n0\r\nX: \r\n\r\n"), []byte{200})
	f.Add([]byte("7fffffffffffffff\r\nabc\n"), []byte{2})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		pieces := []int{1}
		for _, cut := range cuts {
			pieces = append(pieces, int(cut))
		}
		var c h1.Chunked
		whole := decode(t, &c, in, len(in))
		c.Reset()
		split := decode(t, &c, in, pieces...)
		if whole.done != split.done || whole.err != split.err ||
			whole.err == nil && !reflect.DeepEqual(whole, split) {
			t.Fatalf("%q: in one go %v, in pieces of %v %v", in, whole, pieces, split)
		}
		content, trailer, n, ok := reference(string(in))
		if whole.done && (!ok || content != whole.content || n != whole.n || len(whole.trailer) > len(trailer)) {
			t.Fatalf("%q: got %v, by the grammar %q, %q, %d, %v", in, whole, content, trailer, n, ok)
		}
		tooMuch := len(in) > 256 // some limit may have been passed
		if ok && !whole.done && !tooMuch && len(trailer) == 0 {
			t.Fatalf("%q: refused with %v, is %q by the grammar", in, whole.err, content)
		}
		if whole.done {
			readsAlike(t, bytes.Clone(in), whole)
		}
	})
}
