package audit_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
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

// Names of files that somebody else wrote are no lines of their own, which a log may take for a command, and move no
// cursor.
func TestNamesBeginNoLineAndMoveNoCursor(t *testing.T) {
	const ingress = "apiVersion: networking.k8s.io/v1\nkind: Ingress\n" +
		"metadata: {name: \"e\\u001b[31mvil\\n::add-mask::x\", annotations: " +
		"{nginx.ingress.kubernetes.io/proxy-next-upstream-tries: \"12\", " +
		"abate.dev/ignore: \"F206=a\\n::x\"}}\n" +
		"spec: {ingressClassName: nginx, rules: [{host: \"h\\r\\n::error::x\", http: {paths: [{path: \"/a\\n::stop::x\", " +
		"backend: {service: {name: \"s\\u001b[2J\\n::warning::x\"}}}]}}]}\n"
	files := []importer.File{{Name: "in\n::debug::\u001b[2Jgress.yaml", Data: []byte(ingress)}}
	r := audit.Run(files, audit.Options{})
	if len(r.Findings) == 0 || r.Worst == nil {
		t.Fatal("nothing was found")
	}
	r.Propose(files, lint.Options{})
	for line := range strings.SplitSeq(textOf(t, r, audit.TextOptions{All: true}), "\n") {
		if strings.HasPrefix(line, "::") || strings.ContainsFunc(line, unicode.IsControl) {
			t.Errorf("%q", line)
		}
	}
}
