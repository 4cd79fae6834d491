package lint_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/lint"
)

var update = flag.Bool("update", false, "write the pages of the rules anew")

const pages = "../docs/lint"

// page is the page of a rule.
func page(r lint.Rule) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s: %s\n\n", r.ID, r.Title)
	fmt.Fprintf(&b, "Severity: %s. [All rules](README.md).\n\n", r.Severity)
	for _, part := range []struct{ title, text string }{{"What and why", r.Why}, {"Where this is known from", r.Source},
		{"When it is right all the same", r.Fine}, {"What to do", r.Fix}} {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", part.title, part.text)
	}
	b.WriteString("To keep it as it is, write above the line, with the reason, `# abate:ignore " + r.ID + " REASON`.\n")
	return b.Bytes()
}

const indexHead = `# Rules about retries

What an audit says of the retries, limits and breakers that it finds in configurations. Each rule has a page: what is
wrong, where that is known from, when it is right all the same, and what to do. An error fails a build by default, a
warning and a note do not.

All of it rests on one form of what the files say (package topology) and one arithmetic:

- A number of tries counts the first one. Layers of one call multiply where the outer one retries what the inner one
  answers; calls of a service add up.
- *Proved* is what follows from the files: an unknown value counts as the least that it can be. The *worst case* takes
  it as the worst, and nothing can exceed it.
- A hang is tried again only within limits of time: the try's, the call's, and those of the callers further out, if what
  is inside stops when its caller leaves.
- Budgets bound the average over many requests, not what one request can become.
- The bound is a promise: a test plays 100,000 random graphs, try by try, with the real guards where the layers are
  Abate's, and none exceeded it; in 98 % of the cases (91 % with guards, whose allowance has many ways) it was reached.
- With Abate's own guards a whole call tree shares one number of extra attempts, see [chains.md](../chains.md).

This page and those of the rules are made from the table in package lint: go test ./lint -run Pages -update.

| Rule | | Severity |
|---|---|---|
`

func index() []byte {
	var b bytes.Buffer
	b.WriteString(indexHead)
	for _, r := range lint.Rules() {
		fmt.Fprintf(&b, "| [%s](%s.md) | %s | %s |\n", r.ID, r.ID, r.Title, r.Severity)
	}
	return b.Bytes()
}

func TestPagesAreInStepWithTheTable(t *testing.T) {
	want := map[string][]byte{"README.md": index()}
	for _, r := range lint.Rules() {
		want[r.ID+".md"] = page(r)
	}
	if *update {
		if err := os.MkdirAll(pages, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range want {
		file := filepath.Join(pages, name)
		if got, err := os.ReadFile(file); err == nil && bytes.Equal(got, text) {
			continue
		}
		if !*update {
			t.Errorf("%s is out of step with the table of rules; run: go test ./lint -run Pages -update", file)
		} else if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if want[e.Name()] == nil && strings.HasSuffix(e.Name(), ".md") {
			t.Errorf("%s is the page of no rule", e.Name())
		}
	}
}
