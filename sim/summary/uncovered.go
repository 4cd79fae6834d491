package summary

import (
	"strings"

	"github.com/abate-go/abate/sim"
)

// uncoverage is something that verdicts do not cover, and of which variants.
type uncoverage struct {
	text     string
	variants []string
}

// uncovered lists what the verdicts do not cover, the same thing once.
func uncovered(results []*sim.Result) []uncoverage {
	var list []uncoverage
	at := map[string]int{}
	for _, r := range results {
		for i := range r.Variants {
			v := &r.Variants[i]
			for _, text := range v.NotCovered {
				k, known := at[text]
				if !known {
					k = len(list)
					at[text] = k
					list = append(list, uncoverage{text: text})
				}
				name := clean(v.Name)
				if len(results) > 1 {
					name = nameOf(r) + ", " + name
				}
				list[k].variants = append(list[k].variants, name)
			}
		}
	}
	return list
}

// uncovered writes what the verdicts do not cover, below the lines of an overview.
func (p *page) uncovered(results []*sim.Result) {
	list := uncovered(results)
	if len(list) == 0 {
		return
	}
	const most, named = 12, 2
	p.line("\nNot covered by these verdicts:")
	for i, u := range list {
		if i == most {
			p.line("  · and %s", plural(len(list)-most, "more thing"))
			break
		}
		where := strings.Join(u.variants, "; ")
		if len(u.variants) > named {
			where = plural(len(u.variants), "variant")
		}
		p.line("%s", wrap("  · ", clean(u.text)+" ("+where+")", textWidth))
	}
}

// beside is what stands beside a PASS on one line: the first thing that it does not cover, and how many more there are.
func beside(results []*sim.Result) string {
	list := uncovered(results)
	if len(list) == 0 {
		return ""
	}
	text := "; not covered: " + code(clean(list[0].text))
	if more := len(list) - 1; more > 0 {
		text += " and " + plural(more, "more thing")
	}
	return text
}
