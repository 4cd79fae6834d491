package h1_test

import (
	"reflect"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

func TestAppend(t *testing.T) {
	field := func(name, value string) h1.Field { return h1.Field{Name: []byte(name), Value: []byte(value)} }
	request := h1.Request{Method: []byte("PUT")}
	for _, c := range []struct {
		name      string
		got, want string
	}{
		{"request", string(h1.AppendRequest([]byte("x"), &request, []byte("a:80"), []byte("/b?c"))),
			"xPUT /b?c HTTP/1.1\r\nHost: a:80\r\n"},
		{"200", string(h1.AppendStatus([]byte("x"), 200, nil)), "xHTTP/1.1 200 OK\r\n"},
		{"200 with its own reason", string(h1.AppendStatus(nil, 200, []byte("Fine"))), "HTTP/1.1 200 Fine\r\n"},
		{"200 with its usual reason", string(h1.AppendStatus(nil, 200, []byte("OK"))), "HTTP/1.1 200 OK\r\n"},
		{"200 with an empty reason", string(h1.AppendStatus(nil, 200, []byte{})), "HTTP/1.1 200 \r\n"},
		{"usual reason", string(h1.AppendStatus(nil, 503, nil)), "HTTP/1.1 503 Service Unavailable\r\n"},
		{"no usual reason", string(h1.AppendStatus(nil, 599, nil)), "HTTP/1.1 599 \r\n"},
		{"no fields", string(h1.AppendFields([]byte("x"), nil)), "x"},
		{"fields", string(h1.AppendFields([]byte("x"), []h1.Field{field("A", "b"), field("C", "")})), "xA: b\r\nC: \r\n"},
		{"field", string(h1.AppendField([]byte("x"), "A", "b")), "xA: b\r\n"},
		{"chunk", string(h1.AppendChunk([]byte("x"), []byte("0123456789abcdef"))), "x10\r\n0123456789abcdef\r\n"},
		{"empty chunk", string(h1.AppendChunk([]byte("x"), nil)), "x"},
		{"chunk size", string(h1.AppendChunkSize([]byte("x"), 1<<20)), "x100000\r\n"},
		{"last chunk", string(h1.AppendLastChunk([]byte("x"), nil)), "x0\r\n\r\n"},
		{"last chunk with trailer", string(h1.AppendLastChunk([]byte("x"), []h1.Field{field("A", "b")})),
			"x0\r\nA: b\r\n\r\n"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

// appendRequest writes a parsed request as a proxy does: hop-by-hop fields anew.
func appendRequest(r *h1.Request) []byte {
	b := h1.AppendFields(h1.AppendRequest(nil, r, r.Host, r.Path), r.Fields)
	b = appendFraming(b, r.Length, r.Chunked)
	if r.Expect {
		b = h1.AppendField(b, "Expect", "100-continue")
	}
	if r.Upgrade != nil {
		b = h1.AppendField(h1.AppendField(b, "Connection", "upgrade"), "Upgrade", string(r.Upgrade))
	}
	return append(b, "\r\n"...)
}

func appendFraming(b []byte, length int64, chunked bool) []byte {
	if chunked {
		return h1.AppendField(b, "Transfer-Encoding", "chunked")
	}
	if length >= 0 {
		return append(appendInt(append(b, "Content-Length: "...), length), "\r\n"...)
	}
	return b
}

func TestWhatIsWrittenReadsTheSame(t *testing.T) {
	for _, in := range []string{
		typicalRequest,
		head("POST http://b/c?d HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Expect: 100-continue", "X:1",
			"Connection: y", "Y: 2"),
		head("GET /%41 HTTP/1.1", "Host: a", "Connection: upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x",
			"Content-Length: 5"),
	} {
		var r, again h1.Request
		if err := r.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		if err := again.Parse(appendRequest(&r)); err != nil {
			t.Fatal(err)
		}
		want := view(&r)
		want.Target, want.Scheme = want.Path, "" // in origin form from here on
		if got := view(&again); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	var r, again h1.Response
	if err := r.Parse([]byte(typicalResponse), false); err != nil {
		t.Fatal(err)
	}
	b := appendFraming(h1.AppendFields(h1.AppendStatus(nil, r.Status, r.Reason), r.Fields), r.Length, r.Chunked)
	if err := again.Parse(append(b, "\r\n"...), false); err != nil {
		t.Fatal(err)
	}
	if got, want := viewResponse(&again), viewResponse(&r); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestChunksThatAreWrittenReadTheSame(t *testing.T) {
	b := h1.AppendChunk(h1.AppendChunk(nil, []byte("abc")), make([]byte, 300))
	b = append(append(h1.AppendChunkSize(b, 2), "de"...), "\r\n"...)
	b = h1.AppendLastChunk(b, []h1.Field{{Name: []byte("A"), Value: []byte("b")}})
	var c h1.Chunked
	want := decoded{"abc" + string(make([]byte, 300)) + "de", []string{"A: b"}, len(b), true, nil}
	if got := decode(t, &c, b, 100); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	many := "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, y, keep-alive\r\n"
	for range 62 {
		many += "Some-Name: some value\r\n"
	}
	manyFields, typical, answer := []byte(many+"\r\n"), []byte(typicalRequest), []byte(typicalResponse)
	broken := []byte(head("GET / HTTP/1.1", "Host: a", "A: b", "B : c"))
	body := h1.AppendLastChunk(h1.AppendChunk(nil, []byte("abc")), []h1.Field{{Name: []byte("A"), Value: []byte("b")}})
	var req h1.Request
	resp := h1.Response{Fields: make([]h1.Field, 0, 64)}
	var chunked h1.Chunked
	dst := make([]byte, 0, 4096)
	for _, c := range []struct {
		name string
		f    func() *h1.Error
	}{
		{"HeadEnd", func() *h1.Error { _, err := h1.HeadEnd(typical, 0); return err }},
		{"HeadEnd of a part", func() *h1.Error { _, err := h1.HeadEnd(typical[:300], 0); return err }},
		{"Request", func() *h1.Error { return req.Parse(typical) }},
		{"Request of 64 fields", func() *h1.Error { return req.Parse(manyFields) }},
		{"Request after a broken one", func() *h1.Error { req.Parse(broken); return req.Parse(typical) }},
		{"Response", func() *h1.Error { return resp.Parse(answer, false) }},
		{"Chunked", func() *h1.Error { chunked.Reset(); _, _, _, err := chunked.Next(body); return err }},
		{"Append", func() *h1.Error {
			b := h1.AppendFields(h1.AppendRequest(dst, &req, req.Host, req.Path), req.Fields)
			b = h1.AppendFields(h1.AppendStatus(b, 404, nil), resp.Fields)
			b = h1.AppendField(h1.AppendChunk(b, body), "A", "b")
			h1.AppendLastChunk(b, chunked.Trailer())
			return nil
		}},
	} {
		if err := c.f(); err != nil { // first of all memory grows
			t.Fatalf("%s: %v", c.name, err)
		}
		if n := testing.AllocsPerRun(100, func() { c.f() }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
}
