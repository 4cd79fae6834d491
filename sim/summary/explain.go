package summary

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/figures"
	"github.com/abate-go/abate/sim/scenario"
)

// Explain writes what a study of a scenario would rest on, without running it: every setting, given or by default, what
// the model leaves out, the size of a run, the policy of every call as it is in force, and what can be measured. Only
// the variants named are explained; nil means all.
func Explain(w io.Writer, s *scenario.Scenario, variants []string) error {
	p := &page{}
	title := clean(s.Name)
	if s.File != "" {
		title += " (" + clean(s.File) + ")"
	}
	p.line("%s", wrap("", title, textWidth))
	var said []sim.Assumption
	for i := range s.Variants {
		v := &s.Variants[i]
		if variants != nil && !slices.Contains(variants, v.Name) {
			continue
		}
		head := "Variant " + clean(v.Name)
		if about := clean(v.About); about != "" {
			head += ": " + about
		}
		p.line("\n%s", wrap("", head, textWidth))
		size := s.Estimate(v)
		p.line("  a run is about %s events and takes about %s of memory", figures.Thousands(float64(size.Events)),
			memory(size.Bytes))
		said = append(said, p.assumptions(sim.Assumptions(s, v), said)...)
		p.policies(s, v)
	}
	p.list("Not modelled", sim.NotModelled(s))
	p.measures()
	_, err := io.WriteString(w, p.String())
	return err
}

// assumptions writes those that were not said of an earlier variant, and returns them.
func (p *page) assumptions(all, said []sim.Assumption) (more []sim.Assumption) {
	for _, a := range all {
		if slices.Contains(said, a) {
			continue
		}
		more = append(more, a)
		origin := "given"
		if a.Default {
			origin = "default"
		}
		p.line("%s", wrap("  "+figures.Pad(cut(clean(a.Setting)+": "+clean(a.Value), 58), 58)+"  ", origin, textWidth))
		if why := clean(a.Why); why != "" {
			p.line("%s", wrap("      ", why, textWidth))
		}
	}
	if len(more) < len(all) {
		p.line("  all else as said above")
	}
	return more
}

// policies writes the policy of every call; equal ones once.
func (p *page) policies(s *scenario.Scenario, v *scenario.Variant) {
	first, seen := map[string]string{}, map[string]bool{} // policy → edge that has it first; edges
	edge := func(caller string, calls []scenario.Call) {
		for _, c := range calls {
			name := clean(caller + " -> " + c.To)
			if seen[name] {
				continue // called twice
			}
			seen[name] = true
			policy := v.PolicyOf(caller, c.To)
			text := string(policy.Format("policy"))
			if same, ok := first[text]; ok {
				p.line("  policy of %s: as of %s", name, same)
				continue
			}
			first[text] = name
			p.line("  policy of %s:", name)
			for line := range strings.Lines(bodyOf(&policy)) {
				p.line("  %s", clean(strings.TrimRight(line, "\r\n")))
			}
		}
		for _, c := range calls {
			if policy, ok := v.ConnectPolicy(&c); ok && !seen[c.Connect] {
				seen[c.Connect] = true
				for line := range strings.Lines("policy of connections of " + clean(caller+" -> "+c.To) + ":\n" + bodyOf(&policy)) {
					p.line("  %s", clean(strings.TrimRight(line, "\r\n")))
				}
			}
		}
	}
	for i := range s.Clients {
		edge(s.Clients[i].Name, scenario.Edges(s.Clients[i].Calls))
	}
	services := s.ServicesOf(v)
	for i := range services {
		edge(services[i].Name, scenario.Edges(services[i].Calls))
	}
	for line := range strings.Lines(sim.Gates(s, v)) {
		p.line("  %s", clean(strings.TrimRight(line, "\r\n")))
	}
}

// bodyOf is a policy as a policy file has it, without its name.
func bodyOf(p *policyfile.Policy) string {
	_, body, _ := strings.Cut(string(p.Format("policy")), "\n")
	return body
}

func (p *page) list(title string, items []string) {
	if len(items) == 0 {
		return
	}
	p.line("\n%s", title)
	for _, item := range items {
		p.line("%s", wrap("  · ", clean(item), textWidth))
	}
}

// measures writes what expectations can be about.
func (p *page) measures() {
	width := 0
	for _, m := range expect.Measures() {
		width = max(width, utf8.RuneCountInString(m.Form()))
	}
	p.line("\nMeasures that an expectation can name")
	for _, m := range expect.Measures() {
		p.line("%s", wrap("  "+figures.Pad(m.Form(), width)+"  ", m.Meaning+", for example "+m.Example, textWidth))
	}
}

// memory writes a size for people.
func memory(n int64) string {
	v := float64(max(n, 0))
	for _, unit := range []string{"B", "kB", "MB"} {
		if v < 999.5 {
			return figures.Decimals(v, 0) + " " + unit
		}
		v /= 1000
	}
	return figures.Decimals(v, 1) + " GB"
}
