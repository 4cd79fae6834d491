package summary

import (
	"io"
	"strings"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

// Markdown writes results in five lines of GitHub-flavoured Markdown, for a pull request: the verdict, what was run,
// what failed, what is undecided or passed, and how to see more.
func Markdown(w io.Writer, results []*sim.Result) error {
	lines := [5]string{headline(results), counted(results), listed(results, sim.Fail, "Failed"), "", again(results)}
	if lines[3] = listed(results, sim.Undecided, "Undecided"); strings.HasSuffix(lines[3], ": none") {
		lines[3] = listed(results, sim.Pass, "Passed")
	}
	_, err := io.WriteString(w, strings.Join(lines[:], "\n- ")+"\n")
	return err
}

// headline is the verdict on everything.
func headline(results []*sim.Result) string {
	var all []sim.VariantResult
	interrupted := false
	for _, r := range results {
		all = append(all, r.Variants...)
		interrupted = interrupted || r.Interrupted
	}
	mark := map[string]string{sim.Pass: "✅ ", sim.Fail: "❌ ", sim.Undecided: "❓ "}[overall(results)]
	text := "**" + mark + "abate sim: " + overall(results) + "**"
	if overall(results) == sim.None {
		text = "**abate sim: no expectations**"
	}
	if counted := tallyOf(all).String(); counted != "" {
		text += " (expectations: " + counted + ")"
	}
	if overall(results) == sim.Pass {
		text += beside(results)
	}
	if interrupted {
		text += ", stopped before the end"
	}
	return text
}

// run says what the results are about.
func counted(results []*sim.Result) string {
	var names []string
	runs := 0
	for _, r := range results {
		names = append(names, code(nameOf(r)))
		for i := range r.Variants {
			runs += r.Variants[i].Runs
		}
	}
	text := "Played " + several(names) + ", " + plural(runs, "run")
	if len(results) != 1 {
		return text
	}
	var faults []string
	for _, f := range results[0].Faults {
		faults = append(faults, code(clean(span(f)+f.Text)))
	}
	if len(faults) > 0 {
		text += "; faults: " + several(faults)
	}
	if results[0].Scale > 1 {
		text += "; scaled down by " + figures.Thousands(float64(results[0].Scale))
	}
	return text
}

// listed names the expectations with one verdict.
func listed(results []*sim.Result, verdict, title string) string {
	var found []string
	for _, r := range results {
		for i := range r.Variants {
			v := &r.Variants[i]
			for j := range v.Expectations {
				e := &v.Expectations[j]
				if e.Verdict != verdict {
					continue
				}
				found = append(found, variantName(results, r, v)+" "+code(clean(e.Text))+" "+shortEvidence(e))
			}
		}
	}
	return title + ": " + several(found)
}

// variantName names a variant, and its scenario where there are several.
func variantName(results []*sim.Result, r *sim.Result, v *sim.VariantResult) string {
	if len(results) > 1 {
		return code(nameOf(r) + ", " + clean(v.Name))
	}
	return code(clean(v.Name))
}

// again says what would help, or how far the cliff is, or how to see more.
func again(results []*sim.Result) string {
	margin := ""
	for _, r := range results {
		for i := range r.Variants {
			v := &r.Variants[i]
			if len(v.Advice) > 0 {
				return "Advice for " + variantName(results, r, v) + ": " + code(clean(v.Advice[0].Change))
			}
			if len(v.Margins) > 0 && margin == "" {
				margin = "Margin of " + variantName(results, r, v) + ": " + code(clean(v.Margins[0].Text))
			}
		}
	}
	switch {
	case margin != "":
		return margin
	case len(results) == 1 && results[0].File != "":
		return "More: " + code("abate sim "+clean(results[0].File))
	}
	return "More: " + code("abate sim")
}

// several joins what is listed, at most five of it.
func several(items []string) string {
	const most = 5
	more := len(items) - most
	switch {
	case len(items) == 0:
		return "none"
	case more > 0:
		return strings.Join(items[:most], "; ") + "; and " + figures.Thousands(float64(more)) + " more"
	}
	return strings.Join(items, "; ")
}

// code puts text of a user's into a code span, where GitHub reads no markup, no HTML, no mention and no link. The fence
// is longer than any row of backticks in the text.
func code(text string) string {
	longest, row := 0, 0
	for _, r := range text {
		if row++; r != '`' {
			row = 0
		}
		longest = max(longest, row)
	}
	fence := strings.Repeat("`", longest+1)
	if text == "" || strings.Trim(text, " ") == "" {
		return fence + "?" + fence
	}
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}
