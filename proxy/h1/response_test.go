package h1_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

// response is what of a Response tests compare.
type response struct {
	Status, Minor     int
	Reason, Upgrade   string
	Fields            []string
	Length, Announced int64
	Chunked, Close    bool
}

func viewResponse(r *h1.Response) response {
	return response{r.Status, r.Minor, string(r.Reason), string(r.Upgrade), fieldLines(r.Fields), r.Length, r.Announced,
		r.Chunked, !r.KeepAlive}
}

func TestResponses(t *testing.T) {
	ok := response{Status: 200, Minor: 1, Reason: "OK", Length: 3, Announced: 3}
	with := func(change func(*response)) response {
		r := ok
		change(&r)
		return r
	}
	noBody := func(status int, reason string, announced int64) response {
		return response{Status: status, Minor: 1, Reason: reason, Announced: announced}
	}
	for _, c := range []struct {
		name   string
		toHead bool
		head   string
		want   response
	}{
		{"a length", false, head("HTTP/1.1 200 OK", "Content-Length: 3"), ok},
		{"length 0", false, head("HTTP/1.1 200 OK", "Content-Length: 0"), with(func(r *response) {
			r.Length, r.Announced = 0, 0
		})},
		{"no reason", false, head("HTTP/1.1 200 ", "Content-Length: 3"), with(func(r *response) { r.Reason = "" })},
		{"not even a space", false, head("HTTP/1.1 200", "Content-Length: 3"), with(func(r *response) { r.Reason = "" })},
		{"a long reason", false, head("HTTP/1.1 200 All is\twell \xff", "Content-Length: 3"), with(func(r *response) {
			r.Reason = "All is\twell \xff"
		})},
		{"the greatest status", false, head("HTTP/1.1 599 OK", "Content-Length: 3"), with(func(r *response) {
			r.Status = 599
		})},
		{"an empty line before", false, "\r\n" + head("HTTP/1.1 200 OK", "Content-Length: 3"), ok},
		{"chunked", false, head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), with(func(r *response) {
			r.Length, r.Announced, r.Chunked = -1, -1, true
		})},
		{"until the connection closes", false, head("HTTP/1.1 200 OK"), with(func(r *response) {
			r.Length, r.Announced, r.Close = -1, -1, true
		})},
		{"close", false, head("HTTP/1.1 200 OK", "Content-Length: 3", "Connection: close"), with(func(r *response) {
			r.Close = true
		})},
		{"HTTP/1.0", false, head("HTTP/1.0 200 OK", "Content-Length: 3"), with(func(r *response) {
			r.Minor, r.Close = 0, true
		})},
		{"HTTP/1.0 keep-alive", false, head("HTTP/1.0 200 OK", "Content-Length: 3", "Connection: keep-alive"),
			with(func(r *response) {
				r.Minor = 0
			})},
		{"HTTP/1.0 keep-alive without a length", false, head("HTTP/1.0 200 OK", "Connection: keep-alive"),
			with(func(r *response) { r.Minor, r.Length, r.Announced, r.Close = 0, -1, -1, true })},
		{"fields", false, head("HTTP/1.1 200 OK", "Set-Cookie: a", "Content-Length: 3", "Set-Cookie: b",
			"Keep-Alive: timeout=5", "X: 1", "Connection: x",
			"Proxy-Connection: close", "TE: trailers", "Trailer: Y", "Proxy-Authenticate: Basic", "Expect: 5", "Host: h",
			"Idempotency-Key: k"),
			with(func(r *response) {
				r.Fields = []string{"Set-Cookie: a", "Set-Cookie: b", "Trailer: Y", "Proxy-Authenticate: Basic", "Expect: 5",
					"Host: h", "Idempotency-Key: k"}
			})},
		{"to HEAD", true, head("HTTP/1.1 200 OK", "Content-Length: 3"), with(func(r *response) { r.Length = 0 })},
		{"to HEAD, chunked", true, head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), noBody(200, "OK", -1)},
		{"to HEAD, nothing announced", true, head("HTTP/1.1 200 OK"), noBody(200, "OK", -1)},
		{"304", false, head("HTTP/1.1 304 Not Modified", "Content-Length: 3"), noBody(304, "Not Modified", 3)},
		{"304 chunked", false, head("HTTP/1.1 304 Not Modified", "Transfer-Encoding: chunked"),
			noBody(304, "Not Modified", -1)},
		{"204", false, head("HTTP/1.1 204 No Content"), noBody(204, "No Content", -1)},
		{"204 with length 0", false, head("HTTP/1.1 204 No Content", "Content-Length: 0"), noBody(204, "No Content", 0)},
		{"204 that announces a body", false, head("HTTP/1.1 204 X", "Content-Length: 1"), response{
			Status: 204, Minor: 1, Reason: "X", Announced: 1, Close: true,
		}},
		{"204 chunked", false, head("HTTP/1.1 204 X", "Transfer-Encoding: chunked"), response{
			Status: 204, Minor: 1, Reason: "X", Announced: -1, Close: true,
		}},
		{"205", false, head("HTTP/1.1 205 OK", "Content-Length: 3"), with(func(r *response) { r.Status = 205 })},
		{"100", false, head("HTTP/1.1 100 Continue"), noBody(100, "Continue", -1)},
		{"103", false, head("HTTP/1.1 103 Early Hints", "Content-Length: 0", "Link: </a>"),
			response{Status: 103, Minor: 1, Reason: "Early Hints", Fields: []string{"Link: </a>"}}},
		{"101", false, head("HTTP/1.1 101 X", "Connection: upgrade", "Upgrade: websocket"),
			response{Status: 101, Minor: 1, Reason: "X", Upgrade: "websocket", Announced: -1}},
		{"an offer to upgrade", false, head("HTTP/1.1 200 OK", "Content-Length: 3", "Upgrade: h2,h2c", "Connection: Upgrade"),
			ok},
		{"a bad offer to upgrade", false,
			head("HTTP/1.1 200 OK", "Content-Length: 3", "Upgrade: a b", "Upgrade: x", "Upgrade: y", "Connection: Upgrade"),
			with(func(r *response) { r.Upgrade = "x" })},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r h1.Response
			if err := r.Parse([]byte(c.head), c.toHead); err != nil {
				t.Fatal(err)
			}
			if got := viewResponse(&r); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got\n%+v, want\n%+v", got, c.want)
			}
			if (r.Reason == nil) != (c.want.Reason == "") {
				t.Errorf("reason %#v", r.Reason)
			}
		})
	}
}

func TestResponsesRefused(t *testing.T) {
	line := func(l string) string { return head(l, "Content-Length: 0") }
	field := func(fields ...string) string { return head(append([]string{"HTTP/1.1 200 OK"}, fields...)...) }
	for _, c := range []struct{ name, head, words string }{
		{"nothing", "", "empty line"},
		{"no empty line", "HTTP/1.1 200 OK\r\n", "empty line"},
		{"two empty lines before", "\r\n\r\n" + line("HTTP/1.1 200 OK"), "status line"},
		{"LF ends the status line", "HTTP/1.1 200 OK\nA: b\r\n\r\n", "LF alone"},
		{"HTTP/2", line("HTTP/2.0 200 OK"), "status line"},
		{"HTTP/1.2", line("HTTP/1.2 200 OK"), "status line"},
		{"lower case", line("http/1.1 200 OK"), "status line"},
		{"another protocol", line("ICY 200 OK"), "status line"},
		{"no status", line("HTTP/1.1"), "status line"},
		{"two digits", line("HTTP/1.1 20 OK"), "status line"},
		{"four digits", line("HTTP/1.1 2000 OK"), "status line"},
		{"two spaces", line("HTTP/1.1  200 OK"), "status line"},
		{"tab before the status", line("HTTP/1.1\t200 OK"), "status line"},
		{"sign", line("HTTP/1.1 +20 OK"), "status line"},
		{"tab behind the status", line("HTTP/1.1 200\tOK"), "status line"},
		{"status 99", line("HTTP/1.1 099 OK"), "between"},
		{"status 600", line("HTTP/1.1 600 OK"), "between"},
		{"NUL in the reason", line("HTTP/1.1 200 O\x00K"), "reason"},
		{"CR in the reason", line("HTTP/1.1 200 O\rK"), "reason"},
		{"two lengths", field("Content-Length: 3", "Content-Length: 3"), "more than one Content-Length"},
		{"list of lengths", field("Content-Length: 3, 3"), "plain decimal"},
		{"negative length", field("Content-Length: -1"), "plain decimal"},
		{"length and coding", field("Content-Length: 3", "Transfer-Encoding: chunked"), "both"},
		{"two codings", field("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "more than one Transfer-Encoding"},
		{"chunked twice", field("Transfer-Encoding: chunked, chunked"), "once"},
		{"another coding", field("Transfer-Encoding: gzip"), "unknown"},
		{"chunked in HTTP/1.0", head("HTTP/1.0 200 OK", "Transfer-Encoding: chunked"), "HTTP/1.0"},
		{"folded line", field("A: b", " c"), "folded"},
		{"space before the colon", field("A : b"), "after a field name"},
		{"NUL in a value", field("A: \x00"), "NUL"},
		{"control character in a value", field("A: \x1b"), "control"},
		{"LF in a value", field("A: b\nC: d"), "LF alone"},
		{"257 fields", field(slices.Repeat([]string{"A: b"}, 257)...), "256"},
		{"17 options", field("Connection: " + strings.Repeat("x,", 17)), "16 options"},
		{"option no token", field("Connection: a b"), "not a connection option"},
		{"100 with a body", head("HTTP/1.1 100 Continue", "Content-Length: 1"), "1xx"},
		{"101 with a body", head("HTTP/1.1 101 X", "Transfer-Encoding: chunked"), "1xx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, toHead := range []bool{false, true} {
				var r h1.Response
				refused(t, r.Parse([]byte(c.head), toHead), 502, c.words)
			}
		})
	}
}

func TestResponseIsReused(t *testing.T) {
	full := head("HTTP/1.0 500 Broken", "Content-Length: 7", "Connection: x, close, upgrade", "Upgrade: y", "X: 1", "Y: 2")
	least := head("HTTP/1.1 200", "X: 1")
	var fresh, used h1.Response
	if err := fresh.Parse([]byte(least), false); err != nil {
		t.Fatal(err)
	}
	if err := used.Parse([]byte(full), false); err != nil {
		t.Fatal(err)
	}
	if err := used.Parse([]byte(least), false); err != nil {
		t.Fatal(err)
	}
	if got, want := viewResponse(&used), viewResponse(&fresh); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
