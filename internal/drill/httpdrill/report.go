package httpdrill

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/abate-go/abate/internal/drill"
	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/figures"
	"github.com/abate-go/abate/sim/scenario"
)

// Intro says what is going to happen, and the arithmetic behind it.
func (c Config) Intro(w io.Writer) {
	say := func(format string, args ...any) { fmt.Fprintln(w, drill.Wrap(fmt.Sprintf(format, args...))) }
	setup, a := c.setup(), c.cast(c.variant(c.Acts[0]))
	queue := "refuses what it cannot work on at once"
	if a.places() > 0 {
		queue = fmt.Sprintf("queues up to %s more: %s of work", figures.Thousands(float64(a.places())),
			drill.Seconds(a.queueTime().Seconds()))
	}
	say("%s on 127.0.0.1 can do %d workers / %v = %s requests/s, and %s. %d clients offer it %s/s, on schedule "+
		"whatever happens. After %s %s; then all is well again, for %s.",
		a.service().Name, a.workers(), a.work(), figures.Thousands(a.capacity()), queue, setup.Clients,
		figures.Thousands(setup.OfferedPerSecond),
		drill.Seconds(setup.BeforeSeconds), setup.Trouble, drill.Seconds(setup.AfterSeconds))
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
			figures.Thousands(a.fleet.Rate), p.MaxRetries+1, figures.Thousands(a.stormLoad()), figures.Thousands(a.capacity()))
	}
	var bounds []string
	if p.RetryBudget.Enabled() {
		bounds = append(bounds, "a retry budget")
	}
	if a.breaks() {
		bounds = append(bounds, "a circuit breaker")
	}
	return text + ", within " + strings.Join(bounds, " and ") + "."
}

// Report writes what came of the drill for people: a table, plots, and a closing sentence.
func (r *Result) Report(w io.Writer) {
	report := drill.Report{Interrupted: r.Interrupted, Table: r.table(), Verdict: r.Verdict}
	for i := range r.Acts {
		a := &r.Acts[i]
		report.Acts = append(report.Acts, drill.ActReport{Act: a.Act, Expected: a.Expectations, Plot: a.plot(&r.Setup)})
		report.Capacity = max(report.Capacity, a.Setting.CapacityPerSecond)
	}
	report.Write(w)
	if r.Comparison != nil {
		r.Comparison.report(w)
	}
}

// Ended reports whether somebody stopped the drill, and whether all was as expected, which a comparison has to confirm.
func (r *Result) Ended() (interrupted, passed bool) {
	return r.Interrupted, r.Passed && (r.Comparison == nil || r.Comparison.Agrees)
}

// plot shows the course of an act.
func (a *ActResult) plot(s *Setup) drill.Plot {
	p := drill.Plot{
		Done: "answers", BinSeconds: a.BinSeconds, Note: s.Trouble,
		From: s.BeforeSeconds, To: s.BeforeSeconds + s.TroubleSeconds,
	}
	for _, b := range a.Series {
		p.Columns = append(p.Columns, drill.Column{
			Attempts: float64(b.Attempts) / a.BinSeconds, Done: float64(b.Answered) / a.BinSeconds,
		})
	}
	return p
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

// table returns what can be counted of some acts.
func (r *Result) table() string {
	t, word := new(drill.Table[ActResult]), r.Setup.Word
	count := func(label string, of func(a *ActResult) int) {
		t.Row(label, func(a *ActResult) string { return figures.Thousands(float64(of(a))) })
	}
	t.Row("", func(a *ActResult) string { return a.Act })
	count("requests offered", func(a *ActResult) int { return a.Offered })
	count("attempts sent to the service", func(a *ActResult) int { return a.Attempts })
	t.Row("amplification: attempts per request sent", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerSent) })
	t.Row("  … counting those not sent, too", func(a *ActResult) string { return fmt.Sprintf("%.2f", a.PerOffered) })
	for w, label := range [...]string{"before", "during", "after"} {
		t.Row("goodput "+label+" the "+word, func(a *ActResult) string { return goodput(a, w) })
	}
	t.Row(fmt.Sprintf("from end of %s to %s goodput", word, percent(r.Setup.Recovered)), r.recoveryCell)
	t.Row("answered calls took, p50 / p99", func(a *ActResult) string { return spans(a.AnsweredP50, a.AnsweredP99) })
	t.Row("failed calls took, p50 / p99", func(a *ActResult) string { return spans(a.FailedP50, a.FailedP99) })
	count("longest queue in the service", func(a *ActResult) int { return a.Service.LongestQueue })
	t.Row("work done for callers that had left", func(a *ActResult) string {
		return fmt.Sprintf("%s (%s)", figures.Thousands(float64(a.Service.Wasted)), percent(a.Service.WastedShare))
	})
	count("refused by the guard, not sent", func(a *ActResult) int { return a.Refused })
	if slices.ContainsFunc(r.Acts, func(a ActResult) bool { return a.Service.TurnedAway > 0 }) {
		count("attempts refused by the service's gate", func(a *ActResult) int { return a.Service.TurnedAway })
		t.Row("most memory in use, "+word+" / after", memory)
	}
	for kind, label := range endings {
		if end := engine.EndKind(kind).String(); label != "" && r.any(end) {
			count(label, func(a *ActResult) int { return a.Endings[end] })
		}
	}
	t.Row("processor time of this program", func(a *ActResult) string { return fmt.Sprintf("%.2f cores", a.CPU) })
	return t.Text(r.Acts)
}

// any reports whether some request of some act ended so.
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
	return fmt.Sprintf("%s/s %6s", figures.Thousands(f.GoodputPerSecond), percent(f.Goodput))
}

func (r *Result) recoveryCell(a *ActResult) string {
	switch {
	case a.Recovered():
		return fmt.Sprintf("%.1f s", *a.RecoverySeconds)
	case a.Complete:
		return "never, within " + drill.Seconds(r.Setup.AfterSeconds)
	}
	return "not known"
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }

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
