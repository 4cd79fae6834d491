package kafkadrill

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/adapter/abatekafka/embedded"
)

const (
	width     = 79
	lateLimit = 0.15 // seconds behind its own schedule, from which on the drill warns about its numbers
)

// Intro says what is going to happen, and the arithmetic behind it.
func (c Config) Intro(w io.Writer) {
	say := func(format string, args ...any) { fmt.Fprintln(w, wrap(fmt.Sprintf(format, args...))) }
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
	say("%s/s messages are written to each of two topics with %d partitions, the same to both. For each, a consumer calls a service that can do %d workers / %v = %.4g requests/s. After %v both services fail at once, for %v; then all is well again, for %v.",
		fmt.Sprintf("%.4g", c.Rate), c.Partitions, c.Workers, c.ServiceTime, c.Capacity(), c.Before, c.Outage, c.After)
	say("- %s: retry topics after %s, two retries in each delivery, and nothing else. A message that fails for %.3g s is given up, and when the outage is over %d topics deliver at once, up to %.4g attempts/s.",
		Unguarded, strings.Join(tiers, ", "), sum, 1+len(tiers), c.Rate*float64(1+len(tiers))*3)
	say("- %s: the same retry topics, under abate's default policy. While the circuit is open the consumer waits; then it works the backlog off at 1.4 times what was usual.", Guarded)
	fmt.Fprintln(w)
}

// Report writes what came of the drill for people.
func (r *Result) Report(w io.Writer) {
	if r.Interrupted {
		fmt.Fprintf(w, "Stopped before the end. This is what is known so far.\n\n")
	}
	if len(r.Acts) == 0 {
		return
	}
	fmt.Fprintf(w, "%-44s", "")
	for _, a := range r.Acts {
		fmt.Fprintf(w, "%14s", a.Act)
	}
	fmt.Fprintln(w)
	for _, row := range rows {
		fmt.Fprintf(w, "%-44s", row.label)
		for i := range r.Acts {
			fmt.Fprintf(w, "%14s", row.cell(&r.Acts[i]))
		}
		fmt.Fprintln(w)
	}
	top := r.plotTop()
	for i := range r.Acts {
		fmt.Fprintf(w, "\n%s", r.Acts[i].plot(r.Setup, top))
	}
	fmt.Fprintf(w, "\n%s\n", wrap(r.verdict()))
}

// rows are the lines of the table.
var rows = []struct {
	label string
	cell  func(a *ActResult) string
}{
	{"messages written", func(a *ActResult) string { return thousands(a.Written) }},
	{"handled", func(a *ActResult) string { return thousands(a.Handled) }},
	{"  more than once", func(a *ActResult) string { return thousands(a.Twice) }},
	{"dead letters", func(a *ActResult) string { return thousands(a.DeadLetters) }},
	{"left when the drill ended", func(a *ActResult) string { return thousands(a.Left) }},
	{"deliveries per message", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerMessage) }},
	{"attempts at the service", func(a *ActResult) string { return thousands(a.Attempts) }},
	{"  in the busiest second before the outage", func(a *ActResult) string { return thousands(int(a.PeakBefore)) }},
	{"  in the busiest second after it, draining", func(a *ActResult) string { return thousands(int(a.PeakAfter)) }},
	{"  that is, times as many", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.Load) }},
	{"backlog worked off after", func(a *ActResult) string {
		if a.DrainedSeconds == nil {
			return "never"
		}
		return fmt.Sprintf("%.1f s", *a.DrainedSeconds)
	}},
}

// verdict says in words what made the difference.
func (r *Result) verdict() string {
	if r.Interrupted {
		return "Stopped before the end: no verdict."
	}
	var said []string
	for i := range r.Acts {
		a := &r.Acts[i]
		if a.Act == Guarded {
			break
		}
		lost := fmt.Sprintf("%s messages were given up", thousands(a.DeadLetters))
		if a.DrainedSeconds == nil {
			lost += fmt.Sprintf(", %s are still on their way, and the service was kept down by %.1f times its usual load", thousands(a.Left), a.Load)
		}
		said = append(said, fmt.Sprintf("%s: %s.", strings.ToUpper(a.Act[:1])+a.Act[1:], lost))
	}
	if r.Passed {
		a := &r.Acts[len(r.Acts)-1]
		said = append(said, fmt.Sprintf("Guarded: every message was handled once, none was given up, and the drain was %.2f times the usual load at most. PASS.", a.Load))
	} else {
		said = append(said, "Guarded: "+strings.Join(r.Missed, "; ")+". FAIL.")
	}
	if r.LateSeconds > lateLimit {
		said = append(said, fmt.Sprintf("Careful: this machine was busy with other things, and the drill fell up to %.2f s behind its schedule. Take the numbers with care, or play it again.", r.LateSeconds))
	}
	return strings.Join(said, " ")
}

// thousands writes a whole number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// wrap breaks a text into lines.
func wrap(text string) string {
	var out strings.Builder
	column, indent := 0, ""
	if strings.HasPrefix(text, "- ") {
		indent = "  "
	}
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			out.WriteString("\n" + indent)
			column = len(indent)
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String()
}
