package audit

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/lint"
)

// A screen, and what of it is for the last lines and the prompt.
const (
	screenRows    = 40
	screenColumns = 120
	rowsBelow     = 3
)

// detail says how much of the findings is written.
type detail struct {
	ofARule  int           // findings of each rule; 0 means all
	places   int           // of each finding; 0 means all
	least    lint.Severity // of those that are written
	unfixed  bool          // without the fix
	assumed  bool          // with what they rest on
	accepted bool          // with those in the baseline, and those that files accept
}

// details are tried in turn, until one has room.
var details = []detail{
	{ofARule: 3, places: 4, least: lint.Warning, assumed: true},
	{ofARule: 3, places: -1, least: lint.Warning, assumed: true},
	{ofARule: 3, places: -1, least: lint.Error, assumed: true},
	{ofARule: 3, places: -1, least: lint.Error},
	{ofARule: 1, places: -1, least: lint.Error},
	{ofARule: 1, places: -1, least: lint.Error, unfixed: true},
}

// everything is what --all asks for.
var everything = detail{least: lint.Note, assumed: true, accepted: true}

// findingsText is the findings, in as much detail as leaves them and the path on one screen.
func findingsText(r *Result, o TextOptions) string {
	if o.All {
		return everything.write(r)
	}
	room := screenRows - rowsBelow - rows(headText(r))
	var text string
	for _, d := range details {
		if !r.Fails(lint.Error) {
			d.least = min(d.least, lint.Warning)
		}
		if text = d.write(r); rows(text) <= room {
			break
		}
	}
	return text
}

// rows is how many rows of a screen a text takes.
func rows(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		n += max(1, (utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))+screenColumns-1)/screenColumns)
	}
	return n
}

// write writes the findings. What is left out is counted by its rules.
func (d detail) write(r *Result) string {
	var b bytes.Buffer
	hidden := 0
	seen, more := map[string]int{}, map[string]int{}
	var rules, assumed []string
	if lint.Taken(r.Form) { // which the first line rests on, also where no finding does
		assumed = append(assumed, lint.OnlyHTTP)
	}
	for _, f := range r.Findings {
		if !d.accepted && (f.State != New || f.Severity == lint.Note) {
			hidden++
			continue
		}
		if seen[f.Rule]++; f.Severity < d.least || d.ofARule > 0 && seen[f.Rule] > d.ofARule {
			if more[f.Rule]++; more[f.Rule] == 1 {
				rules = append(rules, f.Rule)
			}
			continue
		}
		d.finding(&b, f)
		for _, a := range f.Assumptions {
			if !slices.Contains(assumed, a) {
				assumed = append(assumed, a)
			}
		}
	}
	d.leftOut(&b, rules, more, hidden)
	if len(assumed) > 0 && d.assumed {
		fmt.Fprintf(&b, "These rest on: %s.\n", strings.Join(assumed, "; "))
	}
	if len(r.Findings) > 0 || b.Len() > 0 {
		b.WriteByte('\n')
	}
	return b.String()
}

// leftOut says which findings are not written.
func (d detail) leftOut(b *bytes.Buffer, rules []string, more map[string]int, hidden int) {
	const most = 4 // that are named, where there is room for all else
	if len(rules) <= most {
		for _, id := range rules {
			rule, _ := lint.RuleOf(id)
			fmt.Fprintf(b, "%d more of %s (%s).\n", more[id], id, rule.Title)
		}
	} else {
		words, n := make([]string, len(rules)), 0
		for i, id := range rules {
			n += more[id]
			if words[i] = id; more[id] > 1 {
				words[i] = fmt.Sprintf("%s × %d", id, more[id])
			}
		}
		fmt.Fprintf(b, "%d more: %s.\n", n, strings.Join(words, ", "))
	}
	if hidden > 0 {
		fmt.Fprintf(b, "%s not shown: notes, what the baseline has, and what files accept.\n", count(hidden, "finding"))
	}
	if hidden+len(rules) > 0 || !d.assumed || d.places < 0 || d.unfixed {
		b.WriteString("--all shows all, with their places and what they rest on.\n")
	}
}

func (d detail) finding(b *bytes.Buffer, f Finding) {
	fmt.Fprintf(b, "%s: %s %s: %s\n", place(f), f.Severity, f.Rule, f.Message)
	for i, rel := range f.Related {
		if d.places < 0 {
			break
		}
		if i == d.places && d.places > 0 {
			fmt.Fprintf(b, "    and %s more\n", count(len(f.Related)-i, "place"))
			break
		}
		fmt.Fprintf(b, "    %s: %s\n", rel.At, rel.Text)
	}
	if f.Fix != "" && !d.unfixed {
		fmt.Fprintf(b, "    fix: %s\n", f.Fix)
	}
	switch f.State {
	case Known:
		b.WriteString("    known: it stands in the baseline\n")
	case Suppressed:
		fmt.Fprintf(b, "    accepted: %s\n", f.Reason)
	}
}

func headText(r *Result) string {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	(&textual{w}).headline(r)
	w.Flush()
	return b.String()
}
