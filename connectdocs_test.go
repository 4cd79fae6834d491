package abate_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Examples that are not compiled are wrong sooner or later.
func TestTheExamplesOfTheStartupPageAreThoseThatCompile(t *testing.T) {
	page, err := os.ReadFile("docs/startup.md")
	if err != nil {
		t.Fatal(err)
	}
	words := func(code string) string { return strings.Join(strings.Fields(code), " ") }
	blocks := regexp.MustCompile("(?s)<!-- (\\S+) -->\n```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 || strings.Count(string(page), "```go") != len(blocks) {
		t.Errorf("%d examples of Go that name their file, of %d", len(blocks), strings.Count(string(page), "```go"))
	}
	for _, b := range blocks {
		source, err := os.ReadFile(b[1])
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(words(string(source)), words(b[2])) {
			t.Errorf("%s has not the example\n%s", b[1], b[2])
		}
	}
}
