package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// echo is an upstream that answers every request with its own request line.
func echo(t testing.TB) *server {
	return upstream(t, func(c net.Conn, req string) { fmt.Fprint(c, ok(line(req))) })
}

const smuggled = "GET /smuggled HTTP/1.1\r\nHost: s.test\r\n\r\n"

// requestsRefused are heads that must not reach a service. What follows one is never taken for a request.
var requestsRefused = []struct {
	name   string
	send   string
	status int
}{
	{"Content-Length and Transfer-Encoding",
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding and Content-Length", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: " +
		"chunked\r\nContent-Length: 44\r\n\r\n0\r\n\r\n", 400},
	{"Content-Length: 0 and Transfer-Encoding",
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"two Transfer-Encodings", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: " +
		"identity\r\n\r\n0\r\n\r\n", 400},
	{"chunked twice", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n0\r\n\r\n", 400},
	{"chunked, chunked", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400},
	{"chunked, identity", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400},
	{"gzip, chunked", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
	{"xchunked", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
	{"quoted chunked", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 501},
	{"chunked behind a tab", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", 400},
	{"chunked behind a vertical tab", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
		400},
	{"empty Transfer-Encoding", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding with a space before its colon",
		"POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding behind a space", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 5\r\n Transfer-Encoding: " +
		"chunked\r\n\r\n0\r\n\r\n", 400},
	{"folded Transfer-Encoding", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
		400},
	{"Transfer-Encoding behind a bare LF", "POST / HTTP/1.1\r\nHost: s.test\r\nA: b\nTransfer-Encoding: " +
		"chunked\r\n\r\n0\r\n\r\n", 400},
	{"Transfer-Encoding behind a bare CR", "POST / HTTP/1.1\r\nHost: s.test\r\nA: b\rTransfer-Encoding: " +
		"chunked\r\n\r\n0\r\n\r\n", 400},
	{"NUL in a value", "GET / HTTP/1.1\r\nHost: s.test\r\nA: b\x00c\r\n\r\n", 400},
	{"NUL in a name", "GET / HTTP/1.1\r\nHost: s.test\r\nA\x00: b\r\n\r\n", 400},
	{"NUL in the target", "GET /\x00 HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"different Content-Lengths", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\nContent-Length: 44\r\n\r\nabcd",
		400},
	{"the same Content-Length twice", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\nContent-Length: " +
		"4\r\n\r\nabcd", 400},
	{"list of Content-Lengths", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4, 4\r\n\r\nabcd", 400},
	{"Content-Length: +4", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: +4\r\n\r\nabcd", 400},
	{"Content-Length: -1", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: -1\r\n\r\n", 400},
	{"Content-Length: 0x4", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 0x4\r\n\r\nabcd", 400},
	{"Content-Length beyond 63 bits", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: " +
		"18446744073709551620\r\n\r\nabcd", 400},
	{"empty Content-Length", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length:\r\n\r\n", 400},
	{"folded line", "GET / HTTP/1.1\r\nHost: s.test\r\nA: b\r\n c\r\n\r\n", 400},
	{"bare LF in the request line", "GET / HTTP/1.1\nHost: s.test\r\n\r\n", 400},
	{"bare LFs only", "GET / HTTP/1.1\nHost: s.test\n\n", 400},
	{"bare LF before the empty line", "GET / HTTP/1.1\r\nHost: s.test\n\r\n", 400},
	{"bare CR in a value", "GET / HTTP/1.1\r\nHost: s.test\r\nA: b\rc\r\n\r\n", 400},
	{"space before a colon", "GET / HTTP/1.1\r\nHost : s.test\r\n\r\n", 400},
	{"no colon", "GET / HTTP/1.1\r\nHost: s.test\r\nA\r\n\r\n", 400},
	{"empty name", "GET / HTTP/1.1\r\nHost: s.test\r\n: a\r\n\r\n", 400},
	{"name in brackets", "GET / HTTP/1.1\r\nHost: s.test\r\n[A]: b\r\n\r\n", 400},
	{"HTTP/0.9", "GET /\r\n\r\n", 400},
	{"HTTP/2.0", "GET / HTTP/2.0\r\nHost: s.test\r\n\r\n", 505},
	{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: s.test\r\n\r\n", 505},
	{"another protocol", "HELP\r\n\r\n", 400},
	{"two spaces in the request line", "GET  / HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"space at the end of the request line", "GET / HTTP/1.1 \r\nHost: s.test\r\n\r\n", 400},
	{"space in the target", "GET /a b HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"fragment in the target", "GET /#a HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"target without a slash", "GET a HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"asterisk with GET", "GET * HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"target of another scheme", "GET ftp://s.test/ HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"user in the target", "GET http://me@s.test/ HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"method in brackets", "(GET) / HTTP/1.1\r\nHost: s.test\r\n\r\n", 400},
	{"CONNECT", "CONNECT s.test:443 HTTP/1.1\r\nHost: s.test\r\n\r\n", 405},
	{"no Host", "GET / HTTP/1.1\r\n\r\n", 400},
	{"two Hosts", "GET / HTTP/1.1\r\nHost: s.test\r\nHost: s.test\r\n\r\n", 400},
	{"empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400},
	{"list of Hosts", "GET / HTTP/1.1\r\nHost: s.test, other.test\r\n\r\n", 400},
	{"Host with a path", "GET / HTTP/1.1\r\nHost: s.test/admin\r\n\r\n", 400},
	{"Host with a user", "GET / HTTP/1.1\r\nHost: a@s.test\r\n\r\n", 400},
	{"Host with a bad port", "GET / HTTP/1.1\r\nHost: s.test:80a\r\n\r\n", 400},
	{"Connection names Host", "GET / HTTP/1.1\r\nHost: s.test\r\nConnection: close, Host\r\n\r\n", 400},
	{"Connection names Authorization", "GET / HTTP/1.1\r\nHost: s.test\r\nAuthorization: x\r\nConnection: " +
		"authorization\r\n\r\n", 400},
	{"Connection names X-Forwarded-For", "GET / HTTP/1.1\r\nHost: s.test\r\nConnection: X-Forwarded-For\r\n\r\n", 400},
	{"Connection names Content-Length", "POST / HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\nConnection: " +
		"Content-Length\r\n\r\nabcd", 400},
	{"Connection names Transfer-Encoding", "POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: " +
		"chunked\r\nConnection: Transfer-Encoding\r\n\r\n0\r\n\r\n", 400},
	{"Expect of something else", "POST / HTTP/1.1\r\nHost: s.test\r\nExpect: 200-ok\r\nContent-Length: 4\r\n\r\nabcd",
		417},
	{"Expect with more", "POST / HTTP/1.1\r\nHost: s.test\r\nExpect: 100-continue, more\r\nContent-Length: 4\r\n\r\nabcd",
		417},
	{"256 fields beside Host", "GET / HTTP/1.1\r\nHost: s.test\r\n" + strings.Repeat("A: b\r\n", 256) + "\r\n", 431},
	{"head of 70 KB", "GET / HTTP/1.1\r\nHost: s.test\r\nA: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", 431},
	{"target of 70 KB", "GET /" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\nHost: s.test\r\n\r\n", 431},
	{"HTTP/2 preface with another end", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", 505},
	{"HTTP/2 preface of another version", "PRI * HTTP/2.1\r\n\r\nSM\r\n\r\n", 505},
	{"TLS", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400},
	{"two empty lines before the request", "\r\n\r\n", 400},
}

func TestBadRequestsNeverReachTheService(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, noRetries, noBreaker))
	for i, c := range requestsRefused {
		t.Run(c.name, func(t *testing.T) {
			before := len(s.seen())
			conn := dial(t, r.addr).send(c.send + smuggled)
			a := conn.answer()
			if a.status != c.status || !a.close || a.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("status %d (close %v) %s, want %d and close", a.status, a.close, a.content, c.status)
			}
			conn.closed()
			conn.Close()
			if reached := s.seen()[before:]; len(reached) > 0 {
				t.Errorf("the service got %q", reached)
			}
			path := fmt.Sprintf("/next/%d", i)
			if a := r.get(path); a.status != 200 || a.content != "GET "+path+" HTTP/1.1" {
				t.Errorf("the next client got %d %q", a.status, a.content)
			}
		})
	}
}

func TestBadRequestEndsItsPipeline(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, noRetries, noBreaker))
	for _, c := range requestsRefused {
		t.Run(c.name, func(t *testing.T) {
			before := len(s.seen())
			conn := dial(t, r.addr).send("GET /good HTTP/1.1\r\nHost: s.test\r\n\r\n" + c.send + smuggled)
			if a := conn.answer(); a.status != 200 || a.content != "GET /good HTTP/1.1" || a.close {
				t.Errorf("the good request got %d %q, close %v", a.status, a.content, a.close)
			}
			if a := conn.answer(); a.status != c.status || !a.close {
				t.Errorf("the bad one got %d, close %v, want %d", a.status, a.close, c.status)
			}
			conn.closed()
			if reached := s.seen()[before:]; len(reached) != 1 {
				t.Errorf("the service got %q", reached)
			}
		})
	}
}

// requestsFixed are requests that are odd but clear: the service gets them in plain form.
var requestsFixed = []struct {
	name, send string
	line       string            // that the service got
	fields     map[string]string // "" for not at all
	content    string
}{
	{"HTTP/1.0", "GET /a HTTP/1.0\r\n\r\n", "GET /a HTTP/1.1", nil, ""},
	{"empty line before the request", "\r\nGET /a HTTP/1.1\r\nHost: s.test\r\n\r\n", "GET /a HTTP/1.1", nil, ""},
	{"absolute form", "GET http://s.test/a?b HTTP/1.1\r\nHost: s.test\r\n\r\n", "GET /a?b HTTP/1.1", nil, ""},
	{"absolute form goes before Host", "GET http://s.test/a HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"GET /a HTTP/1.1", nil, ""},
	{"absolute form without a path", "GET http://s.test HTTP/1.1\r\nHost: s.test\r\n\r\n", "GET / HTTP/1.1", nil, ""},
	{"h2c", "GET /a HTTP/1.1\r\nHost: s.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: " +
		"AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
		"GET /a HTTP/1.1", map[string]string{"Upgrade": "", "Connection": "", "HTTP2-Settings": ""}, ""},
	{"Upgrade that Connection does not name", "GET /a HTTP/1.1\r\nHost: s.test\r\nUpgrade: websocket\r\n\r\n",
		"GET /a HTTP/1.1", map[string]string{"Upgrade": "", "Connection": ""}, ""},
	{"Upgrade with content", "POST /a HTTP/1.1\r\nHost: s.test\r\nConnection: Upgrade\r\nUpgrade: " +
		"websocket\r\nContent-Length: 4\r\n\r\nabcd",
		"POST /a HTTP/1.1", map[string]string{"Upgrade": "", "Connection": "", "Content-Length": "4"}, "abcd"},
	{"fields of one hop", "GET /a HTTP/1.1\r\nHost: s.test\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: " +
		"timeout=9\r\nProxy-Connection: close\r\n" +
		"Proxy-Authorization: secret\r\nTE: gzip\r\nX-End: 2\r\n\r\n", "GET /a HTTP/1.1", map[string]string{
		"X-Hop": "", "Keep-Alive": "", "Proxy-Connection": "", "Proxy-Authorization": "", "TE": "", "Connection": "",
		"X-End": "2"}, ""},
	{"TE: trailers", "GET /a HTTP/1.1\r\nHost: s.test\r\nTE: deflate, trailers\r\nConnection: TE\r\n\r\n",
		"GET /a HTTP/1.1", map[string]string{"TE": "trailers", "Connection": "TE"}, ""},
	{"attempt number of the client's own", "GET /a HTTP/1.1\r\nHost: s.test\r\nX-Envoy-Attempt-Count: " +
		"9\r\nX-Envoy-Expected-Rq-Timeout-Ms: 9\r\n\r\n",
		"GET /a HTTP/1.1", map[string]string{"X-Envoy-Attempt-Count": "9", "X-Envoy-Expected-Rq-Timeout-Ms": ""}, ""},
	{"Expect with no content", "GET /a HTTP/1.1\r\nHost: s.test\r\nExpect: 100-continue\r\n\r\n",
		"GET /a HTTP/1.1", map[string]string{"Expect": ""}, ""},
	{"POST with no content", "POST /a HTTP/1.1\r\nHost: s.test\r\n\r\n", "POST /a HTTP/1.1",
		map[string]string{"Content-Length": "0"}, ""},
	{"Content-Length with zeros before it", "POST /a HTTP/1.1\r\nHost: s.test\r\nContent-Length: 0004\r\n\r\nabcd",
		"POST /a HTTP/1.1", map[string]string{"Content-Length": "4"}, "abcd"},
	{"GET with content", "GET /a HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\n\r\nabcd",
		"GET /a HTTP/1.1", map[string]string{"Content-Length": "4"}, "abcd"},
	{"chunk extensions", "POST /a HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: " +
		"ChUnKeD\r\n\r\n3;a=\"b\";c\r\nabc\r\n0001;x\r\nd\r\n0;last\r\n\r\n",
		"POST /a HTTP/1.1", map[string]string{"Transfer-Encoding": "chunked", "Content-Length": ""}, "abcd"},
	{"forbidden trailers", "POST /a HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\nTE: " +
		"trailers\r\n\r\n4\r\nabcd\r\n0\r\n" +
		"Content-Length: 99\r\nTransfer-Encoding: gzip\r\nHost: other.test\r\nAuthorization: x\r\nX-Sum: 7\r\nConnection: " +
		"close\r\n\r\n",
		"POST /a HTTP/1.1", map[string]string{"Transfer-Encoding": "chunked", "Authorization": ""}, "abcd"},
}

func TestOddRequestsArriveInPlainForm(t *testing.T) {
	s := echo(t)
	r := start(t, forward([]string{s.url}, noBreaker))
	for _, c := range requestsFixed {
		t.Run(c.name, func(t *testing.T) {
			before := len(s.seen())
			conn := dial(t, r.addr).send(c.send)
			if a := conn.answer(); a.status != 200 || a.content != c.line {
				t.Errorf("the client got %d %q, want %q", a.status, a.content, c.line)
			}
			if !strings.Contains(c.send, "HTTP/1.0") {
				if a := conn.get("/next"); a.content != "GET /next HTTP/1.1" {
					t.Errorf("the next request got %q", a.content)
				}
			}
			got := s.seen()[before]
			for name, want := range c.fields {
				if v := field(got, name); v != want {
					t.Errorf("%s is %q, want %q", name, v, want)
				}
			}
			if data, trailer := plain(t, got); data != c.content ||
				strings.Contains(strings.ReplaceAll(trailer, "X-Sum: 7\r\n", ""), ":") {
				t.Errorf("the service got content %q and trailer %q", data, trailer)
			} else if strings.Contains(c.send, "X-Sum") != strings.Contains(trailer, "X-Sum") {
				t.Errorf("trailer %q", trailer)
			}
		})
	}
}

// plain returns the content of a message without its chunks, and the trailer section.
func plain(t *testing.T, message string) (data, trailer string) {
	rest := content(message)
	if field(message, "Transfer-Encoding") == "" {
		return rest, ""
	}
	for {
		var size int
		head, after, _ := strings.Cut(rest, "\r\n")
		if n, err := fmt.Sscanf(head, "%x", &size); n != 1 || fmt.Sprintf("%x", size) != head {
			t.Fatalf("chunk size %q: %v", head, err)
		}
		if size == 0 {
			return data, after
		}
		data, rest = data+after[:size], after[size+2:]
	}
}

// brokenChunks are chunked contents that end a request before its time.
var brokenChunks = []struct{ name, send string }{
	{"no number", "x\r\n"},
	{"no size", "\r\n"},
	{"0x", "0x4\r\nabcd\r\n0\r\n\r\n"},
	{"sign", "+4\r\nabcd\r\n0\r\n\r\n"},
	{"space before the size", " 4\r\nabcd\r\n0\r\n\r\n"},
	{"space behind the size", "4 \r\nabcd\r\n0\r\n\r\n"},
	{"17 digits", "00000000000000004\r\nabcd\r\n0\r\n\r\n"},
	{"more than 63 bits", "ffffffffffffffff\r\nabcd"},
	{"bare LF behind the size", "4\nabcd\r\n0\r\n\r\n"},
	{"bare LF behind the data", "4\r\nabcd\n0\r\n\r\n"},
	{"bare LF in the extension", "4;a\nabcd\r\n0\r\n\r\n"},
	{"data too long", "4\r\nabcde\r\n0\r\n\r\n"},
	{"data too short", "5\r\nabcd\r\n0\r\n\r\n"},
	{"bare LF in the trailer", "0\r\nA: b\n\r\n"},
	{"folded trailer", "0\r\nA: b\r\n c\r\n\r\n"},
	{"NUL in the trailer", "0\r\nA: \x00\r\n\r\n"},
	{"space before a colon in the trailer", "0\r\nA : b\r\n\r\n"},
	{"endless extensions", strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\na\r\n", 100) + "0\r\n\r\n"},
	{"long extension", "4;" + strings.Repeat("a", 300) + "\r\nabcd\r\n0\r\n\r\n"},
	{"long trailer", "0\r\nA: " + strings.Repeat("a", 9<<10) + "\r\n\r\n"},
	{"65 trailers", "0\r\n" + strings.Repeat("A: b\r\n", 65) + "\r\n"},
}

func TestBrokenChunksEndTheRequest(t *testing.T) {
	const head = " / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n"
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker, quickRetry))
	for _, c := range brokenChunks {
		for _, how := range []struct{ name, before string }{
			{"held", "GET" + head}, // may be repeated, so it is read before it is sent
			{"streamed", "POST" + head},
			{"streamed in part", "POST" + head + "3\r\nabc\r\n"},
		} {
			t.Run(c.name+" "+how.name, func(t *testing.T) {
				conn := dial(t, r.addr).send(how.before + c.send + smuggled)
				if a := conn.answer(); a.status != 400 && a.status != 431 || !a.close {
					t.Errorf("status %d, close %v", a.status, a.close)
				}
				conn.closed()
				conn.Close()
				if a := r.get("/next"); a.content != "GET /next HTTP/1.1" {
					t.Errorf("the next client got %d %q", a.status, a.content)
				}
			})
		}
	}
	for _, req := range s.seen() {
		if line(req) != "GET /next HTTP/1.1" {
			t.Errorf("the service took %q for whole", req)
		}
	}
	eventually(t, "everything is given back", func() bool {
		g := r.guard()
		return g.Bulkhead.Running == 0 && g.Endpoints[0].Pending == 0
	})
}

func TestRequestMayComeByteByByte(t *testing.T) {
	s := echo(t)
	r := start(t, forward([]string{s.url}, noBreaker))
	for _, c := range requestsFixed {
		conn := r.dial()
		for i := range len(c.send) {
			conn.send(c.send[i : i+1])
		}
		if a := conn.answer(); a.status != 200 || a.content != c.line {
			t.Errorf("%s: %d %q", c.name, a.status, a.content)
		}
		conn.Close()
	}
	conn := r.dial()
	for range 3 {
		for b := range bytes.SplitSeq([]byte("POST /a HTTP/1.1\r\nHost: s.test\r\nContent-Length: 4\r\n\r\nabcd"), nil) {
			conn.send(string(b))
		}
		if a := conn.answer(); a.content != "POST /a HTTP/1.1" {
			t.Errorf("%d %q", a.status, a.content)
		}
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker))
	var all strings.Builder
	const n = 400 // more than a buffer
	for i := range n {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&all, "GET /%d HTTP/1.1\r\nHost: s.test\r\n\r\n", i)
		case 1:
			fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: s.test\r\nContent-Length: 5\r\n\r\nGET /", i)
		case 2:
			fmt.Fprintf(&all, "POST /%d HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n2;x\r\n "+
				"/\r\n0\r\n\r\n", i)
		case 3:
			fmt.Fprintf(&all, "PUT /%d HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n", i)
		}
	}
	conn := r.dial()
	go conn.Write([]byte(all.String()))
	for i := range n {
		if a := conn.answer(); a.status != 200 || !strings.Contains(a.content, fmt.Sprintf(" /%d ", i)) {
			t.Fatalf("answer %d is %d %q", i, a.status, a.content)
		}
	}
}

// A client that goes on sending gets its refusal and a proper end: a connection closed at once would be reset.
func TestRefusalReachesAClientThatGoesOnSending(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker))
	much := strings.Repeat("GET / HTTP/1.1\r\nA: b\r\n", 6000)
	for _, c := range []struct {
		request string
		status  int
	}{
		{"GET / HTTP/1.1\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: s.test\r\nA: " + much, 431},
		{"POST / HTTP/1.1\r\nHost: s.test\r\nTransfer-Encoding: chunked\r\n\r\nx", 400},
	} {
		conn := r.dial().send(c.request).send(much)
		if a := conn.answer(); a.status != c.status || !a.close {
			t.Errorf("%.60q: %d, close %v", c.request, a.status, a.close)
		}
		if rest, err := io.ReadAll(conn.in); len(rest) > 0 || err != nil {
			t.Errorf("%.60q: the connection ends with %q, %v", c.request, rest, err)
		}
	}
}

// Nothing behind a request that is the last of its connection is taken for another.
func TestConnectionEndsWhenTheClientSaysSo(t *testing.T) {
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker))
	for _, c := range []struct {
		request string
		ends    bool
	}{
		{"GET /a HTTP/1.1\r\nHost: s.test\r\nConnection: close\r\n\r\n", true},
		{"GET /a HTTP/1.1\r\nHost: s.test\r\nConnection: keep-alive, x, CLOSE\r\n\r\n", true},
		{"GET /a HTTP/1.0\r\n\r\n", true},
		{"POST /a HTTP/1.0\r\nContent-Length: 4\r\n\r\nabcd", true},
		{"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false},
		{"GET /a HTTP/1.1\r\nHost: s.test\r\nProxy-Connection: close\r\n\r\n", false},
	} {
		before := len(s.seen())
		conn := r.dial().send(c.request + "GET /b HTTP/1.1\r\nHost: s.test\r\nConnection: close\r\n\r\n" + smuggled)
		if a := conn.answer(); !strings.Contains(a.content, " /a ") || a.close != c.ends {
			t.Errorf("%q: %d %q, close %v", c.request, a.status, a.content, a.close)
		}
		want := 1
		if !c.ends {
			if want = 2; !strings.Contains(conn.answer().content, " /b ") {
				t.Errorf("%q: the second request got another answer", c.request)
			}
		}
		conn.closed()
		if got := len(s.seen()) - before; got != want {
			t.Errorf("%q: the service got %d requests, want %d", c.request, got, want)
		}
	}
}

// A client that begins HTTP/2 and sends something else must not disturb the others.
func TestGarbageBehindTheHTTP2Preface(t *testing.T) {
	t.Parallel()
	s := echo(t)
	r := start(t, single([]string{s.url}, noBreaker))
	var conns []*client
	for _, garbage := range []string{
		smuggled, strings.Repeat("\xff", 100), "\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01",
	} {
		conns = append(conns, r.dial().send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+garbage))
		if a := r.get("/next"); a.content != "GET /next HTTP/1.1" {
			t.Errorf("the next client got %d %q", a.status, a.content)
		}
	}
	for _, conn := range conns {
		conn.CloseWrite()
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("the proxy did not close the connection")
		}
	}
	if got := len(s.seen()); got != len(conns) {
		t.Errorf("the service got %d requests", got)
	}
}
