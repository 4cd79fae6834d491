package topology_test

import (
	"testing"

	"github.com/abate-go/abate/topology"
)

func TestOneLineHasNothingThatEndsALineOrTurnsTheOrder(t *testing.T) {
	for text, want := range map[string]string{"a\nb": "a b", "a\x1b[1m": "a [1m", "\u202egnp.exe": " gnp.exe",
		"a\u2028b": "a b", "a\u2067b": "a b", "größe 日本 ע": "größe 日本 ע"} {
		if got := topology.OneLine(text); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}
