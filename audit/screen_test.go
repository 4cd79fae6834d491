package audit_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/lint"
)

func textOf(t *testing.T, r *audit.Result, o audit.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := audit.Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// rowsOf is how many rows of a screen with 120 columns a text takes.
func rowsOf(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n += 1 + max(0, utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))-1)/120
	}
	return n
}

func TestPathAndErrorsOfTheShopHaveRoomOnOneScreen(t *testing.T) {
	r := audit.Run(tree(t, "shop"), audit.Options{})
	text := textOf(t, r, audit.TextOptions{})
	if n := rowsOf(text); n > 40 {
		t.Errorf("%d rows of 120 columns, want 40 at most:\n%s", n, text)
	}
	for _, f := range r.Findings {
		written := strings.Contains(text, f.Message)
		if f.Severity == lint.Error && (!written || !strings.Contains(text, "fix: "+f.Fix)) {
			t.Errorf("an error or its fix is not written: %s", f.Message)
		}
		if f.Severity == lint.Warning && !written && !strings.Contains(text, f.Rule) {
			t.Errorf("nothing is said of a warning of %s", f.Rule)
		}
	}
	if !strings.Contains(text, "--all shows all") {
		t.Error("it does not say how to see the rest")
	}
	for _, f := range r.Findings {
		if all := textOf(t, r, audit.TextOptions{All: true}); !strings.Contains(all, f.Message) {
			t.Errorf("--all leaves out: %s", f.Message)
		}
	}
}

func TestWhereThereIsRoomFindingsHaveTheirPlaces(t *testing.T) {
	r := audit.Run(file(`calls:
- {from: a, to: b, layers: [{kind: client, product: x, perTry: 1s, repeats: [{on: ["503"], tries: 4}]},
    {kind: gateway, product: envoy, perTry: 1s, repeats: [{on: ["503"], tries: 3}]}]}
`), audit.Options{})
	text := textOf(t, r, audit.TextOptions{})
	for _, f := range r.Findings {
		for _, place := range f.Related {
			if f.Severity > lint.Note && !strings.Contains(text, place.Text) {
				t.Errorf("%s is left out although there is room:\n%s", place.Text, text)
			}
		}
	}
	if rowsOf(text) > 40 {
		t.Error("there is no room, so this tests nothing")
	}
}
