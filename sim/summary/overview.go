package summary

import (
	"io"
	"unicode/utf8"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

// Overview writes several results for people, one line per scenario and variant and a last one that counts them. It is
// at most 100 columns wide.
func Overview(w io.Writer, results []*sim.Result, o Options) error {
	p := &page{color: o.Color}
	scenario, variant, verdict := 0, 0, 0
	for _, r := range results {
		scenario = max(scenario, utf8.RuneCountInString(nameOf(r)))
		for i := range r.Variants {
			variant = max(variant, utf8.RuneCountInString(clean(r.Variants[i].Name)))
			verdict = max(verdict, utf8.RuneCountInString(verdictWord(r.Variants[i].Shown())))
		}
	}
	scenario, variant = min(scenario, 28), min(variant, 20)
	for _, r := range results {
		name := cut(nameOf(r), scenario)
		for i := range r.Variants {
			v := &r.Variants[i]
			head := figures.Pad(name, scenario) + "  " + figures.Pad(cut(clean(v.Name), variant), variant) + "  "
			width := textWidth - utf8.RuneCountInString(head) - verdict - 2
			p.line("%s%s  %s", head, p.paint(v.Shown(), figures.Pad(verdictWord(v.Shown()), verdict)),
				cut(inShort(r, v, width), width))
			name = ""
		}
		if len(r.Variants) == 0 {
			p.line("%s  nothing was run", figures.Pad(name, scenario))
		}
	}
	p.uncovered(results)
	p.verdicts(results)
	_, err := io.WriteString(w, p.String())
	return err
}

// inShort is one variant in a few words: what is wrong, or else how it went. What does not fit is left out, the number
// of runs first.
func inShort(r *sim.Result, v *sim.VariantResult, width int) string {
	if v.Runs == 0 {
		return "not run"
	}
	for _, verdict := range []string{sim.Fail, sim.Undecided} {
		for i := range v.Expectations {
			if e := &v.Expectations[i]; e.Verdict == verdict {
				return clean(e.Text) + " " + shortEvidence(e)
			}
		}
	}
	text := "collapsed " + percent(v.Collapse.Share)
	if r.TroubleTo > r.TroubleFrom {
		if visible := measureCell(v, "userVisible"); visible != nothing {
			text += ", users see " + visible
		}
		for _, more := range []string{", recovery " + recoveryCell(v), ", " + plural(v.Runs, "run")} {
			if utf8.RuneCountInString(text+more) <= width {
				text += more
			}
		}
		return text
	}
	return text + ", " + plural(v.Runs, "run")
}

// shortEvidence is the number that decided, or what is missing yet.
func shortEvidence(e *sim.ExpectationResult) string {
	switch n := moreRuns(e); {
	case e.Runs == 0:
		return "(not run)"
	case n > 0:
		return "(about " + plural(n, "more run") + " needed)"
	case measureOf(e.Text) == "collapse":
		return "(collapsed " + percent(e.Held95.Share) + ")"
	}
	return "(held in " + percent(e.Held95.Share) + ")"
}

// verdicts counts scenarios and variants.
func (p *page) verdicts(results []*sim.Result) {
	var variants tally
	for _, r := range results {
		for i := range r.Variants {
			variants.add(r.Variants[i].Verdict)
		}
	}
	p.line("\n%s", wrap("", plural(len(results), "scenario")+"; variants: "+orNone(variants.String()), textWidth))
	p.last(results)
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
