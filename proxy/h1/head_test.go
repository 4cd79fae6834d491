package h1_test

import (
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

// refused checks that an error has the status and that its problem has the words.
func refused(t *testing.T, err *h1.Error, status int, words string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %d", status)
	}
	if err.Status != status || !strings.Contains(err.Problem, words) {
		t.Fatalf("got %d %q, want %d %q", err.Status, err.Problem, status, words)
	}
}

func TestHeadEnds(t *testing.T) {
	for _, c := range []struct {
		name, buf string
		n         int
	}{
		{"nothing yet", "", 0},
		{"in the first line", "GET / HT", 0},
		{"before the LF", "GET / HTTP/1.1\r", 0},
		{"after the first line", "GET / HTTP/1.1\r\n", 0},
		{"before the last LF", "GET / HTTP/1.1\r\nA: b\r\n\r", 0},
		{"complete", "GET / HTTP/1.1\r\nA: b\r\n\r\n", 24},
		{"no fields", "GET / HTTP/1.1\r\n\r\n", 18},
		{"body behind", "GET / HTTP/1.1\r\n\r\nbody\n\r\x00\r\n\r\n", 18},
		{"another request behind", "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n", 18},
		{"an empty line before", "\r\nGET / HTTP/1.1\r\n\r\n", 20},
		{"only an empty line", "\r\n", 0},
		{"two empty lines", "\r\n\r\nGET / HTTP/1.1\r\n\r\n", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			for from := -1; from <= len(c.buf)+1; from++ {
				if c.n > 0 && from >= c.n {
					break // an earlier call would have found the end
				}
				if n, err := h1.HeadEnd([]byte(c.buf), from); n != c.n || err != nil {
					t.Fatalf("from %d: got %d, %v, want %d", from, n, err, c.n)
				}
			}
		})
	}
}

func TestBadLinesAreKnownEarly(t *testing.T) {
	for _, c := range []struct{ name, before, now, words string }{
		{"LF alone", "", "GET / HTTP/1.1\n", "LF alone"},
		{"LF first", "", "\n", "LF alone"},
		{"LF alone, later", "GET / HTTP/1.1\r\nA: b", "\n", "LF alone"},
		{"empty line of LF alone", "GET / HTTP/1.1\r\nA: b\r\n", "\n", "LF alone"},
		{"empty line of LF alone, end behind", "", "GET / HTTP/1.1\r\nA: b\r\n\nB: c\r\n\r\n", "LF alone"},
		{"CR inside a line", "", "GET / HTTP/1.1\r\nA: \rb", "CR inside"},
		{"CR at the end of what came before", "GET / HTTP/1.1\r\nA: \r", "b", "CR inside"},
		{"two CRs", "GET / HTTP/1.1\r\nA: b\r", "\r\n", "CR inside"},
		{"NUL", "", "GET / HTTP/1.1\r\nA: \x00", "NUL"},
		{"NUL first", "", "\x00", "NUL"},
		{"NUL in the first line", "", "\x16\x03\x01\x00", "NUL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n, err := h1.HeadEnd([]byte(c.before), 0); n != 0 || err != nil {
				t.Fatalf("before: got %d, %v", n, err)
			}
			n, err := h1.HeadEnd([]byte(c.before+c.now), len(c.before))
			refused(t, err, 400, c.words)
			if n != 0 {
				t.Errorf("n is %d", n)
			}
		})
	}
}

// An end that is found in one go is found in any number of goes, and an early error
// means that the whole is refused as well.
func FuzzHeadEnd(f *testing.F) {
	f.Add(typicalRequest, uint(7))
	f.Add("\r\nGET / HTTP/1.1\r\nA: \rb\r\n\r\n", uint(1))
	f.Add("GET / HTTP/1.1\r\nA: b\n\r\n\r\n", uint(3))
	f.Fuzz(func(t *testing.T, s string, step uint) {
		buf := []byte(s)
		whole, wholeErr := h1.HeadEnd(buf, 0)
		step = step%16 + 1
		for from, upto := 0, 0; upto < len(buf); from = upto {
			upto = min(upto+int(step), len(buf))
			n, err := h1.HeadEnd(buf[:upto], from)
			if err != nil {
				var r h1.Request
				if wholeErr == nil && whole > 0 && r.Parse(buf[:whole]) == nil {
					t.Fatalf("%q is refused early (%v) but good as a whole", s, err)
				}
				return
			}
			if n > 0 {
				if n != whole {
					t.Fatalf("%q in steps of %d ends at %d, in one go at %d", s, step, n, whole)
				}
				return
			}
		}
		if whole > 0 || wholeErr != nil {
			t.Fatalf("%q in steps of %d is unfinished, in one go %d, %v", s, step, whole, wholeErr)
		}
	})
}

func TestFieldNamesAreComparedInAnyCase(t *testing.T) {
	for _, c := range []struct {
		name, lower string
		is          bool
	}{
		{"Retry-After", "retry-after", true},
		{"retry-after", "retry-after", true},
		{"RETRY-AFTER", "retry-after", true},
		{"Retry-After", "retry-afte", false},
		{"Retry_After", "retry-after", false},
		{"Retry\rAfter", "retry-after", false},
		{"", "", true},
		{"Ab[", "ab{", false},
	} {
		if got := (h1.Field{Name: []byte(c.name)}).Is(c.lower); got != c.is {
			t.Errorf("%q is %q: %v", c.name, c.lower, got)
		}
	}
}

// Values are read eight bytes at a time: each byte must be seen wherever it stands, and
// whatever stands beside it.
func TestEveryByteOfAValueIsLookedAt(t *testing.T) {
	var r h1.Request
	for c := range 256 {
		good := c == '\t' || c >= ' ' && c != 0x7f
		for _, beside := range []string{"a", " ", "!", "~", "\x80", "\xff", "\t"} {
			for at := range 20 {
				value := "<" + strings.Repeat(beside, at) + string([]byte{byte(c)}) + strings.Repeat(beside, 19-at) + ">"
				err := r.Parse([]byte(head("GET / HTTP/1.1", "Host: a", "A: "+value)))
				if (err == nil) != good || good && string(r.Fields[0].Value) != value {
					t.Fatalf("%q: %v", value, err)
				}
			}
		}
	}
}
