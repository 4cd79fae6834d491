package audit_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
)

// Wherever a search for changes stops, what it has found by then makes nothing worse, and what is said of it is true.
func TestAFixThatStopsBeforeItsEndKeepsItsPromisesAndSaysSo(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	trees, err := filepath.Glob("testdata/fixes/*")
	if err != nil || len(trees) == 0 {
		t.Fatal(trees, err)
	}
	nothing, something := 0, 0
	for _, tree := range append(trees, "../examples/audit/shop") {
		files := filesOf(t, tree)
		for _, effort := range []int{0, 1, 10, 30, 60, 100, 150, 200, 300, 500, 1000} {
			r := audit.Run(files, audit.Options{})
			r.ProposeWithin(files, lint.Options{}, effort)
			held(t, tree, files, r)
			var text strings.Builder
			if err := audit.Text(&text, r, audit.TextOptions{}); err != nil {
				t.Fatal(err)
			}
			none, again := strings.Contains(text.String(), "No change is proposed"),
				strings.Contains(text.String(), "write these changes")
			tooMany := strings.Contains(text.String(), "audit fewer at once")
			if none != (len(r.Changes) == 0) || again != (r.Unfinished && !none) || tooMany != (r.Unfinished && none) {
				t.Errorf("%s, effort %d: %d changes, unfinished %t, and the text says\n%s", tree, effort, len(r.Changes),
					r.Unfinished, &text)
			}
			if r.Unfinished && none {
				nothing++
			} else if r.Unfinished {
				something++
			}
		}
	}
	if nothing == 0 || something == 0 {
		t.Errorf("%d searches stopped without a change and %d with some: both must be tried", nothing, something)
	}
}

// Services that all call those behind them make a graph in which each try of a number takes as long as thousands in
// another one. What is counted is what it takes.
func TestAFixOfADenseGraphEndsWithinACountedNumberOfSteps(t *testing.T) {
	if testing.Short() {
		return // it takes a second or more
	}
	var b strings.Builder
	b.WriteString("calls:\n")
	for i := range 40 {
		for j := i + 1; j < 40; j++ {
			fmt.Fprintf(&b, "- {from: s%d, to: s%d, layers: [{kind: client, repeats: [{on: [\"503\"], tries: 3}]}]}\n", i, j)
		}
	}
	files := []importer.File{{Name: "calls.yaml", Data: []byte(b.String())}}
	r := audit.Run(files, audit.Options{})
	steps := 0
	r.Propose(files, lint.Options{Steps: &steps})
	const most = 30_000_000 // it takes 24; 32 if the files that are read again do not count, 59 if steps do not
	if !r.Unfinished || steps > most {
		t.Errorf("unfinished %t after %d steps, want at most %d", r.Unfinished, steps, most)
	}
	held(t, "a dense graph", files, r)
}
