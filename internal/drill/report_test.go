package drill_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/internal/drill"
)

func TestTableIsAsWideAsWhatItHolds(t *testing.T) {
	var table drill.Table[string]
	table.Row("", func(a *string) string { return *a })
	table.Row("letters", func(a *string) string { return fmt.Sprint(len(*a)) })
	table.Row("a label that is longer than forty characters", func(*string) string { return "–" })
	got := table.Text([]string{"one", "a name that is longer than a column"})
	want := strings.Repeat(" ", 60) + "one a name that is longer than a column\n" +
		"letters" + strings.Repeat(" ", 55) + "3" + strings.Repeat(" ", 34) + "35\n" +
		"a label that is longer than forty characters" + strings.Repeat(" ", 18) + "–" + strings.Repeat(" ", 35) + "–\n"
	if got != want {
		t.Errorf("table:\n%swant:\n%s", got, want)
	}
	if got := table.Text(nil); got != "" {
		t.Errorf("a table of no acts: %q", got)
	}
}

func TestAnItemIsIndented(t *testing.T) {
	got := drill.Wrap("- " + strings.Repeat("word ", 20))
	for i, line := range strings.Split(got, "\n") {
		if want := [...]string{"- word", "  word"}[i]; !strings.HasPrefix(line, want) || len(line) > 79 {
			t.Errorf("line %d: %q", i, line)
		}
	}
}
