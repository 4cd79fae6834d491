package rehearse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/abate-go/abate/adapter/abateadmin"
	"github.com/abate-go/abate/sim/figures"
)

// topView is what a terminal shows. It is told what happened, and draws no more than it was told.
type topView struct {
	snapshot *abateadmin.Snapshot
	problem  string // why nothing new has come
	colour   bool

	width, height int // of the screen, in characters
	sort          int // an index of topSorts
	at            int // the chosen row, as it is sorted
	opened        string
	openedGate    bool
	detail        *topDetail // of what is opened; nil until it is known
}

var topSorts = [...]struct {
	name string
	by   func(a, b *abateadmin.Row) int
}{
	{"trouble", func(a, b *abateadmin.Row) int { return cmp.Compare(b.Level, a.Level) }},
	{"attempts per call", func(a, b *abateadmin.Row) int { return cmp.Compare(b.Amplification, a.Amplification) }},
	{"calls", func(a, b *abateadmin.Row) int { return cmp.Compare(b.Calls, a.Calls) }},
	{"name", func(a, b *abateadmin.Row) int { return 0 }},
}

// rows are those of the snapshot in the order of the screen.
func (v *topView) rows() []abateadmin.Row {
	rows := slices.Clone(v.snapshot.Rows)
	slices.SortStableFunc(rows, func(a, b abateadmin.Row) int {
		if c := topSorts[v.sort].by(&a, &b); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return rows
}

// press does what a key asks for. It reports whether that is to end.
func (v *topView) press(key string) (quit bool) {
	rows := v.rows()
	switch key {
	case "q":
		return true
	case "s":
		v.sort = (v.sort + 1) % len(topSorts)
	case "j", "\x1b[B", "\x1bOB":
		v.at = min(v.at+1, max(len(rows)-1, 0))
	case "k", "\x1b[A", "\x1bOA":
		v.at = max(v.at-1, 0)
	case "\n", "\r":
		if v.opened == "" && v.at < len(rows) {
			v.opened, v.openedGate, v.detail = rows[v.at].Name, rows[v.at].Gate, nil
		}
	case "\x1b", "\x7f", "\b":
		v.opened, v.detail = "", nil
	}
	return false
}

// screen is what fits on the terminal.
func (v *topView) screen() []string {
	lines := v.table()
	if v.opened != "" {
		lines = v.why()
	}
	keys := "j k move   Enter why   s sort: " + topSorts[v.sort].name + "   q end"
	if v.opened != "" {
		keys = "Esc back   q end"
	}
	if room := max(v.height-1, 1); len(lines) > room {
		lines = lines[:room]
	}
	return append(lines, v.paint("2", cutWidth(keys, v.width)))
}

// roomForWhy is kept for the reason, also on a narrow screen.
const roomForWhy = 22

// columns of the table, the first to be left out on a narrow screen last.
var topColumns = []struct {
	name  string
	left  bool
	width int
	text  func(*abateadmin.Row) string
}{
	{"CIRCUIT", true, 9, func(r *abateadmin.Row) string { return r.Circuit }},
	{"AMP", false, 5, func(r *abateadmin.Row) string { return dash(r.Attempts > 0, "%.2f", r.Amplification) }},
	{"ANSWERED", false, 8, func(r *abateadmin.Row) string { return perSecond(r.Good) }},
	{"FAILED", false, 7, func(r *abateadmin.Row) string { return perSecond(r.Bad) }},
	{"REFUSED", false, 7, func(r *abateadmin.Row) string { return perSecond(r.Refused) }},
	{"RETRY", false, 5, func(r *abateadmin.Row) string { return dash(r.Attempts > 0, "%.0f%%", 100*r.RetryShare) }},
	{"IN FLIGHT", false, 9, func(r *abateadmin.Row) string {
		if r.Limit > 0 {
			return fmt.Sprintf("%d/%d", r.InFlight, r.Limit)
		}
		return strconv.Itoa(r.InFlight)
	}},
	{"BUDGET", false, 6, func(r *abateadmin.Row) string { return dash(r.HasBudget, "%.0f", r.Budget) }},
	{"TAKES", false, 8, func(r *abateadmin.Row) string {
		ms := r.Took
		ms = cmp.Or(ms, r.Typical)
		return dash(ms > 0, "%.1fms", ms)
	}},
}

func (v *topView) table() []string {
	rows := v.rows()
	wide := 4
	for i := range rows {
		wide = max(wide, textWidth(v.name(&rows[i])))
	}
	wide = min(wide, 32, max(v.width-30, 8))
	left := v.width - 8 - wide - len("  ") - roomForWhy
	columns := topColumns
	for i := range columns {
		if left -= columns[i].width + 2; left < 0 {
			columns = columns[:i]
			break
		}
	}
	head := fit("LEVEL", 8, true) + fit("NAME", wide, true)
	for _, c := range columns {
		head += "  " + fit(c.name, c.width, c.left)
	}
	lines := append(v.head(), v.paint("2", cutWidth(head+"  WHY", v.width)))
	room := max(v.height-len(lines)-1, 1)
	from := max(min(v.at-room/2, len(rows)-room), 0)
	for i := from; i < min(len(rows), from+room); i++ {
		r := &rows[i]
		line := fit(v.name(r), wide, true)
		for _, c := range columns {
			line += "  " + fit(c.text(r), c.width, c.left)
		}
		line = cutWidth(strings.TrimRight(line+"  "+harmless(r.Why), " "), v.width-8)
		line = v.paint(levelColours[r.Level], fit(r.Level.String(), 8, true)) + line
		if i == v.at && v.colour {
			line = "\x1b[7m" + strings.ReplaceAll(line, "\x1b[0m", "\x1b[0;7m") + "\x1b[0m"
		}
		lines = append(lines, line)
	}
	return lines
}

var levelColours = [...]string{
	abateadmin.Idle: "2", abateadmin.Calm: "32", abateadmin.Watch: "33", abateadmin.Trouble: "1;31",
}

func (v *topView) name(r *abateadmin.Row) string {
	name := harmless(r.Name)
	if r.Guards > 1 {
		name += fmt.Sprintf(" x%d", r.Guards)
	}
	if r.Gate {
		name += " (arriving)"
	}
	return name
}

// head is what is said above the table: how it is altogether, and what somebody has done by hand.
func (v *topView) head() []string {
	var by [abateadmin.Trouble + 1]int
	calls := 0.0
	for _, r := range v.snapshot.Rows {
		by[r.Level]++
		if !r.Gate {
			calls += r.Calls
		}
	}
	sum := fmt.Sprintf("%s  %s  %d in trouble, %d to watch, %d calm, %d idle  %s calls/s", harmless(v.snapshot.Title),
		time.UnixMilli(v.snapshot.At).Format(time.TimeOnly), by[abateadmin.Trouble], by[abateadmin.Watch],
		by[abateadmin.Calm], by[abateadmin.Idle], perSecond(calls))
	lines := []string{cutWidth(sum, v.width)}
	if v.problem != "" {
		lines = append(lines, v.paint("1;31", cutWidth("NO CONNECTION: "+harmless(v.problem), v.width)))
	}
	if v.snapshot.Problem != "" {
		lines = append(lines, v.paint("1;31", cutWidth("POLICY FILE NOT IN FORCE: "+harmless(v.snapshot.Problem), v.width)))
	}
	for _, r := range v.snapshot.Rows {
		if r.Override != "" {
			by := ""
			if r.By != "" {
				by = " by " + r.By
			}
			text := fmt.Sprintf("BY HAND: %s: circuit breaker %s%s", r.Name, r.Override, by)
			if r.HandAt != 0 {
				text += ", " + since(r.HandAt, v.snapshot.At)
			}
			lines = append(lines, v.paint("33", cutWidth(harmless(text), v.width)))
		}
	}
	return append(lines, "")
}

// why is all there is about what is opened.
func (v *topView) why() []string {
	lines := v.head()
	at := slices.IndexFunc(v.snapshot.Rows, func(r abateadmin.Row) bool {
		return r.Name == v.opened && r.Gate == v.openedGate
	})
	if at < 0 {
		return append(lines, cutWidth(harmless(v.opened)+" has gone", v.width))
	}
	r := &v.snapshot.Rows[at]
	lines = append(lines, v.paint(levelColours[r.Level], strings.ToUpper(r.Level.String()))+"  "+cutWidth(
		v.name(r), v.width-10))
	for _, word := range strings.Split(r.Why, "; ") {
		lines = append(lines, cutWidth("  "+harmless(word), v.width))
	}
	lines = append(lines, v.story(&r.Story)...)
	d := v.detail
	if d == nil {
		return append(lines, "", "  ...")
	}
	section := func(title string) { lines = append(lines, "", v.paint("2", cutWidth(title, v.width))) }
	section("NOW")
	for _, f := range d.Facts {
		lines = append(
			lines, cutWidth("  "+fit(harmless(f.Name), 22, true)+harmless(f.Value)+"  "+harmless(f.About), v.width))
	}
	section(fit("COUNTED", 34, true) + fit("last minute", 12, false) + fit("5 minutes", 12, false))
	for _, c := range slices.Concat(d.Refusals, d.Attempts) {
		lines = append(
			lines, cutWidth("  "+fit(harmless(c.Name), 32, true)+fit(strconv.Itoa(c.Minute), 12, false)+fit(
				strconv.Itoa(c.Five), 12, false), v.width))
	}
	section("LAST ERRORS")
	for _, e := range d.Errors {
		lines = append(
			lines, cutWidth("  "+fit(since(e.At, d.At), 14, true)+harmless(e.Class)+": "+harmless(e.Text), v.width))
	}
	section("EVENTS")
	for _, e := range d.Events {
		lines = append(lines, cutWidth("  "+fit(since(e.At, d.At), 14, true)+harmless(e.Text), v.width))
	}
	return lines
}

// story is what is behind it, in whole sentences: they are broken into lines, not cut.
func (v *topView) story(s *abateadmin.Story) (lines []string) {
	for _, part := range []struct{ name, text string }{{"Cause", s.Cause}, {"Effect", s.Effect}, {"Next", s.Next}} {
		if part.text == "" {
			continue
		}
		const indent = 10
		text := figures.Wrap("", figures.Words(harmless(part.text)), max(v.width-indent, indent))
		for i, line := range strings.Split(text, "\n") {
			if i > 0 {
				part.name = ""
			}
			lines = append(lines, cutWidth("  "+fit(part.name, indent-2, true)+line, v.width))
		}
	}
	return lines
}

func (v *topView) paint(colour, text string) string {
	if !v.colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// since says how long before now something was, in the largest unit.
func since(at, now int64) string {
	d := time.Duration(max(now-at, 0)) * time.Millisecond
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%.0f s ago", d.Seconds())
	case d < 90*time.Minute:
		return fmt.Sprintf("%.0f min ago", d.Minutes())
	}
	return fmt.Sprintf("%.0f h ago", d.Hours())
}

func perSecond(n float64) string {
	if n >= 100 || n == float64(int(n)) {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

func dash(known bool, format string, n float64) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf(format, n)
}

// harmless makes a text harmless for a terminal: names and errors come from elsewhere.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, text)
}
