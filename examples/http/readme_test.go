package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows main.go and what it prints; whoever changes one has to change the other.
func TestTheReadmeShowsThisProgramAndItsOutput(t *testing.T) {
	readme, program, example := read(t, "../../README.md"), read(t, "main.go"), read(t, "main_test.go")
	_, program, _ = strings.Cut(program, "\n") // its package comment
	if !strings.Contains(readme, "```go\n"+program+"```\n") {
		t.Error("the README does not show main.go as it is")
	}
	_, output, _ := strings.Cut(example, "// Output:\n")
	output, _, _ = strings.Cut(output, "}")
	output = strings.ReplaceAll(output, "\t// ", "")
	_, after, found := strings.Cut(readme, output)
	if !found || output == "" {
		t.Fatal("the README does not show the program's output")
	}
	if lines := strings.Count(strings.TrimSuffix(readme, after), "\n"); lines >= 45 {
		t.Errorf("the output ends on line %d of the README, want it before line 45", lines)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
