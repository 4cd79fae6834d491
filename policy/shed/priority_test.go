package shed_test

import (
	"bytes"
	"testing"

	"github.com/abate-go/abate/policy/shed"
)

func TestPriorityNamesGoBothWays(t *testing.T) {
	for _, p := range shed.Priorities {
		text, err := p.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		for _, spelling := range [][]byte{
			text, bytes.ToLower(text), bytes.ReplaceAll(bytes.ToLower(text), []byte("_"), []byte("-")),
		} {
			got := shed.Priority(99)
			if err := got.UnmarshalText(spelling); err != nil || got != p {
				t.Errorf("%q is %v, %v; want %v", spelling, got, err, p)
			}
		}
	}
	for _, bad := range []string{"", "critical+", "CRITICAL_PLUS ", "URGENT99", "SHEDDABLE\n"} {
		p := shed.Sheddable
		if err := p.UnmarshalText([]byte(bad)); err == nil || p != shed.Sheddable {
			t.Errorf("%q: %v, %v; want an error and no change", bad, p, err)
		}
		if p, ok := shed.ParsePriority([]byte(bad)); ok || p != shed.Critical {
			t.Errorf("%q: %v %v; want the usual priority", bad, p, ok)
		}
	}
}
