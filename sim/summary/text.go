package summary

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

// textWidth is how many columns text takes at most.
const textWidth = 100

// Options say how text is written. The zero value is for a file.
type Options struct {
	Color bool // verdicts in colour, by ANSI escape sequences
}

// page is text being written.
type page struct {
	strings.Builder
	color bool
}

func (p *page) line(format string, args ...any) {
	p.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// paint colours a verdict, padded as it may be. The word says it, too: colour is never alone.
func (p *page) paint(verdict, text string) string {
	code := map[string]string{sim.Pass: "32", sim.Fail: "1;31", sim.Undecided: "33", sim.AsExpected: "35"}[verdict]
	if !p.color || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Text writes one result for people, at most 100 columns wide: what goes wrong, a table with a column per variant,
// every expectation, margins and advice, a chart of the first variant and one that fails, or the last, and the verdict.
func Text(w io.Writer, r *sim.Result, o Options) error {
	p := &page{color: o.Color}
	p.head(r)
	p.table(r)
	for i := range r.Variants {
		p.variant(&r.Variants[i])
	}
	p.charts(r)
	p.last([]*sim.Result{r})
	_, err := io.WriteString(w, p.String())
	return err
}

// head says what was run.
func (p *page) head(r *sim.Result) {
	if r.Interrupted {
		p.line("Stopped before the end. This is what is known so far.\n")
	}
	title := nameOf(r)
	if about := clean(r.About); about != "" {
		title += ": " + about
	}
	p.line("%s", wrap("", title, textWidth))
	for _, f := range r.Faults {
		p.line("%s", wrap("  · ", span(f)+clean(f.Text), textWidth))
	}
	if r.Scale > 1 {
		p.line("%s", wrap("", fmt.Sprintf("Scaled down by %s: rates, instances and capacities are divided by it, which "+
			"makes chance larger.",
			figures.Thousands(float64(r.Scale))), textWidth))
	}
	p.line("%s of virtual time a run, from seed %d.", seconds(r.Seconds), r.Seed)
}

// span is when a fault lasts.
func span(f sim.FaultText) string {
	if f.To <= f.From {
		return "at " + seconds(f.From) + ": "
	}
	return seconds(f.From) + " to " + seconds(f.To) + ": "
}

// row is a line of the table.
type row struct {
	label string
	cell  func(v *sim.VariantResult) string
}

// table compares the variants, as many side by side as fit.
func (p *page) table(r *sim.Result) {
	const widest, gap = 22, 2
	rows := tableRows(r)
	label := 0
	for _, row := range rows {
		label = max(label, utf8.RuneCountInString(row.label))
	}
	label = min(label, 40)
	for rest := r.Variants; len(rest) > 0; {
		var widths []int
		used := label
		for i := range rest {
			width := utf8.RuneCountInString(clean(rest[i].Name))
			for _, row := range rows {
				width = max(width, utf8.RuneCountInString(row.cell(&rest[i])))
			}
			width = min(width, widest)
			if used += gap + width; used > textWidth {
				break
			}
			widths = append(widths, width)
		}
		p.block(rest[:len(widths)], rows, label, gap, widths)
		rest = rest[len(widths):]
	}
}

func (p *page) block(variants []sim.VariantResult, rows []row, label, gap int, widths []int) {
	line := func(name string, cell func(v *sim.VariantResult) string) {
		text := figures.Pad(cut(name, label), label)
		for i := range variants {
			content := cell(&variants[i])
			text += strings.Repeat(" ", gap) + p.paint(content, figures.PadLeft(cut(content, widths[i]), widths[i]))
		}
		p.line("%s", text)
	}
	p.line("")
	heads := make([]string, len(variants))
	for i := range variants {
		// unpainted: a variant may be called PASS
		heads[i] = figures.PadLeft(cut(clean(variants[i].Name), widths[i]), widths[i])
	}
	p.line("%s%s%s", strings.Repeat(" ", label), strings.Repeat(" ", gap), strings.Join(heads, strings.Repeat(" ", gap)))
	for _, row := range rows {
		line(row.label, row.cell)
	}
}

// tableRows are the lines of the table: what all studies have, then the standard measures that say how bad it got.
func tableRows(r *sim.Result) []row {
	rows := []row{
		{"verdict", func(v *sim.VariantResult) string { return verdictWord(v.Shown()) }},
		{"runs", func(v *sim.VariantResult) string { return figures.Thousands(float64(v.Runs)) }},
		{"collapsed", func(v *sim.VariantResult) string {
			if v.Runs == 0 {
				return nothing
			}
			return interval(v.Collapse)
		}},
	}
	for _, name := range fleetNames(r) {
		rows = append(rows, row{"collapsed(" + clean(name) + ")", func(v *sim.VariantResult) string {
			if f := fleetOf(v, name); f != nil && f.Judged > 0 {
				return interval(f.Collapse)
			}
			return nothing
		}})
	}
	if r.TroubleTo > r.TroubleFrom {
		rows = append(rows, row{"recovery p50 / p99", recoveryCell})
		for _, name := range fleetNames(r) {
			rows = append(rows, row{"recovery(" + clean(name) + ")", func(v *sim.VariantResult) string {
				if f := fleetOf(v, name); f != nil {
					return recoveryText(f.Recovery, v.Runs, f.NoRecovery)
				}
				return nothing
			}})
		}
	}
	for _, group := range []string{"userVisible", "goodput", "amplification", "yield", "shed", "hits", "replicas",
		"restarts", "deadLetters", "lag", "drained", "load"} {
		for _, name := range measureNames(r, group) {
			rows = append(rows, row{clean(name), func(v *sim.VariantResult) string { return measureCell(v, name) }})
		}
	}
	return rows
}

// measureNames are the standard measures of one kind, in the order of the results. Of what is measured per service only
// the number for the whole run is shown: the table has a line for each service as it is.
func measureNames(r *sim.Result, group string) []string {
	var names []string
	for i := range r.Variants {
		for _, m := range r.Variants[i].Measures {
			_, last, window := strings.Cut(m.Name, ", ")                        // load is only measured afterwards
			window = window && group != "load" && last != strings.ToUpper(last) // which is a priority
			if measureOf(m.Name) == group && !window && !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// measureCell is the median of a measure.
func measureCell(v *sim.VariantResult, name string) string {
	for _, m := range v.Measures {
		if m.Name == name {
			return quantity(m.Value.P50, m.Unit, neverWord(measureOf(name)))
		}
	}
	return nothing
}

// fleetNames are the fleets that results tell apart.
func fleetNames(r *sim.Result) []string {
	var names []string
	for i := range r.Variants {
		for _, f := range r.Variants[i].Fleets {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// fleetOf is how a fleet fared; nil where the variant has no such fleet.
func fleetOf(v *sim.VariantResult, name string) *sim.FleetResult {
	for i := range v.Fleets {
		if v.Fleets[i].Name == name {
			return &v.Fleets[i]
		}
	}
	return nil
}

// recoveryCell is how long recovery takes.
func recoveryCell(v *sim.VariantResult) string { return recoveryText(v.Recovery, v.Runs, v.NoRecovery) }

// recoveryText is the median and the 99th percentile of the times to recovery, counting the runs that never recovered
// as longer than all others.
func recoveryText(times []float64, runs, unmeasured int) string {
	if runs == unmeasured { // nothing to recover to
		return nothing
	}
	quantile := func(percent int) string {
		if at := (runs*percent+99)/100 - 1; at < len(times) {
			return seconds(times[at])
		}
		return "never"
	}
	return quantile(50) + " / " + quantile(99)
}

func verdictWord(verdict string) string {
	if rank(verdict) == 0 && verdict != sim.AsExpected {
		return nothing
	}
	return verdict
}

// variant lists the expectations of one variant, its margins and what would help.
func (p *page) variant(v *sim.VariantResult) {
	if len(v.Expectations)+len(v.Margins)+len(v.Advice)+len(v.Notes)+len(v.NotCovered) == 0 && v.AdviceSearch == nil {
		return
	}
	title := clean(v.Name)
	if about := clean(v.About); about != "" {
		title += ": " + about
	}
	p.line("\n%s", wrap("", title, textWidth))
	for i := range v.Expectations {
		p.expectation(&v.Expectations[i])
	}
	for _, n := range v.NotCovered {
		p.line("%s", wrap("  uncovered  ", clean(n), textWidth))
	}
	for _, n := range v.Notes {
		p.line("%s", wrap("  note       ", clean(n), textWidth))
	}
	for _, m := range v.Margins {
		p.line("%s", wrap("  margin     ", clean(m.Text), textWidth))
	}
	p.advice(v)
}

// advice lists what would help, whole, so that it can be pasted, or says what came closest.
func (p *page) advice(v *sim.VariantResult) {
	for _, a := range v.Advice {
		p.line("%s", wrap("  advice     ", fmt.Sprintf("%s: %s, held in %s of %s", clean(a.Change), clean(a.Verdict),
			percent(a.Held), plural(a.Runs, "fresh run")), textWidth))
		p.piece(a.YAML)
	}
	if search := v.AdviceSearch; search != nil {
		p.line("%s", wrap("  advice     ", clean(search.Text), textWidth))
		if search.Closest != nil {
			p.piece(search.Closest.YAML)
		}
	}
}

// piece writes a piece of a file as it is: a line that is cut or wrapped cannot be pasted.
func (p *page) piece(yaml string) {
	for line := range strings.Lines(strings.TrimSpace(yaml)) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		p.line("%15s%s%s", "", strings.Repeat(" ", indent), clean(strings.TrimSpace(line)))
	}
}

// expectation writes the verdict on one expectation and, beside it or below, what it rests on.
func (p *page) expectation(e *sim.ExpectationResult) {
	const verdicts, texts = 13, 31
	text := clean(e.Text)
	head := "  " + p.paint(e.Verdict, figures.Pad(verdictWord(e.Verdict), verdicts-4)) + "  "
	if utf8.RuneCountInString(text) > texts {
		p.line("%s%s", head, cut(text, textWidth-verdicts))
		p.line("%s", wrap(strings.Repeat(" ", verdicts), evidence(e), textWidth))
		return
	}
	beside := wrap(strings.Repeat(" ", verdicts+texts+2), evidence(e), textWidth)
	p.line("%s%s  %s", head, figures.Pad(text, texts), strings.TrimLeft(beside, " "))
}

// evidence is what a verdict rests on.
func evidence(e *sim.ExpectationResult) string {
	if e.Runs == 0 {
		return "not run"
	}
	measure, about := measureOf(e.Text), "held in"
	if measure == "collapse" {
		about = "collapsed:"
	}
	text := about + " " + interval(e.Held95) + " of " + plural(e.Runs, "run")
	if measure != "collapse" {
		text += "; median " + quantity(e.Value.P50, unitOf(e.Text), neverWord(measure))
	}
	if e.Where != "" {
		text += "; " + clean(e.Where)
	}
	if e.Unmeasured > 0 {
		text += "; not measurable in " + figures.Thousands(float64(e.Unmeasured))
	}
	if e.Verdict == sim.Undecided {
		text += "; " + wanted(e)
	}
	return text
}

// wanted says what would decide an undecided expectation.
func wanted(e *sim.ExpectationResult) string {
	if n := moreRuns(e); n > 0 {
		return "about " + plural(n, "more run") + " would decide if the share stays (--seeds " + fmt.Sprint(e.Runs+n) + ")"
	}
	return "too close to decide by more runs"
}

// Last writes the last line of [Text] and [Overview] alone: the verdict, what it counts, and the exit code.
func Last(w io.Writer, results []*sim.Result, o Options) error {
	p := &page{color: o.Color}
	p.last(results)
	_, err := io.WriteString(w, strings.TrimPrefix(p.String(), "\n"))
	return err
}

// last is the verdict and what the exit code means.
func (p *page) last(results []*sim.Result) {
	var all []sim.VariantResult
	for _, r := range results {
		all = append(all, r.Variants...)
	}
	verdict, code := overall(results), ExitCode(results)
	text := "no expectations, so nothing to judge"
	if counted := tallyOf(all).String(); counted != "" {
		text = "expectations: " + counted
	}
	if n := len(uncovered(results)); n > 0 && verdict == sim.Pass {
		text += "; " + plural(n, "thing") + " not covered, see above"
	}
	if code == ExitInterrupted {
		text = "stopped before the end; " + text
	}
	head := ""
	if rank(verdict) > 0 {
		head = p.paint(verdict, verdict) + "  "
	}
	p.line("\n%s%s (exit code %d)", head, text, code)
}
