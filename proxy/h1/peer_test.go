package h1_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

func appendInt(b []byte, n int64) []byte { return strconv.AppendInt(b, n, 10) }

// endToEnd are the fields that net/http read, without those that end here, in the same
// form as byName.
func endToEnd(head []byte, header http.Header, request bool) map[string][]string {
	hop := []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Upgrade", "Content-Length", "Http2-Settings",
		"Proxy-Authorization", "Trailer"}
	if request {
		hop = append(hop, "Expect")
	}
	lines := textproto.NewReader(reader(head))
	lines.ReadLine()
	all, _ := lines.ReadMIMEHeader() // net/http may have removed Connection
	for _, options := range all["Connection"] {
		for option := range strings.SplitSeq(options, ",") {
			hop = append(hop, textproto.CanonicalMIMEHeaderKey(strings.Trim(option, " \t")))
		}
	}
	left := make(map[string][]string)
	for name, values := range header {
		if !slices.Contains(hop, name) {
			left[name] = values
		}
	}
	if pragma := left["Pragma"]; len(pragma) > 0 && pragma[0] == "no-cache" &&
		slices.Equal(left["Cache-Control"], []string{"no-cache"}) {
		delete(left, "Cache-Control") // which net/http adds
	}
	return left
}

// byName collects fields as net/http does. Trailer is left out: net/http takes it away
// with a chunked body.
func byName(fields []h1.Field) map[string][]string {
	all := make(map[string][]string)
	for _, f := range fields {
		name := textproto.CanonicalMIMEHeaderKey(string(f.Name))
		if name != "Trailer" && name != "Host" {
			all[name] = append(all[name], string(f.Value))
		}
	}
	if pragma := all["Pragma"]; len(pragma) > 0 && pragma[0] == "no-cache" &&
		slices.Equal(all["Cache-Control"], []string{"no-cache"}) {
		delete(all, "Cache-Control")
	}
	return all
}

func reader(head []byte) *bufio.Reader {
	return bufio.NewReaderSize(bytes.NewReader(bytes.TrimPrefix(head, []byte("\r\n"))), 64<<10)
}

// FuzzRequest checks that net/http reads what we accept, and reads the same.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(typicalRequest))
	f.Add([]byte(head("POST http://[::1]:80?a HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Expect: 100-continue",
		"X:1", "Connection: y", "Y: 2")))
	f.Add([]byte(head("GET /%41 HTTP/1.0", "Host: a", "Connection: upgrade, keep-alive", "Upgrade: websocket",
		"Content-Length: 5")))
	f.Add([]byte("\r\n" + head("OPTIONS * HTTP/1.1", "Host: a.b:1", "Pragma: no-cache", "TE: trailers", "A:\t\xff")))
	f.Fuzz(func(t *testing.T, in []byte) { agreeOnRequest(t, in) })
}

// sameLines checks that a request's fields are written as any others are: all of them, some of them, in another order,
// and when they were copied or changed since.
func sameLines(t *testing.T, r *h1.Request) {
	t.Helper()
	some, copied := slices.Clone(r.Fields), slices.Clone(r.Fields)
	slices.Reverse(some)
	for i, f := range copied {
		switch i % 4 {
		case 1:
			copied[i].Value = bytes.Repeat([]byte{'z'}, len(f.Value))
		case 2:
			copied[i].Name = bytes.Repeat([]byte{'z'}, len(f.Name))
		case 3:
			copied[i].Name, copied[i].Value = f.Name[:1], f.Value[len(f.Value)/2:]
		}
	}
	odd := slices.DeleteFunc(slices.Clone(r.Fields), func(f h1.Field) bool { return len(f.Name)%2 == 0 })
	half, twice := r.Fields[len(r.Fields)/2:], slices.Concat(some, r.Fields)
	for _, fields := range [][]h1.Field{r.Fields, some, copied, odd, half, twice} {
		if got, want := r.AppendFields(nil, fields), h1.AppendFields(nil, fields); !bytes.Equal(got, want) {
			t.Fatalf("fields written as %q, not as %q", got, want)
		}
	}
}

// badTrailer tells the one thing that we accept and net/http does not: a Trailer field
// that announces a forbidden one. We drop that when it comes.
func badTrailer(err error) bool {
	return err != nil && strings.Contains(err.Error(), "bad trailer key")
}

// agreeOnRequest reports whether a head is good; then net/http must think the same of it,
// and of what we make of it.
func agreeOnRequest(t *testing.T, in []byte) (good bool) {
	t.Helper()
	n, err := h1.HeadEnd(in, 0)
	if err != nil || n == 0 {
		n = len(in)
	}
	var r, again h1.Request
	if r.Parse(in[:n]) != nil {
		return false
	}
	if err != nil || !bytes.HasSuffix(in[:n], []byte("\r\n\r\n")) {
		t.Fatalf("Parse accepts what HeadEnd refuses: %q", in)
	}
	sameLines(t, &r)
	theirs, readErr := http.ReadRequest(reader(in[:n]))
	if badTrailer(readErr) {
		return true
	}
	if readErr != nil {
		t.Fatalf("net/http refuses %q: %v", in[:n], readErr)
	}
	sameRequest(t, in, &r, theirs)
	if r.Minor == 0 && len(r.Host) == 0 {
		return true // the proxy knows the host
	}
	if string(r.Method) == http.MethodConnect {
		return true // it is never written
	}
	written := appendRequest(&r)
	if err := again.Parse(written); err != nil {
		t.Fatalf("%q, from %q: %v", written, in[:n], err)
	}
	if theirs, readErr = http.ReadRequest(reader(written)); readErr != nil {
		t.Fatalf("net/http refuses %q: %v", written, readErr)
	}
	sameRequest(t, written, &again, theirs)
	return true
}

func sameRequest(t *testing.T, in []byte, r *h1.Request, theirs *http.Request) {
	t.Helper()
	want := request{
		Method:  theirs.Method,
		Target:  theirs.RequestURI,
		Host:    theirs.Host,
		Minor:   theirs.ProtoMinor,
		Scheme:  theirs.URL.Scheme,
		Length:  theirs.ContentLength,
		Chunked: slices.Equal(theirs.TransferEncoding, []string{"chunked"}),
		Close:   theirs.Close,
		Path:    pathOf(theirs),
	}
	got := view(r)
	got.Fields, got.Upgrade, got.Expect, got.Trailers, got.Keyed = nil, "", false, false, false
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got\n%+v, net/http\n%+v", in, got, want)
	}
	if fields, want := byName(r.Fields), endToEnd(in, theirs.Header, true); !reflect.DeepEqual(fields, want) {
		t.Fatalf("%q: got fields\n%q, net/http\n%q", in, fields, want)
	}
	keyed := strings.Join(theirs.Header["Idempotency-Key"], "")+strings.Join(theirs.Header["X-Idempotency-Key"], "") != ""
	if r.Keyed != keyed {
		t.Fatalf("%q: keyed %v, net/http %v", in, r.Keyed, keyed)
	}
}

// pathOf is the path and query of a request's target.
func pathOf(r *http.Request) string {
	switch {
	case r.Method == "CONNECT":
		return ""
	case r.URL.Scheme == "":
		return r.RequestURI
	}
	rest := r.RequestURI[len(r.URL.Scheme)+len("://")+len(r.URL.Host):]
	switch {
	case rest == "" && r.Method == "OPTIONS":
		return "*"
	case rest == "" || rest[0] == '?':
		return "/" + rest
	}
	return rest
}

// FuzzResponse checks that net/http reads what we accept, and reads the same.
func FuzzResponse(f *testing.F) {
	f.Add([]byte(typicalResponse), false)
	f.Add([]byte(head("HTTP/1.0 304 Not Modified", "Content-Length: 3", "Connection: keep-alive, x", "X: 1")), false)
	f.Add([]byte(head("HTTP/1.1 200", "Transfer-Encoding: chunked", "Set-Cookie: a", "Set-Cookie: b")), true)
	f.Add([]byte(head("HTTP/1.1 204 ", "Trailer: x")), false)
	f.Fuzz(func(t *testing.T, in []byte, toHead bool) { agreeOnResponse(t, in, toHead) })
}

// agreeOnResponse reports whether a head is good; then net/http must think the same of it.
func agreeOnResponse(t *testing.T, in []byte, toHead bool) (good bool) {
	t.Helper()
	var r h1.Response
	if r.Parse(in, toHead) != nil {
		return false
	}
	method := http.MethodGet
	if toHead {
		method = http.MethodHead
	}
	theirs, err := http.ReadResponse(reader(in), &http.Request{Method: method})
	if badTrailer(err) {
		return true
	}
	if err != nil {
		t.Fatalf("net/http refuses %q: %v", in, err)
	}
	defer theirs.Body.Close()
	bodyless := toHead || r.Status < 200 || r.Status == 204 || r.Status == 304
	want := response{
		Status: theirs.StatusCode, Minor: theirs.ProtoMinor, Reason: strings.TrimPrefix(theirs.Status[3:], " "),
		Length: theirs.ContentLength, Chunked: !bodyless && len(theirs.TransferEncoding) > 0, Close: theirs.Close,
	}
	if bodyless {
		want.Length = 0
	}
	got := viewResponse(&r)
	got.Announced, got.Fields, got.Upgrade, got.Reason = 0, nil, "", strings.TrimLeft(got.Reason, " ")
	want.Reason = strings.TrimLeft(want.Reason, " ")
	if r.Status == 204 && got.Close { // more careful than net/http
		want.Close = true
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got\n%+v, net/http\n%+v", in, got, want)
	}
	announced := int64(-1)
	if length := theirs.Header.Get("Content-Length"); length != "" {
		announced, _ = strconv.ParseInt(length, 10, 64)
	}
	if r.Announced != announced {
		t.Fatalf("%q: announced %d, net/http %d", in, r.Announced, announced)
	}
	fields, theirFields := byName(r.Fields), endToEnd(in, theirs.Header, false)
	delete(theirFields, "Host")
	delete(fields, "Proxy-Authorization")
	delete(theirFields, "Proxy-Authorization")
	if !reflect.DeepEqual(fields, theirFields) {
		t.Fatalf("%q: got fields\n%q, net/http\n%q", in, fields, theirFields)
	}
	return true
}

// readsAlike checks that net/http reads the same content and trailer from a chunked body
// that we have read.
func readsAlike(t *testing.T, body []byte, d decoded) {
	t.Helper()
	in := append([]byte(head("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked")), body...)
	buffered := reader(in)
	theirs, err := http.ReadRequest(buffered)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(theirs.Body)
	if err != nil || string(content) != d.content {
		t.Fatalf("%q: got %q, net/http %q, %v", body, d.content, content, err)
	}
	for _, line := range d.trailer {
		name, value, _ := strings.Cut(line, ": ")
		if !slices.Contains(theirs.Trailer[textproto.CanonicalMIMEHeaderKey(name)], value) {
			t.Fatalf("%q: got trailer %q, net/http %q", body, d.trailer, theirs.Trailer)
		}
	}
	if rest, _ := io.ReadAll(buffered); string(rest) != string(body[d.n:]) {
		t.Fatalf("%q: net/http leaves %q, we %q", body, rest, body[d.n:])
	}
}

// An absolute target's host is one that net/url agrees to.
func TestHostsAgreeWithURLs(t *testing.T) {
	for _, host := range []string{"a", "a:1", "[::1]", "[::ffff:1.2.3.4]:1", "1.2.3.4", "a.b", "-", "~", "a_b", "0x7f.1"} {
		var r h1.Request
		if err := r.Parse([]byte(head("GET http://"+host+"/ HTTP/1.1", "Host: "+host))); err != nil {
			t.Errorf("%s: %v", host, err)
		}
		if u, err := url.Parse("http://" + host + "/"); err != nil || u.Host != host {
			t.Errorf("%s: net/url reads %v, %v", host, u, err)
		}
	}
}
