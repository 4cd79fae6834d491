package kafkadrill

import (
	"fmt"
	"io"
	"strings"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/figures"
)

// Intro says what is going to happen, and the arithmetic behind it.
func (c Config) Intro(w io.Writer) {
	say := func(format string, args ...any) { fmt.Fprintln(w, drill.Wrap(fmt.Sprintf(format, args...))) }
	if len(c.Brokers) == 0 {
		say("%s", embedded.Notice)
	}
	s := c.setup()
	var tiers []string
	var sum float64
	for _, t := range s.TierSeconds {
		tiers, sum = append(tiers, fmt.Sprintf("%.3g s", t)), sum+t
	}
	sum += float64(1+len(tiers)) * 0.4 // two retries, 200 ms apart, in each delivery
	say("%s/s messages are written to each of two topics with %d partitions, the same to both. For each, a consumer "+
		"calls a service that can do %d workers / %v = %.4g requests/s. After %v both services fail at once, for %v; then "+
		"all is well again, for %v.",
		fmt.Sprintf("%.4g", c.Rate), c.Partitions, c.Workers, c.ServiceTime, c.Capacity(), c.Before, c.Outage, c.After)
	say("- %s: retry topics after %s, two retries in each delivery, and nothing else. A message that fails for %.3g s "+
		"is given up, and when the outage is over %d topics deliver at once, up to %.4g attempts/s.",
		Unguarded, strings.Join(tiers, ", "), sum, 1+len(tiers), c.Rate*float64(1+len(tiers))*3)
	say("- %s: the same retry topics, under abate's default policy. While the circuit is open the consumer waits; then "+
		"it works the backlog off at 1.4 times what was usual.", Guarded)
	fmt.Fprintln(w)
}

// Report writes what came of the drill for people.
func (r *Result) Report(w io.Writer) {
	report := drill.Report{Interrupted: r.Interrupted, Table: table(r.Acts), Capacity: r.Setup.CapacityPerSecond,
		Verdict: r.verdict()}
	for i := range r.Acts {
		a := &r.Acts[i]
		shown := drill.ActReport{Act: a.Act, Plot: a.plot(&r.Setup)}
		for _, e := range a.Expectations {
			shown.Expected = append(shown.Expected, e.Expected)
		}
		report.Acts = append(report.Acts, shown)
	}
	report.Write(w)
}

// Ended reports whether somebody stopped the drill, and whether the guarded act was as expected.
func (r *Result) Ended() (interrupted, passed bool) { return r.Interrupted, r.Passed }

// table returns what can be counted of some acts.
func table(acts []ActResult) string {
	t := new(drill.Table[ActResult])
	count := func(label string, of func(a *ActResult) int) {
		t.Row(label, func(a *ActResult) string { return figures.Thousands(float64(of(a))) })
	}
	t.Row("", func(a *ActResult) string { return a.Act })
	count("messages written", func(a *ActResult) int { return a.Written })
	count("handled", func(a *ActResult) int { return a.Handled })
	count("  more than once", func(a *ActResult) int { return a.Twice })
	count("dead letters", func(a *ActResult) int { return a.DeadLetters })
	count("left when the drill ended", func(a *ActResult) int { return a.Left })
	t.Row("deliveries per message", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerMessage) })
	count("attempts at the service", func(a *ActResult) int { return a.Attempts })
	count("  in the busiest second before the outage", func(a *ActResult) int { return int(a.PeakBefore) })
	count("  in the busiest second after it, draining", func(a *ActResult) int { return int(a.PeakAfter) })
	t.Row("  that is, times as many", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.Load) })
	t.Row("backlog worked off after", func(a *ActResult) string {
		if a.DrainedSeconds == nil {
			return "never"
		}
		return fmt.Sprintf("%.1f s", *a.DrainedSeconds)
	})
	return t.Text(acts)
}

// plot shows the course of an act, a column per second.
func (a *ActResult) plot(s *Setup) drill.Plot {
	p := drill.Plot{
		Done: "messages handled", BinSeconds: 1, From: s.BeforeSeconds, To: s.BeforeSeconds + s.OutageSeconds,
		Note: fmt.Sprintf("outage of %.3g s", s.OutageSeconds),
	}
	for _, b := range a.Series {
		p.Columns = append(p.Columns, drill.Column{Attempts: float64(b.Attempts), Done: float64(b.Handled)})
	}
	return p
}

// verdict says in words what made the difference.
func (r *Result) verdict() string {
	var stories []drill.Story
	for i := range r.Acts {
		a := &r.Acts[i]
		text := drill.Capitalized(a.Act) + ": "
		switch {
		case a.Act != Guarded:
			text += figures.Thousands(float64(a.DeadLetters)) + " messages were given up"
			if a.DrainedSeconds == nil {
				text += fmt.Sprintf(", %s are still on their way, and the service was kept down by %.1f times its usual load",
					figures.Thousands(float64(a.Left)), a.Load)
			}
			text += "."
		case r.Passed:
			text += fmt.Sprintf("every message was handled once, none was given up, and the drain was %.2f times the usual "+
				"load at most. PASS.", a.Load)
		default:
			text += strings.Join(r.Missed, "; ") + ". FAIL."
		}
		stories = append(stories, drill.Story{Act: a.Act, Text: text, LateSeconds: a.late})
	}
	return drill.Verdict(r.Interrupted, stories)
}
