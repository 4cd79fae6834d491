package drill

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/scenario"
)

// Intro says what is going to happen, and the arithmetic behind it.
func (c Config) Intro(w io.Writer) {
	say := func(format string, args ...any) {
		text := wrap(fmt.Sprintf(format, args...), 77)
		if strings.HasPrefix(text, "- ") {
			text = strings.ReplaceAll(text, "\n", "\n  ")
		}
		fmt.Fprintln(w, text)
	}
	setup, a := c.setup(), c.cast(c.variant(c.Acts[0]))
	queue := "refuses what it cannot work on at once"
	if a.places() > 0 {
		queue = fmt.Sprintf("queues up to %s more: %s of work", thousands(float64(a.places())), seconds(a.queueTime().Seconds()))
	}
	say("%s on 127.0.0.1 can do %d workers / %v = %s requests/s, and %s. %d clients offer it %s/s, on schedule whatever happens. After %s %s; then all is well again, for %s.",
		a.service().Name, a.service().Workers, a.work(), thousands(a.capacity()), queue, setup.Clients, thousands(setup.OfferedPerSecond),
		seconds(setup.BeforeSeconds), setup.Trouble, seconds(setup.AfterSeconds))
	for _, name := range c.Acts {
		say("- %s", c.actIntro(c.variant(name)))
	}
	for _, note := range setup.Notes {
		say("Note: %s.", note)
	}
	fmt.Fprintln(w)
}

// actIntro says what the clients of an act do.
func (c Config) actIntro(v *scenario.Variant) string {
	a := c.cast(v)
	text := v.Name
	switch {
	case c.Policy != "" && v == c.Guarded():
		text += ": " + c.Policy
	case v.About != "":
		text += ": " + v.About
	}
	p := a.clientPolicy()
	text += fmt.Sprintf(". Up to %d attempts", p.MaxRetries+1)
	if p.AttemptTimeout > 0 {
		text += fmt.Sprintf(" of at most %v", p.AttemptTimeout)
	}
	if a.unbounded() {
		return text + fmt.Sprintf("; if all fail, %s/s × %d = %s/s meet a capacity of %s/s.",
			thousands(a.fleet.Rate), p.MaxRetries+1, thousands(a.stormLoad()), thousands(a.capacity()))
	}
	var bounds []string
	if p.RetryBudget.Enabled() {
		bounds = append(bounds, "a retry budget")
	}
	if p.CircuitBreaker.Enabled() {
		bounds = append(bounds, "a circuit breaker")
	}
	return text + ", within " + strings.Join(bounds, " and ") + "."
}

// String is one line of live progress.
func (p Progress) String() string {
	state := "all is well"
	switch {
	case p.Elapsed <= 0:
		state = "warming up"
	case p.Trouble:
		state = "TROUBLE"
	}
	return fmt.Sprintf("%-9s %3.0f s  attempts %5s/s  answered %4s/s  queue %5s  %s",
		p.Act, p.Elapsed.Seconds(), thousands(float64(p.Attempts)), thousands(float64(p.Answered)), thousands(float64(p.Waiting)), state)
}

// Report writes what came of the drill for people: tables, plots, and a closing sentence.
func (r *Result) Report(w io.Writer) {
	if r.Interrupted {
		fmt.Fprintf(w, "Stopped before the end. This is what is known so far.\n\n")
	}
	r.table(w)
	r.expected(w)
	top := r.plotTop()
	for _, a := range r.Acts {
		fmt.Fprintf(w, "\n%s", a.Plot(r.Setup, top))
	}
	fmt.Fprintf(w, "\n%s\n", wrap(r.Verdict, 79))
	if r.Comparison != nil {
		r.Comparison.report(w)
	}
}

// expected lists what the scenario expects of the acts.
func (r *Result) expected(w io.Writer) {
	first := true
	for i := range r.Acts {
		for _, e := range r.Acts[i].Expectations {
			if first {
				fmt.Fprintln(w)
				first = false
			}
			held := "not held"
			if e.Held {
				held = "held"
			}
			fmt.Fprintf(w, "%-9s %s  %s\n", r.Acts[i].Act, pad(e.Text, 58), held)
		}
	}
}

// row is a line of the table.
type row struct {
	label string
	cell  func(a *ActResult) string
}

func (r *Result) table(w io.Writer) {
	line := func(label string, cell func(a *ActResult) string) {
		text := pad(label, 40)
		for i := range r.Acts {
			text += padLeft(cell(&r.Acts[i]), max(19, utf8.RuneCountInString(r.Acts[i].Act)+2))
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	line("", func(a *ActResult) string { return a.Act })
	for _, row := range r.rows() {
		line(row.label, row.cell)
	}
}

// endings are the labels of how requests fail.
var endings = [engine.EndKinds]string{
	engine.RefusedConnection: "failed: nobody listened",
	engine.Reset:             "failed: connection broke",
	engine.QueueFull:         "failed: service's queue full (503)",
	engine.ServerError:       "failed: error of the service (500)",
	engine.BadGateway:        "failed: service behind it failed (502)",
	engine.TimedOut:          "failed: no answer in time",
	engine.Overloaded:        "failed: refused by the service's gate (503)",
	engine.RateLimited:       "failed: rate limit of the service's gate (429)",
	engine.Expired:           "failed: too late for the service's gate (504)",
	engine.BulkheadFull:      "refused by the guard's bulkhead",
	engine.Unanswered:        "still being tried at the end",
}

func (r *Result) rows() []row {
	count := func(n int) string { return thousands(float64(n)) }
	rows := []row{
		{"requests offered", func(a *ActResult) string { return count(a.Offered) }},
		{"attempts sent to the service", func(a *ActResult) string { return count(a.Attempts) }},
		{"amplification: attempts per request sent", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerSent) }},
		{"  … counting those refused early, too", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerOffered) }},
	}
	for w, label := range [...]string{"before", "during", "after"} {
		rows = append(rows, row{"goodput " + label + " the " + r.Setup.Word, func(a *ActResult) string { return goodput(a, w) }})
	}
	rows = append(rows,
		row{fmt.Sprintf("from end of %s to %s goodput", r.Setup.Word, percent(r.Setup.Recovered)), r.recoveryCell},
		row{"answered calls took, p50 / p99", func(a *ActResult) string { return spans(a.AnsweredP50, a.AnsweredP99) }},
		row{"failed calls took, p50 / p99", func(a *ActResult) string { return spans(a.FailedP50, a.FailedP99) }},
		row{"longest queue in the service", func(a *ActResult) string { return count(a.Service.LongestQueue) }},
		row{"work done for callers that had left", func(a *ActResult) string {
			return fmt.Sprintf("%s (%s)", count(a.Service.Wasted), percent(a.Service.WastedShare))
		}},
		row{"refused early by the guard, not sent", func(a *ActResult) string { return count(a.Refused) }},
	)
	if slices.ContainsFunc(r.Acts, func(a ActResult) bool { return a.Service.TurnedAway > 0 }) {
		rows = append(rows,
			row{"attempts refused by the service's gate", func(a *ActResult) string { return count(a.Service.TurnedAway) }},
			row{"most memory in use, " + r.Setup.Word + " / after", memory},
		)
	}
	for kind, label := range endings {
		if end := engine.EndKind(kind).String(); label != "" && r.any(end) {
			rows = append(rows, row{label, func(a *ActResult) string { return count(a.Endings[end]) }})
		}
	}
	return append(rows, row{"processor time of this program", func(a *ActResult) string { return fmt.Sprintf("%.2f cores", a.CPU) }})
}

// any tells whether some request of some act ended so.
func (r *Result) any(end string) bool {
	for _, a := range r.Acts {
		if a.Endings[end] > 0 {
			return true
		}
	}
	return false
}

// memory is what was in use during the trouble and after it.
func memory(a *ActResult) string {
	if len(a.Phases) < 3 {
		return "–"
	}
	return fmt.Sprintf("%.0f / %.0f MB", float64(a.Phases[1].MemoryBytes)/1e6, float64(a.Phases[2].MemoryBytes)/1e6)
}

func goodput(a *ActResult, w int) string {
	if w >= len(a.Phases) {
		return "–"
	}
	f := a.Phases[w]
	return fmt.Sprintf("%s/s %6s", thousands(f.GoodputPerSecond), percent(f.Goodput))
}

func (r *Result) recoveryCell(a *ActResult) string {
	switch {
	case a.Recovered():
		return fmt.Sprintf("%.1f s", *a.RecoverySeconds)
	case a.Complete:
		return "never, within " + seconds(r.Setup.AfterSeconds)
	}
	return "not known"
}

// thousands writes a number without decimals, in groups of three.
func thousands(v float64) string {
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }

// seconds writes a time for people: "2.2 s".
func seconds(s float64) string { return strconv.FormatFloat(math.Round(s*10)/10, 'f', -1, 64) + " s" }

// spans writes two latencies: "51 ms / 2.1 s".
func spans(a, b float64) string {
	one := func(s float64) string {
		if s == 0 {
			return "–"
		}
		return duration(s)
	}
	return one(a) + " / " + one(b)
}

// duration writes a time that may be short: "51 ms", "2.1 s".
func duration(s float64) string {
	if s < 0.9995 {
		return fmt.Sprintf("%.0f ms", s*1000)
	}
	return fmt.Sprintf("%.1f s", s)
}

// pad and padLeft count characters, not bytes.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}

func padLeft(s string, width int) string {
	return strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0)) + s
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) string {
	var out strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			out.WriteByte('\n')
			column = 0
		default:
			out.WriteByte(' ')
			column++
		}
		out.WriteString(word)
		column += n
	}
	return out.String()
}
