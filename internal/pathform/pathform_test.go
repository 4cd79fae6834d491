package pathform_test

import (
	"bytes"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/pathform"
)

func TestAPathHasOneForm(t *testing.T) {
	for _, c := range [][2]string{
		{"/", "/"}, {"*", "*"}, {"", ""}, {"/a", "/a"}, {"/a/", "/a/"}, {"/a/b.c/...", "/a/b.c/..."},
		{"/.well-known/x", "/.well-known/x"},
		{"/admin/../x", "/x"}, {"/admin/%2e%2e/x", "/x"}, {"/admin/%2E./x", "/x"}, {"/../../x", "/x"}, {"/..", "/"},
		{"/a/..", "/"},
		{"/a/b/..", "/a/"}, {"/a/.", "/a/"}, {"/./a/./b", "/a/b"}, {"//a///b//", "/a/b/"}, {"/a//../b", "/b"},
		{"/%7Eme/%41", "/~me/A"},
		{"/a%2fb", "/a%2Fb"}, {"/a%252e%252e", "/a%252e%252e"}, {"/%", "/%"}, {"/%z1/%4", "/%z1/%4"}, {"/..%2fa", "/..%2Fa"},
		{"/%c3%a9", "/%C3%A9"}, {"/a;b/..", "/"},
	} {
		if got := string(pathform.Canonical([]byte(c[0]))); got != c[1] {
			t.Errorf("Canonical(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

func TestWhatTwoServersReadInTwoWaysIsDoubtful(t *testing.T) {
	for path, word := range map[string]string{
		"/a/../b": "a . or ..", "/a/%2e%2E/b": "a . or ..", "/a/.": "a . or ..", "/a/..;x/b": "a . or ..",
		"/a/..%2fb":   "a . or ..",
		"/a%5c..%5cb": "a . or ..", "/a/%252e%252e/b": "a . or ..", "/a/..\\b": "a . or ..", "//a": "two slashes",
		"/a//":   "two slashes",
		"/a/%2f": "two slashes", "/a%2Fb": "an escaped slash", "/a%5Cb": "an escaped slash", "/a\\b": "an escaped slash",
		"/a;b=c": "a semicolon", "/a%3bb": "a semicolon",
		"/a%00": "a control", "/a%0d%0a": "a control", "/a%7f": "a control", "/a%2541": "an escape of an escape",
		"/%c0%af": "bytes that", "/%c0%ae%c0%ae/": "bytes that",
		"/%e9": "bytes that", "/%ed%a0%80": "bytes that", "/%c3/%a9": "bytes that",
	} {
		if got := pathform.Doubt([]byte(path)); !strings.HasPrefix(got, word) {
			t.Errorf("Doubt(%q) = %q, want %q", path, got, word)
		}
	}
	for _, path := range []string{"/", "*", "/a/b", "/a/", "/a.b/..c/...", "/.well-known", "/100%25", "/%C3%A9", "/a%20b",
		"/file%2etxt", "/a:b@c,d=e&f+g", "/%E2%82%AC%F0%9F%98%80"} {
		if got := pathform.Doubt([]byte(path)); got != "" {
			t.Errorf("Doubt(%q) = %q", path, got)
		}
	}
}

func TestOnlyDotsInDisguiseAreNobodysGoodFaith(t *testing.T) {
	for path, want := range map[string]bool{
		"/a/..;/b": true, "/a/..%2Fb": true, "/a%5C..%5Cb": true, "/a/%252e%252e/b": true, "/a\\..\\b": true, "/a%00": true,
		"/x/..%c0%afadmin": true, "/%c0%ae%c0%ae/x": true, "/%C0%20la%20carte": false,
		"/group%2Fproject": false, "/a;v=1/b": false, "/%E9": false, "/a%2541": false, "/a..b": false, "/..a;b": false,
	} {
		if got := pathform.Disguise(pathform.Canonical([]byte(path))); (got != "") != want {
			t.Errorf("Disguise(%q) = %q, want one: %v", path, got, want)
		}
	}
}

func TestAPathThatIsCanonicalCostsNothing(t *testing.T) {
	usual := []byte("/shop/orders/4711/items.json")
	dotted := []byte("/shop/./orders/%2e%2e/4711")
	if n := testing.AllocsPerRun(100, func() {
		pathform.Canonical(usual)
		pathform.Doubt(usual)
		pathform.Disguise(dotted)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCanonical: the form is one. A second time changes nothing, no server that follows RFC 3986 goes elsewhere than
// the form says, and a path without doubt is the same to one that unescapes it first.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"/", "/a/../b", "/a/%2e%2e/b", "//a//", "/%25%32%65", "/a;b", "/..%2f..", "/%C3%A9",
		"/a\\..\\b", "/.%2e/x", "/%2e", "/%%41"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		raw := bytes.Clone(p)
		once := bytes.Clone(pathform.Canonical(p))
		twice := pathform.Canonical(bytes.Clone(once))
		if !bytes.Equal(once, twice) {
			t.Fatalf("%q becomes %q, and that %q", raw, once, twice)
		}
		if len(once) > len(raw) {
			t.Fatalf("%q grew to %q", raw, once)
		}
		if _, err := url.PathUnescape(string(raw)); len(raw) == 0 || raw[0] != '/' || err != nil {
			return
		}
		if len(once) == 0 || once[0] != '/' || bytes.Contains(once, []byte("//")) {
			t.Fatalf("%q becomes %q", raw, once)
		}
		for segment := range bytes.SplitSeq(once[1:], []byte("/")) {
			if string(segment) == "." || string(segment) == ".." {
				t.Fatalf("%q becomes %q, with a dot segment", raw, once)
			}
		}
		if pathform.Doubt(raw) != "" {
			return
		}
		a, errA := url.PathUnescape(string(raw))
		b, errB := url.PathUnescape(string(once))
		if errA != nil || errB != nil {
			return
		}
		if a != b || strings.TrimSuffix(path.Clean(a), "/") != strings.TrimSuffix(a, "/") {
			t.Fatalf("%q is in no doubt, and a server that unescapes first sees %q, one that gets %q sees %q", raw, a, once, b)
		}
	})
}
