package source_test

import (
	"testing"

	"github.com/abate-go/abate/importer/source"
)

func TestCommentsAndLastCommasOfJSONAreNoValues(t *testing.T) {
	for text, want := range map[string]string{
		"{\n// retries: 9\n\"a\": 1, // \"b\": 2,\n\"c\": 3,\n}":       "a=1@3:6 c=3@4:6 ",
		"\xef\xbb\xbf/* first,\n} */ {\"a\": \"x // y, }\", /* , */ }": "a=x // y, }@2:12 ",
		"// only at the end\n{\"a\": \"\\\"//\"} // ]":                 "a=\"//@2:7 ",
		"{\"a\": [1, 2, ], \"c\": 3 // and no end of the line":         "",
		"{a: 1, c: 2,}": "a=1@1:5 c=2@1:11 ", // YAML, which may end so
		"{\"a\": \"https://x/*\", \"c\": \"*/\"}": "a=https://x/*@1:7 c=*/@1:27 ",
		"{\n\"a\": 1 /* never ends\n}":            "a=1 /* never ends@2:6 ", // as YAML has it
		"{\"a\": 1,, }":                           "",
	} {
		docs, _ := source.YAML("f.json", []byte(text))
		got := ""
		for _, d := range docs {
			for _, p := range d.Root.Pairs() {
				at := p.Value.At()
				got += p.Key + "=" + p.Value.Text() + "@" + at.String()[len("f.json:"):] + " "
			}
		}
		if got != want {
			t.Errorf("%q\nis  %q\nwant %q", text, got, want)
		}
	}
}
