package summary_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abate-go/abate/sim/scenario"
	"github.com/abate-go/abate/sim/summary"
)

const explained = `name: explained
duration: 30s
clients:
  shop: {rate: 10, calls: [front, mail]}
services:
  front: {workers: 10, serviceTime: 10ms, calls: [{to: db, times: 2}]}
  mail: {workers: 1, serviceTime: 1ms}
  db: {workers: 1, serviceTime: 10ms}
faults:
  - {at: 10s, for: 5s, outage: db}
variants:
  plain: {about: no retries, policy: {defaults: {maxRetries: 0}, services: {db: {maxRetries: 7}}}}
  retrying: {policy: {defaults: {maxRetries: 3}}}
`

func explain(t *testing.T, variants ...string) string {
	t.Helper()
	s, err := scenario.Parse("e.yaml", []byte(explained))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := summary.Explain(&out, s, variants); err != nil {
		t.Fatal(err)
	}
	if err := summary.Explain(failing{}, s, variants); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a write that fails: %v", err)
	}
	return out.String()
}

func TestExplainSaysEveryPolicyOnce(t *testing.T) {
	text := explain(t)
	for want, times := range map[string]int{
		"explained (e.yaml)\n":                            1,
		"Variant plain: no retries\n":                     1,
		"Variant retrying\n":                              1,
		"  policy of shop -> front:\n":                    2,
		"  policy of shop -> mail: as of shop -> front\n": 2,
		"  policy of front -> db:\n":                      1,
		"  policy of front -> db: as of shop -> front\n":  1,
		"    maxRetries: 7\n":                             1,
		"    maxRetries: 3\n":                             1,
		"    maxRetries: 0\n":                             1,
		"  all else as said above\n":                      1,
		"  a run is about ":                               2,
		"\nNot modelled\n":                                1,
		"  recovery([fleet or service]) ":                 1,
	} {
		if n := strings.Count(text, want); n != times {
			t.Errorf("%q stands %d times, want %d", want, n, times)
		}
	}
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(line); n > 101 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

func TestExplainOfOneVariantIsComplete(t *testing.T) {
	text := explain(t, "retrying")
	if strings.Contains(text, "Variant plain") || strings.Contains(text, "all else as") ||
		!strings.Contains(text, "Variant retrying") {
		t.Error(text)
	}
	for _, setting := range []string{"duration", "model.cancellation", "scale"} {
		if !strings.Contains(text, "  "+setting+": ") {
			t.Errorf("lacks the assumption %s:\n%s", setting, text)
		}
	}
}
