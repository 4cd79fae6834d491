package h1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

// request is what of a Request tests compare.
type request struct {
	Method, Target, Scheme, Host, Path, Upgrade string
	Minor                                       int
	Fields                                      []string
	Length                                      int64
	Chunked, Close, Expect, Trailers, Keyed     bool
}

func view(r *h1.Request) request {
	return request{
		string(r.Method), string(r.Target), string(r.Scheme), string(r.Host), string(r.Path), string(r.Upgrade),
		r.Minor, fieldLines(r.Fields), r.Length, r.Chunked, !r.KeepAlive, r.Expect, r.Trailers, r.Keyed,
	}
}

// fieldLines returns "Name: value" of each field, nil for none.
func fieldLines(fields []h1.Field) []string {
	var all []string
	for _, f := range fields {
		all = append(all, string(f.Name)+": "+string(f.Value))
	}
	return all
}

// head puts CR LF between the lines and the empty line behind them.
func head(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

func TestRequests(t *testing.T) {
	get := request{Method: "GET", Target: "/", Path: "/", Host: "a", Minor: 1}
	with := func(change func(*request)) request {
		r := get
		change(&r)
		return r
	}
	for _, c := range []struct {
		name, head string
		want       request
	}{
		{"the least", head("GET / HTTP/1.1", "Host: a"), get},
		{"an empty line before", "\r\n" + head("GET / HTTP/1.1", "Host: a"), get},
		{"HTTP/1.0 without Host", head("GET / HTTP/1.0"), with(func(r *request) { r.Minor, r.Host, r.Close = 0, "", true })},
		{"HTTP/1.0 with empty Host", head("GET / HTTP/1.0", "Host: "), with(func(r *request) {
			r.Minor, r.Host, r.Close = 0, "", true
		})},
		{"HTTP/1.0 keep-alive", head("GET / HTTP/1.0", "Host: a", "Connection: Keep-Alive"), with(func(r *request) {
			r.Minor = 0
		})},
		{"HTTP/1.0 keep-alive and close", head("GET / HTTP/1.0", "Host: a", "Connection: keep-alive, close"),
			with(func(r *request) {
				r.Minor, r.Close = 0, true
			})},
		{"close", head("GET / HTTP/1.1", "Host: a", "Connection: , CLOSE ,\t, "), with(func(r *request) { r.Close = true })},
		{"close in the second field", head("GET / HTTP/1.1", "Host: a", "Connection: keep-alive", "Connection: close"),
			with(func(r *request) {
				r.Close = true
			})},
		{"Proxy-Connection means nothing", head("GET / HTTP/1.1", "Host: a", "Proxy-Connection: close"), get},
		{"fields keep order, case and number",
			head("GET / HTTP/1.1", "B: 2", "host: a", "a:1", "B:\t 3 \t", "C:", "D: x\ty\xff"),
			with(func(r *request) { r.Fields = []string{"B: 2", "a: 1", "B: 3", "C: ", "D: x\ty\xff"} })},
		{"hop-by-hop fields are dropped",
			head("GET / HTTP/1.1", "Host: a", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive", "TE: gzip",
				"Upgrade: x", "Proxy-Authorization: Basic eA==", "HTTP2-Settings: AAAA", "X: 1"), with(func(r *request) {
				r.Fields = []string{"X: 1"}
			})},
		{"fields that Connection names are dropped",
			head("GET / HTTP/1.1", "Host: a", "X-Hop: 1", "Y: 2", "Connection: x-hop, Z,X-HOP", "Z: 3", "Zz: 4"),
			with(func(r *request) { r.Fields = []string{"Y: 2", "Zz: 4"} })},
		{"16 options", head("GET / HTTP/1.1", "Host: a", "Connection: "+strings.Repeat("x,,", 15)+"close"),
			with(func(r *request) {
				r.Close = true
			})},
		{"Content-Length", head("POST / HTTP/1.1", "Host: a", "Content-Length: 12"), with(func(r *request) {
			r.Method, r.Length = "POST", 12
		})},
		{"the greatest length", head("POST / HTTP/1.1", "Host: a", "Content-Length: 9223372036854775807"),
			with(func(r *request) {
				r.Method, r.Length = "POST", 1<<63-1
			})},
		{"length with zeros", head("POST / HTTP/1.1", "Host: a", "Content-Length: 0000000000000000000000012"),
			with(func(r *request) {
				r.Method, r.Length = "POST", 12
			})},
		{"GET with a body", head("GET / HTTP/1.1", "Host: a", "Content-Length: 3"), with(func(r *request) { r.Length = 3 })},
		{"chunked", head("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: Chunked"), with(func(r *request) {
			r.Method, r.Length, r.Chunked = "POST", -1, true
		})},
		{"Expect", head("POST / HTTP/1.1", "Host: a", "Content-Length: 3", "Expect: 100-Continue"),
			with(func(r *request) { r.Method, r.Length, r.Expect = "POST", 3, true })},
		{"Expect without a body", head("GET / HTTP/1.1", "Host: a", "Expect: 100-continue"), get},
		{"Expect in HTTP/1.0", head("POST / HTTP/1.0", "Host: a", "Content-Length: 3", "Expect: 100-continue"),
			with(func(r *request) { r.Method, r.Minor, r.Length, r.Close = "POST", 0, 3, true })},
		{"Upgrade", head("GET / HTTP/1.1", "Host: a", "Upgrade: websocket", "Connection: keep-alive, Upgrade"),
			with(func(r *request) {
				r.Upgrade = "websocket"
			})},
		{"Upgrade to one of several", head("GET / HTTP/1.1", "Host: a", "Upgrade: x/2,, websocket", "Connection: upgrade"),
			with(func(r *request) {
				r.Upgrade = "x/2,, websocket"
			})},
		{"Upgrade that Connection does not name", head("GET / HTTP/1.1", "Host: a", "Upgrade: websocket"), get},
		{"Upgrade in HTTP/1.0", head("GET / HTTP/1.0", "Host: a", "Upgrade: websocket", "Connection: upgrade"),
			with(func(r *request) {
				r.Minor, r.Close = 0, true
			})},
		{"h2c", head("GET / HTTP/1.1", "Host: a", "Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings",
			"HTTP2-Settings: AAAA"), get},
		{"h2c among others", head("GET / HTTP/1.1", "Host: a", "Upgrade: websocket, H2C/1", "Connection: Upgrade"), get},
		{"TE", head("GET / HTTP/1.1", "Host: a", "TE: gzip;q=0.5 , Trailers", "Connection: TE"), with(func(r *request) {
			r.Trailers = true
		})},
		{"Idempotency-Key", head("GET / HTTP/1.1", "Host: a", "Idempotency-Key: 1"), with(func(r *request) {
			r.Keyed, r.Fields = true, []string{"Idempotency-Key: 1"}
		})},
		{"X-Idempotency-Key", head("GET / HTTP/1.1", "Host: a", "x-idempotency-key: 1"), with(func(r *request) {
			r.Keyed, r.Fields = true, []string{"x-idempotency-key: 1"}
		})},
		{"empty Idempotency-Key", head("GET / HTTP/1.1", "Host: a", "Idempotency-Key: "), with(func(r *request) {
			r.Fields = []string{"Idempotency-Key: "}
		})},
		{"any token is a method", head("b-r%w|~ / HTTP/1.1", "Host: a"), with(func(r *request) { r.Method = "b-r%w|~" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r h1.Request
			if err := r.Parse([]byte(c.head)); err != nil {
				t.Fatal(err)
			}
			if got := view(&r); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got\n%+v, want\n%+v", got, c.want)
			}
		})
	}
}

func TestTargets(t *testing.T) {
	for _, c := range []struct{ method, target, field, scheme, host, path string }{
		{"GET", "/a/b?c=d&e", "a", "", "a", "/a/b?c=d&e"},
		{"GET", "/!~", "a", "", "a", "/!~"},
		{"GET", "//a/b", "h", "", "h", "//a/b"},
		{"GET", "/http://b/", "a", "", "a", "/http://b/"},
		{"GET", "/%41?%", "a", "", "a", "/%41?%"},
		{"GET", "/\"<>\\^`{|}", "a", "", "a", "/\"<>\\^`{|}"},
		{"OPTIONS", "*", "a", "", "a", "*"},
		{"OPTIONS", "/", "a", "", "a", "/"},
		{"GET", "http://b/c?d", "a", "http", "b", "/c?d"},
		{"GET", "HTTPS://b:8443/c", "a", "https", "b:8443", "/c"},
		{"GET", "http://b", "a", "http", "b", "/"},
		{"GET", "http://b?c/d", "a", "http", "b", "/?c/d"},
		{"OPTIONS", "http://b", "a", "http", "b", "*"},
		{"OPTIONS", "http://b/", "a", "http", "b", "/"},
		{"GET", "http://b/", "", "http", "b", "/"},
		{"GET", "http://[::1]:80/", "a", "http", "[::1]:80", "/"},
		{"GET", "/", "[2001:db8::1]", "", "[2001:db8::1]", "/"},
		{"GET", "/", "10.0.0.1:65535", "", "10.0.0.1:65535", "/"},
		{"GET", "/", "A_b.c-d~:1", "", "A_b.c-d~:1", "/"},
	} {
		t.Run(c.method+" "+c.target+" "+c.field, func(t *testing.T) {
			var r h1.Request
			if err := r.Parse([]byte(head(c.method+" "+c.target+" HTTP/1.1", "Host: "+c.field))); err != nil {
				t.Fatal(err)
			}
			if string(r.Target) != c.target || string(r.Scheme) != c.scheme || string(r.Host) != c.host ||
				string(r.Path) != c.path {
				t.Errorf("got %s, %s, %s, %s", r.Target, r.Scheme, r.Host, r.Path)
			}
			if (r.Scheme == nil) != (c.scheme == "") {
				t.Errorf("scheme %v", r.Scheme)
			}
		})
	}
}

func TestRequestsRefused(t *testing.T) {
	line := func(l string) string { return head(l, "Host: a") }
	field := func(fields ...string) string {
		return head(append([]string{"POST / HTTP/1.1", "Host: a"}, fields...)...)
	}
	host := func(h string) string { return head("GET / HTTP/1.1", "Host: "+h) }
	connection := func(options string) string { return field("Connection: " + options) }
	many := slices.Repeat([]string{"A: b"}, 256) // and Host
	for _, c := range []struct {
		name, head string
		status     int
		words      string
	}{
		{"nothing", "", 400, "empty line"},
		{"no empty line", "GET / HTTP/1.1\r\nHost: a\r\n", 400, "empty line"},
		{"only empty lines", "\r\n\r\n", 400, "empty line"},
		{"three empty lines", "\r\n\r\n\r\n", 400, "request line"},
		{"two empty lines before", "\r\n\r\n" + line("GET / HTTP/1.1"), 400, "request line"},
		{"more than one head", line("GET / HTTP/1.1") + line("GET / HTTP/1.1"), 400, "no colon"},

		{"HTTP/0.9", line("GET /"), 400, "request line"},
		{"no target", line("GET HTTP/1.1"), 400, "request line"},
		{"empty target", line("GET  HTTP/1.1"), 400, "request line"},
		{"no method", line(" / HTTP/1.1"), 400, "method"},
		{"method no token", line("G@T / HTTP/1.1"), 400, "method"},
		{"method of another alphabet", line("G\xc3\x8bT / HTTP/1.1"), 400, "method"},
		{"tab for a space", line("GET\t/ HTTP/1.1"), 400, "method"},
		{"two spaces", line("GET /  HTTP/1.1"), 400, "request line"},
		{"space at the end", line("GET / HTTP/1.1 "), 400, "request line"},
		{"space at the start", line(" GET / HTTP/1.1"), 400, "method"},
		{"space in the target", line("GET /a b HTTP/1.1"), 400, "request line"},
		{"LF ends the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400, "LF alone"},
		{"CR in the target", line("GET /\r HTTP/1.1"), 400, "target"},
		{"NUL in the target", line("GET /\x00 HTTP/1.1"), 400, "target"},
		{"DEL in the target", line("GET /\x7f HTTP/1.1"), 400, "target"},
		{"non-ASCII in the target", line("GET /\xc3\xa4 HTTP/1.1"), 400, "target"},
		{"fragment", line("GET /#a HTTP/1.1"), 400, "target"},
		{"relative target", line("GET a HTTP/1.1"), 400, "begin with /"},
		{"other scheme", line("GET ftp://a/ HTTP/1.1"), 400, "begin with /"},
		{"scheme with one slash", line("GET http:/a HTTP/1.1"), 400, "begin with /"},
		{"* with GET", line("GET * HTTP/1.1"), 400, "OPTIONS"},
		{"* and more", line("OPTIONS ** HTTP/1.1"), 400, "OPTIONS"},
		{"half an escape", line("GET /%4 HTTP/1.1"), 400, "%25"},
		{"not an escape", line("GET /%41%4g HTTP/1.1"), 400, "%25"},
		{"not an escape either", line("GET /%g1 HTTP/1.1"), 400, "%25"},
		{"not an escape, absolute", line("GET http://a/% HTTP/1.1"), 400, "%25"},
		{"CONNECT without a port", line("CONNECT a HTTP/1.1"), 400, "CONNECT"},
		{"CONNECT with an empty port", line("CONNECT a: HTTP/1.1"), 400, "CONNECT"},
		{"CONNECT to port 0", line("CONNECT a:0 HTTP/1.1"), 400, "CONNECT"},
		{"CONNECT to a bare address", line("CONNECT ::1 HTTP/1.1"), 400, "CONNECT"},
		{"CONNECT to an address without a port", line("CONNECT [::1] HTTP/1.1"), 400, "CONNECT"},
		{"CONNECT with a scheme", line("CONNECT http://a:443 HTTP/1.1"), 400, "CONNECT"},
		{"CONNECT with a user", line("CONNECT me@a:443 HTTP/1.1"), 400, "CONNECT"},
		{"CONNECT with a path", line("CONNECT / HTTP/1.1"), 400, "CONNECT"},
		{"HTTP/2", line("GET / HTTP/2.0"), 505, "version"},
		{"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\n", 505, "version"},
		{"HTTP/1.2", line("GET / HTTP/1.2"), 505, "version"},
		{"HTTP/0.9 with a version", line("GET / HTTP/0.9"), 505, "version"},
		{"HTTP/1.10", line("GET / HTTP/1.10"), 400, "request line"},
		{"HTTP/1", line("GET / HTTP/1"), 400, "request line"},
		{"HTTP/1x1", line("GET / HTTP/1x1"), 400, "request line"},
		{"HTTP/x.1", line("GET / HTTP/x.1"), 400, "request line"},
		{"HTTP/1.x", line("GET / HTTP/1.x"), 400, "request line"},
		{"http/1.1", line("GET / http/1.1"), 400, "request line"},

		{"no Host", head("GET / HTTP/1.1"), 400, "no host"},
		{"no Host with an absolute target", head("GET http://a/ HTTP/1.1"), 400, "no host"},
		{"empty Host", host(""), 400, "no host"},
		{"two Hosts", field("Host: a"), 400, "more than one Host"},
		{"two Hosts in HTTP/1.0", head("GET / HTTP/1.0", "Host: a", "host: b"), 400, "more than one Host"},
		{"bad Host with an absolute target", head("GET http://a/ HTTP/1.1", "Host: a/b"), 400, "host is not"},
		{"bad Host in HTTP/1.0", head("GET / HTTP/1.0", "Host: a b"), 400, "host is not"},
		{"user in Host", host("u@a"), 400, "@"},
		{"space in Host", host("a b"), 400, "host is not"},
		{"two hosts in Host", host("a,b"), 400, "host is not"},
		{"only a slash in Host", host("/"), 400, "host is not"},
		{"path in Host", host("a/b"), 400, "host is not"},
		{"escape in Host", host("a%41"), 400, "host is not"},
		{"non-ASCII in Host", host("\xc3\xa4"), 400, "host is not"},
		{"only a port", host(":80"), 400, "host is not"},
		{"empty port", host("a:"), 400, "host is not"},
		{"port with letters", host("a:8o"), 400, "host is not"},
		{"port too great", host("a:65536"), 400, "host is not"},
		{"port of many digits", host("a:000080"), 400, "host is not"},
		{"two ports", host("a:1:2"), 400, "host is not"},
		{"IPv6 without brackets", host("::1"), 400, "host is not"},
		{"IPv6 without end", host("[::1"), 400, "host is not"},
		{"IPv6 and more", host("[::1]a"), 400, "host is not"},
		{"IPv6 with empty port", host("[::1]:"), 400, "host is not"},
		{"IPv6 with zone", host("[fe80::1%25eth0]"), 400, "host is not"},
		{"IPv4 in brackets", host("[127.0.0.1]"), 400, "host is not"},
		{"name in brackets", host("[a]"), 400, "host is not"},
		{"absolute target without host", line("GET http:///a HTTP/1.1"), 400, "host is not"},
		{"absolute target of a scheme only", line("GET http:// HTTP/1.1"), 400, "host is not"},
		{"absolute target with query but no host", line("GET http://?a HTTP/1.1"), 400, "host is not"},
		{"user in the target", line("GET http://u:p@a/ HTTP/1.1"), 400, "@"},
		{"backslash in the target's host", line(`GET http://a\b/ HTTP/1.1`), 400, "host is not"},

		{"folded line", field("A: b", " c"), 400, "folded"},
		{"folded line with a tab", field("A: b", "\tc: d"), 400, "folded"},
		{"folded first line", head("GET / HTTP/1.1", " Host: a"), 400, "folded"},
		{"space before the colon", field("A : b"), 400, "after a field name"},
		{"tab before the colon", field("Content-Length\t: 3"), 400, "after a field name"},
		{"space in the name", field("A b: c"), 400, "in or after a field name"},
		{"no colon", field("A"), 400, "no colon"},
		{"no name", field(": b"), 400, "name is missing"},
		{"name no token", field("A(b): c"), 400, "not allowed"},
		{"non-ASCII in the name", field("\xc3\xa4: c"), 400, "not allowed"},
		{"control character in the name", field("A\x0b: c"), 400, "not allowed"},
		{"NUL in the name", field("A\x00: c"), 400, "NUL"},
		{"CR in the name", field("A\r: c"), 400, "no colon"},
		{"LF in the name", field("A\n: c"), 400, "LF alone"},
		{"NUL in the value", field("A: b\x00c"), 400, "NUL"},
		{"CR in the value", field("A: b\rc"), 400, "CR inside"},
		{"CR at the end of the value", field("A: bc\r"), 400, "CR inside"},
		{"LF in the value", field("A: bbbbbbbbbbbbbbbbb\nC: d"), 400, "LF alone"},
		{"LF ends the last field", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400, "empty line"},
		{"DEL in the value", field("A: b\x7fc"), 400, "control"},
		{"vertical tab in the value", field("A: b\x0bc"), 400, "control"},
		{"escape character after a tab", field("A: b\t\x1b[0m"), 400, "control"},
		{"257 fields", head(append([]string{"GET / HTTP/1.1", "Host: a"}, many...)...), 431, "256"},

		{"two lengths", field("Content-Length: 3", "Content-Length: 4"), 400, "more than one Content-Length"},
		{"two lengths, the first 0", field("Content-Length: 0", "Content-Length: 4"), 400, "more than one Content-Length"},
		{"the same length twice", field("Content-Length: 3", "content-length: 3"), 400, "more than one Content-Length"},
		{"list of lengths", field("Content-Length: 3, 3"), 400, "plain decimal"},
		{"length with a sign", field("Content-Length: +3"), 400, "plain decimal"},
		{"negative length", field("Content-Length: -3"), 400, "plain decimal"},
		{"length with a space inside", field("Content-Length: 3 3"), 400, "plain decimal"},
		{"hexadecimal length", field("Content-Length: 0x3"), 400, "plain decimal"},
		{"empty length", field("Content-Length:"), 400, "plain decimal"},
		{"fraction", field("Content-Length: 3.0"), 400, "plain decimal"},
		{"length of 2^63", field("Content-Length: 9223372036854775808"), 400, "plain decimal"},
		{"length of 2^64", field("Content-Length: 18446744073709551616"), 400, "plain decimal"},
		{"length with a tab before", field("Content-Length:\t3"), 400, "tab"},
		{"length with a tab behind", field("Content-Length: 3\t"), 400, "tab"},
		{"length then coding", field("Content-Length: 3", "Transfer-Encoding: chunked"), 400, "both"},
		{"coding then length", field("Transfer-Encoding: chunked", "Content-Length: 0"), 400, "both"},
		{"two codings", field("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
			400, "more than one Transfer-Encoding"},
		{"two codings, the second unknown", field("Transfer-Encoding: chunked", "Transfer-Encoding: x"), 400,
			"more than one Transfer-Encoding"},
		{"two codings, the first unknown", field("Transfer-Encoding: x", "Transfer-Encoding: chunked"), 501, "unknown"},
		{"chunked twice", field("Transfer-Encoding: chunked, chunked"), 400, "once"},
		{"chunked first", field("Transfer-Encoding: chunked, gzip"), 400, "nothing after"},
		{"chunked with a parameter", field("Transfer-Encoding: chunked;a=b"), 400, "nothing after"},
		{"chunked and a comma", field("Transfer-Encoding: chunked,"), 400, "nothing after"},
		{"chunked last", field("Transfer-Encoding: gzip, chunked"), 501, "unknown"},
		{"comma and chunked", field("Transfer-Encoding: ,chunked"), 501, "unknown"},
		{"identity", field("Transfer-Encoding: identity"), 501, "unknown"},
		{"xchunked", field("Transfer-Encoding: xchunked"), 501, "unknown"},
		{"chunked in quotes", field(`Transfer-Encoding: "chunked"`), 501, "unknown"},
		{"no coding", field("Transfer-Encoding: "), 400, "must be chunked"},
		{"chunked after a tab", field("Transfer-Encoding:\tchunked"), 400, "tab"},
		{"chunked before a tab", field("Transfer-Encoding: chunked\t"), 400, "tab"},
		{"chunked after a vertical tab", field("Transfer-Encoding: \x0bchunked"), 400, "control"},
		{"chunked before a NUL", field("Transfer-Encoding: chunked\x00"), 400, "NUL"},
		{"chunked on a folded line", field("Transfer-Encoding:", " chunked"), 400, "must be chunked"},
		{"chunked after a space and colon", field("Transfer-Encoding : chunked"), 400, "after a field name"},
		{"chunked in HTTP/1.0", head("POST / HTTP/1.0", "Host: a", "Transfer-Encoding: chunked"), 400, "HTTP/1.0"},

		{"other expectation", field("Expect: 200-ok"), 417, "100-continue"},
		{"no expectation", field("Expect:"), 417, "100-continue"},
		{"two expectations", field("Expect: 100-continue, 100-continue"), 417, "100-continue"},
		{"17 options", connection(strings.Repeat("x,", 17)), 400, "16 options"},
		{"17 options in two fields", field("Connection: "+strings.Repeat("close,", 16), "Connection: x"), 400, "16 options"},
		{"option no token", connection("a b"), 400, "not a connection option"},
		{"option in quotes", connection(`"close"`), 400, "not a connection option"},
		{"two Upgrades", field("Upgrade: a", "Upgrade: b"), 400, "more than one Upgrade"},
		{"Upgrade no token", field("Upgrade: web socket"), 400, "Upgrade is not"},
		{"Upgrade of one character that is none", field("Upgrade: @"), 400, "Upgrade is not"},
		{"Upgrade without a name", field("Upgrade: /1"), 400, "Upgrade is not"},
		{"Upgrade with an empty version", field("Upgrade: a/"), 400, "Upgrade is not"},
		{"Upgrade with two versions", field("Upgrade: a, b/1/2"), 400, "Upgrade is not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r h1.Request
			refused(t, r.Parse([]byte(c.head)), c.status, c.words)
		})
	}
}

func TestConnectionMayNotNameWhatMatters(t *testing.T) {
	for _, name := range []string{
		"Host", "Content-Length", "Transfer-Encoding", "Authorization", "Cookie", "Content-Type", "Content-Encoding",
		"Idempotency-Key",
		"X-Idempotency-Key", "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "Via", "Cache-Control", "Range", "If-Match",
		"Expect", "Trailer", "Abate-Retries", "abate-x", "X-Envoy-Attempt-Count",
	} {
		for _, option := range []string{name, "close, " + strings.ToUpper(name)} {
			var r h1.Request
			err := r.Parse([]byte(head("GET / HTTP/1.1", "Host: a", "Connection: "+option)))
			refused(t, err, 400, "Connection names "+option[strings.LastIndexByte(option, ' ')+1:])
		}
	}
	long := "X-Forwarded-" + strings.Repeat("x", 1000)
	var r h1.Request
	if err := r.Parse([]byte(head("GET / HTTP/1.1", "Host: a", "Connection: "+long))); err == nil ||
		len(err.Problem) > 200 {
		t.Errorf("a long name: %v", err)
	}
	for _, name := range []string{"Hosts", "X-Forwarded", "Abate", "X-Envoy", "If", "Content"} {
		var r h1.Request
		if err := r.Parse([]byte(head("GET / HTTP/1.1", "Host: a", "Connection: "+name))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func Test256Fields(t *testing.T) {
	many := slices.Repeat([]string{"A: b"}, 255)
	var r h1.Request
	if err := r.Parse([]byte(head(append([]string{"GET / HTTP/1.1", "Host: a"}, many...)...))); err != nil ||
		len(r.Fields) != 255 {
		t.Errorf("%v, %d fields", err, len(r.Fields))
	}
	var a h1.Response
	if err := a.Parse([]byte(head(append([]string{"HTTP/1.1 200 OK", "Content-Length: 0"}, many...)...)), false); err !=
		nil || len(a.Fields) != 255 {
		t.Errorf("response: %v, %d fields", err, len(a.Fields))
	}
}

// What an earlier request said, or a broken one, may not show in the next.
func TestRequestIsReused(t *testing.T) {
	full := head("POST http://b/c HTTP/1.1", "Host: a", "Transfer-Encoding: chunked",
		"Connection: x, close, upgrade", "X: 1",
		"Upgrade: websocket", "Expect: 100-continue", "TE: trailers", "Idempotency-Key: 1", "Y: 2")
	least := head("GET / HTTP/1.0", "X: 1")
	var fresh, used h1.Request
	if err := fresh.Parse([]byte(least)); err != nil {
		t.Fatal(err)
	}
	if err := used.Parse([]byte(full)); err != nil {
		t.Fatal(err)
	}
	if err := used.Parse([]byte(strings.Replace(full, "Y: 2", "Y : 2", 1))); err == nil {
		t.Fatal("accepted")
	}
	if err := used.Parse([]byte(least)); err != nil {
		t.Fatal(err)
	}
	if got, want := view(&used), view(&fresh); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestErrorSaysStatusAndProblem(t *testing.T) {
	var r h1.Request
	err := r.Parse([]byte(head("CONNECT a HTTP/1.1")))
	if want := "400 Bad Request: target of CONNECT"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
