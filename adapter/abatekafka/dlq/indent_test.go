package dlq_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

func TestIndentLaysOutWhatStaysReadable(t *testing.T) {
	for text, want := range map[string]string{
		` {"b":1,"a":[2,"x,[\\"]} `:            "{\n  \"b\": 1,\n  \"a\": [\n    2,\n    \"x,[\\\\\"\n  ]\n}",
		`{"big":12345678901234567890,"big":2}`: "{\n  \"big\": 12345678901234567890,\n  \"big\": 2\n}",
		"17":                                   "", "": "", "{": "", `"text"`: "", "[1] 2": "",
		strings.Repeat("[", 5000) + strings.Repeat("]", 5000): "",
	} {
		laid, ok := dlq.Indent([]byte(text))
		if ok != (want != "") || ok && string(laid) != want || !ok && string(laid) != text {
			t.Errorf("%.40q: %v %.80q", text, ok, laid)
		}
	}
}

func FuzzIndent(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\"[,"],"b":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		laid, ok := dlq.Indent(text)
		if !ok {
			return
		}
		if len(laid) > 20*len(text) {
			t.Fatalf("%d bytes of %d", len(laid), len(text))
		}
		var a, b bytes.Buffer
		if json.Compact(&a, text) != nil || json.Compact(&b, laid) != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Fatalf("%q became %q", text, laid)
		}
	})
}
