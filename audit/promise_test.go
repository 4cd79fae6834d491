package audit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/abate-go/abate/audit"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// kept makes the proposed changes and checks what every fix promises: no new error, files that are read as before and
// mean what the form with the changes says, and nothing left for a second fix.
func kept(t *testing.T, name string, files []importer.File) []importer.File {
	t.Helper()
	r := audit.Run(files, audit.Options{})
	r.Propose(files, lint.Options{})
	changed, again := held(t, name, files, r)
	again.Propose(changed, lint.Options{})
	if len(again.Changes) > 0 {
		t.Errorf("%s: the second fix changes more: %v\n%s", name, again.Changes, again.Diff)
	}
	return changed
}

// held checks what a fix promises that may have stopped before its end. It returns the changed files, and what is said
// of them.
func held(t *testing.T, name string, files []importer.File, r *audit.Result) ([]importer.File, *audit.Result) {
	t.Helper()
	changed, left := audit.Apply(files, r.Changes)
	again := audit.Run(changed, audit.Options{})
	complain := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s: %s\n%s", name, fmt.Sprintf(format, args...), r.Diff)
	}
	if len(left) > 0 {
		complain("changes that find nothing to change: %v", left)
	}
	was, is := errorsOf(r), errorsOf(again)
	for rule, n := range is {
		if n > was[rule] && !strings.HasPrefix(rule, "F1") { // which are one for all paths with the same cause
			complain("%d errors of %s become %d", was[rule], rule, n)
		}
	}
	if r.Worst != nil && again.Worst != nil && again.Worst.Most > r.Worst.Most {
		complain("up to %v attempts become %v", r.Worst.Most, again.Worst.Most)
	}
	if len(r.Changes) > 0 {
		if got, want := meanings(again.Form), meanings(r.Promised()); len(got) != len(want) {
			complain("%d calls are read again, promised were %d", len(got), len(want))
		} else {
			for call := range want {
				if got[call] != want[call] {
					complain("%s is read again as\n%s, promised was\n%s", call, got[call], want[call])
				}
			}
		}
	}
	for i, f := range files {
		if json.Valid(f.Data) && !json.Valid(changed[i].Data) {
			complain("%s is JSON no longer:\n%s", f.Name, changed[i].Data)
		}
	}
	return changed, again
}

// meanings says of each call what its layers do: tries after each outcome, and limits.
func meanings(f topology.Form) map[string]string {
	all := map[string]string{}
	for i := range f.Calls {
		c := &f.Calls[i]
		text := ""
		for j := range c.Layers {
			l := &c.Layers[j]
			does := l.PerTry.Or(0) != 0 || l.Overall.Or(0) != 0
			one := fmt.Sprint(l.Kind, " ", l.Name, " ", l.PerTry.Or(0), " ", l.Overall.Or(0))
			for _, o := range topology.AllOutcomes() {
				safe, unsafe := l.Tries(o, topology.Safe).N, l.Tries(o, topology.Unsafe).N
				one += fmt.Sprint(" ", safe, ",", unsafe)
				does = does || safe > 1 || unsafe > 1
			}
			if does { // a layer whose policy was removed is one that does nothing
				text += one + "\n"
			}
		}
		all[c.From+" to "+c.To] += text
	}
	return all
}

// errorsOf counts the errors of each rule.
func errorsOf(r *audit.Result) map[string]int {
	n := map[string]int{}
	for _, f := range r.Findings {
		if f.Severity == lint.Error {
			n[f.Rule]++
		}
	}
	return n
}
