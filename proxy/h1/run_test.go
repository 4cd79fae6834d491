package h1_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy/h1"
)

// TestFieldsAreWrittenInOneForm checks that what a client wrote otherwise is not copied as it is.
func TestFieldsAreWrittenInOneForm(t *testing.T) {
	for _, lines := range []string{
		"A: b", "A: b\nC: d\nE: f", "A:b\nC: d", "A: b\nC:d\nE: f", "A:  b\nC: d", "A: b \nC: d", "A: b\t\nC: d",
		"A:\tb\nC: d", "A:\nC: d", "A: \nC: d", "A: b\nC:", "A: b\nC: ", "A: b\nC:  ", "A: b\nConnection: c\nC: d\nE: f",
		"A: b\nContent-Length: 1\nE: f", "A: a: b\nC: d", "A: b\nHost: a\nC: d",
	} {
		if !strings.Contains(lines, "Host:") {
			lines = "Host: a\n" + lines
		}
		var r h1.Request
		if bad := r.Parse([]byte(head(strings.Split("GET / HTTP/1.1\n"+lines, "\n")...))); bad != nil {
			t.Fatalf("%q: %v", lines, bad)
		}
		sameLines(t, &r)
	}
}

// TestFieldsAreNotThoseOfTheRequestBefore checks a request whose memory another one has by now.
func TestFieldsAreNotThoseOfTheRequestBefore(t *testing.T) {
	for _, later := range []string{"Aa:bbb", "Aa; bb", "Aa: b\n", "Aaa:bb"} {
		var r h1.Request
		text := []byte(head("GET / HTTP/1.1", "Host: a", "Aa: bb", "Cc: dd"))
		if bad := r.Parse(text); bad != nil {
			t.Fatal(bad)
		}
		copy(text, head("GET / HTTP/1.1", "Host: a", later, "Cc: ee"))
		if got, want := r.AppendFields(nil, r.Fields), h1.AppendFields(nil, r.Fields); !bytes.Equal(got, want) {
			t.Errorf("fields written as %q, not as %q", got, want)
		}
	}
}
