package drill

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Intro says what is going to happen, and the arithmetic behind it.
func (c Config) Intro(w io.Writer) {
	capacity := thousands(c.Service.Capacity())
	say := func(format string, args ...any) {
		text := wrap(fmt.Sprintf(format, args...), 77)
		if strings.HasPrefix(text, "- ") {
			text = strings.ReplaceAll(text, "\n", "\n  ")
		}
		fmt.Fprintln(w, text)
	}
	say("A payment service on 127.0.0.1 can do %d workers / %v = %s requests/s, and queues up to %s more: %s of work. %d clients offer it %s/s, on schedule whatever happens. After %v its database hangs for %v; then all is well again, for %v.",
		c.Service.Workers, c.Service.ServiceTime, capacity, thousands(float64(c.Service.Queue)), seconds(c.Service.QueueTime().Seconds()),
		c.Clients, thousands(c.Rate), c.Before, c.Outage, c.After)
	for _, name := range c.Acts {
		if name == Unguarded {
			say("- Unguarded, a client waits %v for an answer, then tries again up to %d times, %v apart. If all fail, %s/s × %d = %s/s meet a capacity of %s/s.",
				c.AttemptTimeout, c.Retries, c.RetryDelay, thousands(c.Rate), c.Retries+1, thousands(c.StormLoad()), capacity)
		} else {
			say("- Guarded, the same clients send the same requests through Abate and %s.", c.Policy.Name)
		}
	}
	for _, note := range c.Notes() {
		say("Note: %s.", note)
	}
	fmt.Fprintln(w)
}

// String is one line of live progress.
func (p Progress) String() string {
	state := [...]string{"database up", "DATABASE DOWN", "database up"}[p.Phase]
	return fmt.Sprintf("%-9s %3.0f s  attempts %5s/s  answered %4s/s  queue %5s  %s",
		p.Act, p.Elapsed.Seconds(), thousands(float64(p.Attempts)), thousands(float64(p.Answered)), thousands(float64(p.Waiting)), state)
}

// Report writes what came of the drill for people: tables, plots, and a closing sentence.
func (r *Result) Report(w io.Writer) {
	if r.Interrupted {
		fmt.Fprintf(w, "Stopped before the end. This is what is known so far.\n\n")
	}
	r.table(w)
	top := r.plotTop()
	for _, a := range r.Acts {
		fmt.Fprintf(w, "\n%s", a.Plot(r.Setup, top))
	}
	fmt.Fprintf(w, "\n%s\n", wrap(r.Verdict, 79))
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
			text += padLeft(cell(&r.Acts[i]), 19)
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	line("", func(a *ActResult) string { return a.Act })
	for _, row := range r.rows() {
		line(row.label, row.cell)
	}
}

func (r *Result) rows() []row {
	count := func(n int) string { return thousands(float64(n)) }
	rows := []row{
		{"requests offered", func(a *ActResult) string { return count(a.Offered) }},
		{"attempts sent to the service", func(a *ActResult) string { return count(a.Attempts) }},
		{"amplification: attempts per request sent", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerSent) }},
		{"  … counting those refused early, too", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerOffered) }},
	}
	for p, label := range [...]string{"goodput before the outage", "goodput during the outage", "goodput after the outage"} {
		rows = append(rows, row{label, func(a *ActResult) string { return goodput(a, Phase(p)) }})
	}
	rows = append(rows,
		row{"from end of outage to 95 % goodput", r.recoveryCell},
		row{"answered calls took, p50 / p99", func(a *ActResult) string { return spans(a.AnsweredP50, a.AnsweredP99) }},
		row{"failed calls took, p50 / p99", func(a *ActResult) string { return spans(a.FailedP50, a.FailedP99) }},
		row{"longest queue in the service", func(a *ActResult) string { return count(int(a.Service.LongestQueue)) }},
		row{"work done for callers that had left", func(a *ActResult) string {
			return fmt.Sprintf("%s (%s)", thousands(float64(a.Service.Abandoned)), percent(ratio(float64(a.Service.Abandoned), float64(a.Service.Worked))))
		}},
	)
	for _, e := range [...]struct {
		ending Ending
		label  string
	}{
		{AnsweredLate, "answered too late, after more than " + seconds(r.Setup.AttemptTimeoutSeconds)},
		{RefusedEarly, "refused early by the guard, not sent"},
		{TimedOut, "failed: no answer in time"},
		{QueueFull, "failed: service's queue full (503)"},
		{DatabaseError, "failed: database did not answer (504)"},
		{OtherAnswer, "failed: other answer"},
		{NoConnection, "failed: no connection"},
		{Unanswered, "still being tried at the end"},
	} {
		if e.ending == RefusedEarly || r.any(e.ending) {
			rows = append(rows, row{e.label, func(a *ActResult) string { return count(a.Endings[e.ending.String()]) }})
		}
	}
	return append(rows, row{"processor time of this program", func(a *ActResult) string { return fmt.Sprintf("%.2f cores", a.CPU) }})
}

// any tells whether some call of some act ended so.
func (r *Result) any(e Ending) bool {
	for _, a := range r.Acts {
		if a.Endings[e.String()] > 0 {
			return true
		}
	}
	return false
}

func goodput(a *ActResult, p Phase) string {
	if int(p) >= len(a.Phases) {
		return "–"
	}
	f := a.Phases[p]
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
