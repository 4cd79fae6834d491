package drill

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/sim/figures"
)

const (
	width     = 79   // of text
	lateLimit = 0.25 // seconds behind its own schedule, from which on a drill warns about its numbers
)

// Report is what people read of a drill.
type Report struct {
	Interrupted bool
	Table       string
	Acts        []ActReport
	Capacity    float64 // attempts per second that the service can answer; 0 when unknown
	Verdict     string
}

// ActReport is what a report has of each act below the table.
type ActReport struct {
	Act      string
	Expected []Expected
	Plot     Plot
}

// Expected is something that is expected of an act.
type Expected struct {
	Text  string   `json:"text"`
	Held  bool     `json:"held"`
	Value *float64 `json:"value"` // what was measured, in its unit; null for never, or nothing to measure
}

// Write writes the table, what was expected, the plots, and the verdict.
func (r *Report) Write(w io.Writer) {
	if r.Interrupted {
		fmt.Fprintf(w, "Stopped before the end. This is what is known so far.\n\n")
	}
	fmt.Fprint(w, r.Table)
	before := "\n"
	for _, a := range r.Acts {
		for _, e := range a.Expected {
			held := "not held"
			if e.Held {
				held = "held"
			}
			fmt.Fprintf(w, "%s%-9s %s  %s\n", before, a.Act, figures.Pad(e.Text, 58), held)
			before = ""
		}
	}
	top := r.top()
	for i := range r.Acts {
		fmt.Fprintf(w, "\n%s", r.Acts[i].Plot.draw(r.Acts[i].Act, top))
	}
	fmt.Fprintf(w, "\n%s\n", Wrap(r.Verdict))
}

// Table has a line for each row and a column for each act, of type A.
type Table[A any] struct {
	labels []string
	cells  []func(a *A) string
}

// Row adds a line.
func (t *Table[A]) Row(label string, cell func(a *A) string) {
	t.labels, t.cells = append(t.labels, label), append(t.cells, cell)
}

// Text returns the table of some acts, with their names, which the first row has, above the columns. It is empty
// without acts.
func (t *Table[A]) Text(acts []A) string {
	if len(acts) == 0 {
		return ""
	}
	label, columns := 40, make([]int, len(acts))
	for r, cell := range t.cells {
		label = max(label, utf8.RuneCountInString(t.labels[r]))
		for i := range acts {
			columns[i] = max(columns[i], 18, utf8.RuneCountInString(cell(&acts[i])))
		}
	}
	var out strings.Builder
	for r, cell := range t.cells {
		text := figures.Pad(t.labels[r], label)
		for i := range acts {
			text += " " + figures.PadLeft(cell(&acts[i]), columns[i])
		}
		fmt.Fprintln(&out, strings.TrimRight(text, " "))
	}
	return out.String()
}

// Story is what a verdict says of an act.
type Story struct {
	Act, Text   string
	LateSeconds float64 // how far the act fell behind its schedule
}

// Late reports whether an act that fell so far behind its schedule was run on a machine that was too busy for it.
func Late(seconds float64) bool { return seconds > lateLimit }

// Verdict joins the stories of all acts.
func Verdict(interrupted bool, stories []Story) string {
	if interrupted {
		return "Stopped before the end: no verdict."
	}
	var said []string
	for _, s := range stories {
		said = append(said, s.Text)
		if Late(s.LateSeconds) {
			said = append(said, fmt.Sprintf("Careful: this machine was busy with other things, and in the %s act the drill "+
				"fell up to %s behind its schedule. "+
				"Take the numbers with care, or run it again.", s.Act, Seconds(s.LateSeconds)))
		}
	}
	return strings.Join(said, " ")
}

// Capitalized returns the name of an act as the first word of a sentence.
func Capitalized(act string) string { return strings.ToUpper(act[:1]) + act[1:] }

// Seconds writes a time for people: "2.2 s".
func Seconds(s float64) string { return figures.Decimals(math.Round(s*10)/10, 1) + " s" }

// Wrap breaks text into the lines of a report. Those of an item, which begins with "- ", are indented.
func Wrap(text string) string {
	prefix := ""
	if item, ok := strings.CutPrefix(text, "- "); ok {
		prefix, text = "- ", item
	}
	return figures.Wrap(prefix, figures.Words(text), width)
}
