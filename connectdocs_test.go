package abate_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/abate-go/abate"
)

// Examples that are not compiled are wrong sooner or later.
func TestTheExamplesOfTheStartupPageAreThoseThatCompile(t *testing.T) {
	examplesCompile(t, "docs/startup.md", 2)
}

func TestTheExamplesOfThePageOnCallsAreThoseThatCompile(t *testing.T) {
	examplesCompile(t, "docs/calls.md", 8)
}

// The short examples leave out what to do about errors, so their lines stand apart in what compiles.
func TestTheLinesOfShortExamplesAreThoseThatCompile(t *testing.T) {
	linesCompile(t, "README.md", 1)
	linesCompile(t, "docs/go.md", 3)
	linesCompile(t, "docs/grpc.md", 1)
	linesCompile(t, "docs/protect.md", 1)
}

// linesCompile wants each line of the examples of a page that name their file in that file.
func linesCompile(t *testing.T, name string, want int) {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)<!-- (\\S+) -->\n```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != want {
		t.Errorf("%s: %d examples of Go that name their file, want %d", name, len(blocks), want)
	}
	for _, b := range blocks {
		source, err := os.ReadFile(b[1])
		if err != nil {
			t.Error(err)
			continue
		}
		for line := range strings.Lines(b[2]) {
			code, _, _ := strings.Cut(line, " // ")
			if !strings.Contains(string(source), strings.TrimSpace(code)) {
				t.Errorf("%s: %s has not the line %s", name, b[1], code)
			}
		}
	}
}

// examplesCompile wants each example of Go of a page in the file of tests that it names.
func examplesCompile(t *testing.T, name string, want int) {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	words := func(code string) string { return strings.Join(strings.Fields(code), " ") }
	blocks := regexp.MustCompile("(?s)<!-- (\\S+) -->\n```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != want || strings.Count(string(page), "```go") != len(blocks) {
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

// What the page on connections says of the policy is what the policy does.
func TestThePageOnConnectionsHasTheNumbersOfThePolicy(t *testing.T) {
	page, err := os.ReadFile("docs/connections.md")
	if err != nil {
		t.Fatal(err)
	}
	p := abate.ConnectionPolicy().WithDefaults()
	b := p.CircuitBreaker
	longest := b.MaxWaitDurationInOpenState.Seconds()
	for _, want := range []string{
		fmt.Sprintf("| %d failures in a row | the circuit opens", b.FailureThreshold),
		fmt.Sprintf("after %v at first, every %.1f to %g s at last", b.WaitDurationInOpenState,
			longest/(1+b.WaitDurationJitter), longest),
		fmt.Sprintf("as long as their own time allows, at most %.0f s", p.Pacing.MaxWait.Seconds()),
	} {
		if !strings.Contains(strings.ReplaceAll(string(page), "100 ms", "100ms"), want) {
			t.Errorf("docs/connections.md does not say %q", want)
		}
	}
	if !p.Pacing.Adapts() {
		t.Error("the pace of the policy is not adaptive, as the page says")
	}
}
