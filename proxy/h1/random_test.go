package h1_test

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// pieces is a source of messages that are good or nearly so, which random bytes seldom are.
type pieces struct{ *rand.Rand }

func (p pieces) one(of ...string) string { return of[p.IntN(len(of))] }

// rarely returns what seldom stands in a message.
func (p pieces) rarely(what ...string) string {
	if p.IntN(150) == 0 {
		return p.one(what...)
	}
	return ""
}

func (p pieces) field() string {
	name := p.one("Host", "Content-Length", "Transfer-Encoding", "Connection", "Connection", "TE", "Upgrade", "Expect",
		"Keep-Alive", "Trailer",
		"Idempotency-Key", "X-Idempotency-Key", "Proxy-Connection", "X", "x", "Y", "Set-Cookie", "Pragma", "Cache-Control",
		"Content-Type")
	value := p.one("", "a", "3", "close", "keep-alive", "x", "X, Y", "upgrade", "no-cache", "a\tb", "\xff", ",", "a,,b",
		"long enough for eight bytes at a time")
	switch p.IntN(4) * len(name) {
	case 0:
	case len("Host"), 2 * len("Host"):
		value = p.one("a", "a:80", "[::1]:1", "", "a b", "u@a", "A.b-c_d~")
	case len("Content-Length"), 2 * len("Content-Length"):
		value = p.one("0", "1", "00012", "9223372036854775807", "9223372036854775808", "+1", "1, 1", "1 1")
	case len("Transfer-Encoding"), 2 * len("Transfer-Encoding"):
		value = p.one("chunked", "Chunked", "chunked, chunked", "xchunked", "gzip, chunked", "identity")
	case len("Expect"), 2 * len("Expect"):
		value = "100-continue"
	}
	return p.rarely(" ", "\t") + p.one(name, strings.ToLower(name), strings.ToUpper(name)) +
		p.rarely(" ", "\t", "\x00", "\r", "(") + ":" +
		p.one("", " ", "  ", " \t") + value + p.rarely("\x00", "\x0b", "\r", "\n", "\x7f", "\r\n ", "\r\n") +
		p.one("", "", " ", "\t ")
}

func (p pieces) fields() string {
	var b strings.Builder
	for range p.IntN(7) {
		b.WriteString(p.field() + p.one("\r\n", "\r\n", "\r\n", "\r\n"+p.rarely("\n", "\r", "\r\n")))
	}
	return b.String() + "\r\n"
}

func (p pieces) request() string {
	target := p.one("/", "/", "/a?b=c", "//a/b", "/%41", "/%4", "/?%", "*", "http://h", "http://h/a", "HTTPS://h:1?a",
		"http://[::1]/", "http://u@h/", "http:///",
		"/a;b\\c|d", "/#", "/\xc3", "h:1")
	return p.rarely("\r\n", "\n", "\r\n\r\n") + p.one("GET", "GET", "POST", "HEAD", "OPTIONS", "CONNECT", "x-y") + " " +
		p.rarely(" ") +
		target + p.rarely(" ", "\t", "\x00") + " " + p.one("HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/1.1", "HTTP/2.0") +
		p.rarely(" ", "\x00") + "\r\n" +
		p.one("", "Host: a\r\n", "Host: a.b:8080\r\n") + p.fields()
}

func (p pieces) response() string {
	return p.rarely("\r\n", "\n") + p.one("HTTP/1.1", "HTTP/1.1", "HTTP/1.0") + " " +
		p.one("200", "200", "204", "304", "100", "101", "103", "205", "503", "99", "600") +
		p.one("", " ", " OK", " a b", " \xff") + p.rarely(" ", "\t", "\x00", "\r") + "\r\n" + p.fields()
}

func TestNearlyGoodMessagesReadAsNetHTTPReadsThem(t *testing.T) {
	p := pieces{rand.New(rand.NewPCG(9110, 9112))}
	const all = 6_000
	requests, responses := 0, 0
	for range all {
		if agreeOnRequest(t, []byte(p.request())) {
			requests++
		}
		if agreeOnResponse(t, []byte(p.response()), p.IntN(4) == 0) {
			responses++
		}
	}
	if requests < all/20 || responses < all/20 {
		t.Errorf("of %d only %d requests and %d responses were good: that proves little", all, requests, responses)
	}
	t.Logf("of %d: %d requests and %d responses were good", all, requests, responses)
}
