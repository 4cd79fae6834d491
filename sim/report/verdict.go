package report

import (
	"strings"
	"unicode"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/expect"
	"github.com/abate-go/abate/sim/figures"
)

// badge is a verdict as symbol, colour and word, never one alone.
type badge struct{ Class, Word string }

// badgeOf returns the badge of a verdict of a Result.
func badgeOf(verdict string) badge {
	switch verdict {
	case "PASS":
		return badge{"pass", "PASS"}
	case "FAIL":
		return badge{"fail", "FAIL"}
	case "UNDECIDED":
		return badge{"open", "UNDECIDED"}
	case sim.AsExpected:
		return badge{"storm", verdict}
	}
	return badge{"none", "NOT JUDGED"}
}

// card is one variant in one look.
type card struct {
	ID, Name, About string
	Badge           badge
	Rules           []ruling
	Own             []ruling // those that not all variants have, for an overview
	Facts           []fact
	Spark           *chart
	Advice          string // the smallest change that makes it pass
	Nothing         string // or what the search for one came to
	NotCovered      []string
}

// ruling is the verdict on one expectation.
type ruling struct {
	Badge      badge
	Text, Held string
	Short      string // Held in fewer words
	Value      string
}

// fact is a number with its name.
type fact struct {
	Name, Value, Small string
	Share              *interval // drawn as a mark with its interval
}

// interval is a share from 0 to 100 with its 95 % interval, in percent of a small drawing.
type interval struct{ At, Low, Width string }

// newCard builds the card of a variant.
func (v *view) newCard() card {
	c := card{ID: v.ID, Name: v.variant.Name, About: v.variant.About, Badge: badgeOf(v.variant.Shown())}
	for i := range v.variant.Expectations {
		c.Rules = append(c.Rules, newRuling(&v.variant.Expectations[i]))
	}
	c.Facts, c.NotCovered = v.facts(), v.variant.NotCovered
	if len(v.variant.Advice) > 0 {
		c.Advice = v.variant.Advice[0].Change
	} else if v.variant.AdviceSearch != nil {
		c.Nothing = v.variant.AdviceSearch.Text
	}
	return c
}

func newRuling(e *sim.ExpectationResult) ruling {
	r := ruling{Badge: badgeOf(e.Verdict), Text: e.Text}
	r.Short = figures.Thousands(float64(e.Held)) + " of " + plural(e.Runs, "run", "runs")
	if e.Runs > 0 {
		r.Held = "held in " + r.Short + " (95" + space + "% interval " + between(e.Held95) + ")"
	}
	never := nothing
	switch measure := measureOf(e.Text); measure {
	case "collapse": // whose interval is that of the share that collapsed, in the terms of the expectation
		r.Held = "held in " + r.Short + "; P(collapse) " + between(e.Held95)
	case "recovery", "drained":
		never = "never"
		fallthrough
	default:
		r.Value = "median" + space + maybe(e.Value.P50, unitOf(measure), never)
	}
	if e.Verdict == "UNDECIDED" && r.Value != "" {
		r.Held += "; needs " + percent(e.Needed)
	}
	if e.Where != "" {
		r.Held += "; " + e.Where
	}
	if e.Unmeasured > 0 {
		r.Held += "; could not be measured in " + figures.Thousands(float64(e.Unmeasured))
	}
	return r
}

// between writes a 95 % interval.
func between(s sim.Share) string {
	low, high := percent(s.Low), percent(s.High)
	return strings.TrimSuffix(low, space+"%") + "–" + wordJoiner + high
}

// measureOf returns what an expectation measures: goodput of "goodput(after) > 95%".
func measureOf(text string) string {
	if end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		return text[:end]
	}
	return text
}

// unitOf returns the unit of a measure.
func unitOf(measure string) string {
	for _, m := range expect.Measures() {
		if m.Name == measure {
			switch m.Kind {
			case expect.Count:
				return unitCount
			case expect.Share:
				return unitShare
			case expect.Duration:
				return unitTime
			case expect.Rate:
				return unitRate
			}
		}
	}
	return unitNone
}

// facts are the numbers that a card shows.
func (v *view) facts() []fact {
	r := v.variant
	share := r.Collapse
	facts := []fact{{Name: "P(collapse)", Value: percent(share.Share), Small: "95" + space + "% interval " +
		between(share), Share: &interval{
		At: place(share.Share), Low: place(share.Low), Width: place(share.High - share.Low)}}}
	if where := byFleet(r, func(f *sim.FleetResult) string { return percent(f.Collapse.Share) }); where != "" {
		facts[0].Small += "; " + where
	}
	if m, where := v.worstAmplification(); m != nil {
		facts = append(facts, fact{Name: "Amplification", Value: maybe(m.Value.P50, unitTimes, nothing),
			Small: where + ", p95" + space + maybe(m.Value.P95, unitTimes, nothing)})
	}
	if v.stage.trouble() {
		facts = append(facts, v.recoveryFact())
	}
	if m := v.measure("goodput(after)"); m != nil {
		facts = append(facts, fact{Name: "Goodput after", Value: maybe(m.Value.P50, unitShare, nothing),
			Small: "p5" + space + maybe(m.Value.P05, unitShare, nothing)})
	}
	return append(facts, v.marginFact())
}

// byFleet says a number of each of several fleets; nothing for one.
func byFleet(r *sim.VariantResult, number func(f *sim.FleetResult) string) string {
	const most = 5
	var parts []string
	for i := range r.Fleets {
		if f := &r.Fleets[i]; i < most {
			parts = append(parts, f.Name+space+number(f))
		}
	}
	if more := len(r.Fleets) - most; more > 0 {
		parts = append(parts, "and "+plural(more, "more fleet", "more fleets"))
	}
	return strings.Join(parts, ", ")
}

// measure returns a measure by name, nil when there is none.
func (v *view) measure(name string) *sim.Measure {
	for i := range v.variant.Measures {
		if v.variant.Measures[i].Name == name {
			return &v.variant.Measures[i]
		}
	}
	return nil
}

// worstAmplification returns the highest amplification of all services over the whole run.
func (v *view) worstAmplification() (worst *sim.Measure, service string) {
	for i := range v.variant.Measures {
		m := &v.variant.Measures[i]
		name, ok := strings.CutPrefix(m.Name, "amplification(")
		if !ok || m.Value.P50 == nil || strings.Contains(name, ",") {
			continue
		}
		if worst == nil || *m.Value.P50 > *worst.Value.P50 {
			worst, service = m, strings.TrimSuffix(name, ")")
		}
	}
	return worst, service
}

func (v *view) recoveryFact() fact {
	times, runs := v.variant.Recovery, v.variant.Runs
	f := fact{Name: "Recovery", Value: "never"}
	quantile := func(percent int) string { return recovered(times, runs, percent) }
	switch {
	case runs == v.variant.NoRecovery: // nothing to recover to
		f.Value = nothing
	case len(times) > 0:
		f.Value = quantile(50)
		f.Small = "p99" + space + quantile(99)
		if len(times) < runs {
			f.Small = "in " + percent(float64(len(times))/float64(runs)) + " of runs, p99" + space + quantile(99)
		}
	default:
		f.Small = "in none of " + plural(runs, "run", "runs")
	}
	where := byFleet(v.variant, func(f *sim.FleetResult) string {
		if f.NoRecovery == runs {
			return nothing
		}
		return recovered(f.Recovery, runs, 50)
	})
	switch {
	case where != "" && f.Small != "":
		f.Small += "; " + where
	case where != "":
		f.Small = where
	}
	return f
}

// recovered is a quantile of the times to recovery: the same rank as in the terminal and in the measures.
func recovered(times []float64, runs, percent int) string {
	if i := (runs*percent+99)/100 - 1; i >= 0 && i < len(times) {
		return seconds(times[i])
	}
	return "never"
}

// marginFact puts the distances to the cliff into one line.
func (v *view) marginFact() fact {
	var parts []string
	for i := range v.variant.Margins {
		m := &v.variant.Margins[i]
		if m.Here <= 0 || !figures.Finite(m.Here) {
			continue
		}
		name := m.Dimension
		if m.Fleet != "" {
			name += " of " + m.Fleet
		}
		parts = append(parts, name+space+distance(m))
	}
	if parts == nil {
		return fact{Name: "Margin", Value: nothing, Small: "not searched"}
	}
	f := fact{Name: "Margin", Value: parts[0]}
	if len(parts) > 1 {
		f.Small = strings.Join(parts[1:], ", ")
	}
	return f
}

// distance says how far it is to the cliff, as a factor of what is there: the furthest that was seen to stand. Capacity
// is the one dimension in which less is harder.
func distance(m *sim.Margin) string {
	safe, far, near := m.Low/m.Here, m.High/m.Here, m.Low/m.Here
	word, away := "only up to ", "beyond "
	if m.Dimension == "capacity" {
		safe, far, near = far, near, far
		word, away = "needs ", "below "
	}
	switch {
	case m.Beyond && m.Stands:
		return away + number(far) + space + "×"
	case m.Beyond:
		return "not even at " + number(near) + space + "×"
	case !m.Stands:
		return word + number(safe) + space + "×"
	}
	return number(safe) + space + "×"
}

// sentence sums up the verdicts of all variants.
func sentence(r *sim.Result) string {
	var names [4][]string  // pass, fail, open, none
	var collapsed []string // as they should
	for i := range r.Variants {
		v := &r.Variants[i]
		at := map[string]int{"PASS": 0, "FAIL": 1, "UNDECIDED": 2}
		k, ok := at[v.Verdict]
		if !ok {
			k = 3
		}
		if v.Shown() == sim.AsExpected {
			collapsed = append(collapsed, "“"+v.Name+"”")
			continue
		}
		names[k] = append(names[k], "“"+v.Name+"”")
	}
	if len(r.Variants) == 0 {
		return "Nothing was run."
	}
	if len(r.Variants) == 1 {
		return only(&r.Variants[0])
	}
	var parts []string
	for _, group := range []struct {
		names     []string
		one, more string
	}{
		{names[1], "fails", "fail"}, {names[2], "needs more runs to be decided", "need more runs to be decided"},
		{names[0], "holds every expectation", "hold every expectation"},
		{names[3], "has no expectations", "have no expectations"},
		{collapsed, "collapses, as it should", "collapse, as they should"},
	} {
		switch len(group.names) {
		case 0:
		case 1:
			parts = append(parts, group.names[0]+" "+group.one)
		default:
			parts = append(parts, list(group.names)+" "+group.more)
		}
	}
	return strings.Join(parts, "; ") + "."
}

// only sums up a single variant.
func only(v *sim.VariantResult) string {
	count := map[string]int{}
	for i := range v.Expectations {
		count[v.Expectations[i].Verdict]++
	}
	all := plural(len(v.Expectations), "expectation", "expectations")
	switch {
	case len(v.Expectations) == 0:
		return "The scenario has no expectations; this is what happened."
	case v.Shown() == sim.AsExpected:
		return "It collapses, as it should."
	case count["PASS"] == 1 && len(v.Expectations) == 1:
		return "The one expectation holds."
	case count["PASS"] == len(v.Expectations):
		return "All " + all + " hold."
	case count["FAIL"] > 0:
		return plural(count["FAIL"], "expectation", "expectations") + " of " +
			figures.Thousands(float64(len(v.Expectations))) + " not met."
	}
	return figures.Thousands(float64(count["UNDECIDED"])) + " of " + all +
		" could not be decided by the runs that were made."
}
