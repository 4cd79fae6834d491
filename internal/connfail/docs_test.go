package connfail_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/connfail"
)

const page = "../../docs/connections.md"

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// table is the rules as the documentation shows them.
func table() string {
	var b strings.Builder
	b.WriteString("| What is wrong | Recognised by | When a connection is opened | When a statement is carried out | " +
		"What to do |\n|---|---|---|---|---|\n")
	for _, r := range connfail.Rules {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", r.Name, strings.Join(r.Signs, "`, `"), r.Opening,
			r.Statement, r.Hint)
	}
	return b.String()
}

func TestTheDocumentationListsEveryDecision(t *testing.T) {
	if want := table(); !strings.Contains(read(t, page), want) {
		t.Errorf("%s does not have this table:\n%s", page, want)
	}
}

var block = regexp.MustCompile("(?s)(?:<!-- ([^ ]+) -->\n)?```go\n(.*?)```")

func TestTheDocumentationsCodeIsCodeThatIsCompiled(t *testing.T) {
	blocks := block.FindAllStringSubmatch(read(t, page), -1)
	if len(blocks) < 6 {
		t.Fatalf("only %d blocks of code", len(blocks))
	}
	for _, b := range blocks {
		file, code := b[1], b[2]
		if file == "" {
			t.Errorf("nothing says in which file this stands:\n%s", code)
			continue
		}
		if n := strings.Count(code, "\n"); n > 10 {
			t.Errorf("%d lines are too many for a glance:\n%s", n, code)
		}
		if !strings.Contains(unindented(read(t, "../../"+file)), unindented(code)) {
			t.Errorf("%s does not have:\n%s", file, code)
		}
	}
}

// unindented is code without what gofmt puts before its lines.
func unindented(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n")
}
