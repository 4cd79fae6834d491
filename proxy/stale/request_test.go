package stale_test

import (
	"bytes"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/stale"
)

func TestWhichRequestsMayUseTheStore(t *testing.T) {
	for _, c := range []struct {
		method, field string
		answer, fill  bool
	}{
		{"GET", "Accept: */*", true, true},
		{"HEAD", "Accept: */*", true, false},
		{"POST", "Accept: */*", false, false},
		{"PUT", "Accept: */*", false, false},
		{"DELETE", "Accept: */*", false, false},
		{"OPTIONS", "Accept: */*", false, false},
		{"QUERY", "Accept: */*", false, false},
		{"get", "Accept: */*", false, false},
		{"GETS", "Accept: */*", false, false},
		{"", "Accept: */*", false, false},

		{"GET", "Authorization: Basic eDp5", false, false},
		{"GET", "authorization:", false, false},
		{"HEAD", "AUTHORIZATION: Basic eDp5", false, false},
		{"GET", "Proxy-Authorization: Basic eDp5", false, false},
		{"GET", "Cookie: a=b", false, false},
		{"GET", "X-Api-Key: 1", false, false},
		{"GET", "apikey: 1", false, false},
		{"GET", "Ocp-Apim-Subscription-Key: 1", false, false},
		{"GET", "Private-Token: 1", false, false},
		{"GET", "X-Amz-Security-Token: 1", false, false},
		{"GET", "X-Client-Secret: 1", false, false},
		{"GET", "X-Session: 1", false, false},
		{"GET", "X-Goog-IAP-JWT-Assertion: 1", false, false},
		{"GET", "Sec-WebSocket-Key: dGhl", false, false},
		{"GET", "X-Request-Id: 1", true, true},
		{"GET", "Connection: keep-alive", true, true},
		{"GET", "Accept-Language: de", true, true},
		{"GET", "User-Agent: curl", true, true},
		{"GET", "Upgrade: h2c", true, true}, // Java's client asks so every time

		{"GET", "Range: bytes=0-1", false, false},
		{"GET", "If-Range: \"x\"", true, true},
		{"GET", "If-Match: \"x\"", false, false},
		{"GET", "If-Unmodified-Since: Fri, 20 Nov 2026 14:00:00 GMT", false, false},
		{"GET", "If-None-Match: \"x\"", true, true},
		{"GET", "If-Modified-Since: Fri, 20 Nov 2026 14:00:00 GMT", true, true},

		{"GET", "Content-Length: 0", true, true},
		{"GET", "Content-Length: 1", false, false},
		{"GET", "Transfer-Encoding: chunked", false, false},

		{"GET", "Cache-Control: no-store", false, false},
		{"GET", "Cache-Control: NO-STORE", false, false},
		{"GET", "Cache-Control: max-age=0 , no-store", false, false},
		{"HEAD", "Cache-Control: no-store", false, false},
		{"GET", "Cache-Control: no-cache", false, true},
		{"HEAD", "Cache-Control: no-cache", false, false},
		{"GET", "Cache-Control: max-age=0", true, true},
		{"GET", "Cache-Control: x=\"no-store\"", true, true},
		{"GET", "Cache-Control: x=\"no-store", false, false},
		{"GET", "X-Cache-Ctrl0: no-store", true, true}, // as long as the real one
	} {
		answer, fill := stale.Asks([]byte(c.method), lines("Host: a", c.field, "Accept: */*"))
		if answer != c.answer || fill != c.fill {
			t.Errorf("%s with %s: answer %v, fill %v; want %v, %v", c.method, c.field, answer, fill, c.answer, c.fill)
		}
	}
}

func TestAllCacheControlLinesOfARequestCount(t *testing.T) {
	answer, fill := stale.Asks([]byte("GET"),
		lines("Cache-Control: max-age=1", "Cache-Control: no-cache", "Cache-Control: no-store"))
	if answer || fill {
		t.Errorf("answer %v, fill %v", answer, fill)
	}
}

func TestAFieldWithoutANameHurtsNobody(t *testing.T) {
	if answer, fill := stale.Asks([]byte("GET"), []h1.Field{{}}); !answer || !fill {
		t.Error("refused")
	}
}

func TestKeysTellResourcesApart(t *testing.T) {
	type resource struct{ service, host, path string }
	same := func(a, b resource) bool {
		return bytes.Equal(stale.AppendKey(nil, a.service, []byte(a.host), []byte(a.path)),
			stale.AppendKey(nil, b.service, []byte(b.host), []byte(b.path)))
	}
	a := resource{"stock", "h.example", "/a?b=c"}
	if !same(a, resource{"stock", "H.Example", "/a?b=c"}) {
		t.Error("the host's case matters")
	}
	for _, b := range []resource{
		{"stock2", "h.example", "/a?b=c"}, {"Stock", "h.example", "/a?b=c"}, {"stock", "i.example", "/a?b=c"},
		{"stock", "h.example:80", "/a?b=c"}, {"stock", "h.example", "/A?b=c"}, {"stock", "h.example", "/a?b=C"},
		{"stock", "h.example", "/a"}, {"stock", "h.example/a", "?b=c"}, {"stockh", ".example", "/a?b=c"},
		{"stock", "", "h.example/a?b=c"}, {"", "stockh.example", "/a?b=c"},
	} {
		if same(a, b) {
			t.Errorf("%q and %q have the same key", a, b)
		}
	}
	for _, pair := range [][2]resource{ // that look alike without the lengths
		{{"s", "x", "y\x00"}, {"s", "x\x02y", ""}},
		{{"\x01", "\x01", ""}, {"", "\x01", "\x00"}},
	} {
		if same(pair[0], pair[1]) {
			t.Errorf("%q have the same key", pair)
		}
	}
	if got := stale.AppendKey([]byte("front"), "s", []byte("h"), []byte("/")); !bytes.HasPrefix(got, []byte("front")) {
		t.Errorf("%q does not append", got)
	}
}

func FuzzKeysAreTheSameOnlyForTheSameResource(f *testing.F) {
	f.Add("stock", "h", "/", "stock", "H", "/")
	f.Add("a", "bc", "/", "ab", "c", "/")
	f.Add("a\x00", "b", "/", "a", "\x00b", "/")
	f.Add("", "Ä", "/", "", "ä", "/")
	f.Fuzz(func(t *testing.T, s1, h1, p1, s2, h2, p2 string) {
		same := bytes.Equal(stale.AppendKey(nil, s1, []byte(h1), []byte(p1)),
			stale.AppendKey(nil, s2, []byte(h2), []byte(p2)))
		if want := s1 == s2 && asciiLower(h1) == asciiLower(h2) && p1 == p2; same != want {
			t.Errorf("same key %v, same resource %v", same, want)
		}
	})
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}
