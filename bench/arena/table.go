package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/bench/program"
)

// columns are in one table, so that a line fits a screen.
const columns = 6

// near is by how much of all requests a cell may be below the best of its column, to count as the best.
const near = 0.01

// markers are the lines of a page between which the tables stand.
const (
	tableBegins = "<!-- arena: go run ./bench/arena -write writes what follows -->"
	tableEnds   = "<!-- end of arena -->"
)

// report is all tables, in Markdown.
func (l *lab) report() string {
	var b strings.Builder
	for _, line := range l.about() {
		fmt.Fprintln(&b, line)
	}
	for from := 0; from < len(l.opt.days); from += columns {
		fmt.Fprintln(&b)
		l.writeTable(&b, from, min(from+columns, len(l.opt.days)))
	}
	fmt.Fprintln(&b)
	l.writeSummary(&b)
	for i, c := range l.opt.contenders {
		if why := l.cell(i, 0).absent; why != "" {
			fmt.Fprintf(&b, "\n%s did not take part: %s\n", c.name, why)
		}
		for j, d := range l.opt.days {
			if err := l.cell(i, j).failed; err != nil {
				fmt.Fprintf(&b, "\n%s, %s could not be played: %v\n", c.name, d.name, err)
			}
		}
	}
	return b.String()
}

// about says where, with what and how undisturbed the numbers were taken.
func (l *lab) about() []string {
	runs, repeated, disturbed := 0, 0, 0
	var latest lateness
	for _, c := range l.cells {
		repeated += c.repeated
		for _, r := range c.results {
			runs++
			if r.late.disturbs() {
				disturbed++
			}
			latest.p99, latest.most = max(latest.p99, r.late.p99), max(latest.most, r.late.most)
		}
	}
	lines := []string{
		"- " + program.Machine(),
		fmt.Sprintf("- Envoy %s, HAProxy %s, nginx %s, grpc-go %s, failsafe-go %s, abate of this tree", program.EnvoyVersion,
			program.Version(l.ctx, "haproxy", "-v"), program.Version(l.ctx, "nginx", "-v"),
			program.Dependency("google.golang.org/grpc"), program.Dependency("github.com/failsafe-go/failsafe-go")),
		fmt.Sprintf("- %d runs, medians of %d, %d contenders at a time; %d runs repeated because timers were late",
			runs, l.opt.passes, l.opt.beside, repeated),
		fmt.Sprintf("- timers of the runs that count: p99 %v late at most, %v in the worst case",
			latest.p99.Round(100*time.Microsecond), latest.most.Round(time.Millisecond)),
	}
	if disturbed > 0 {
		lines = append(lines, fmt.Sprintf("- BUSY MACHINE: %d of %d runs are disturbed all the same, and marked ~",
			disturbed, runs))
	}
	return lines
}

// writeTable writes some days: answered of all requests / back to 95 % after. What is best, or less than a point
// below, is bold.
func (l *lab) writeTable(b *strings.Builder, from, to int) {
	fmt.Fprint(b, "| answered / back after |")
	rule := "|---|"
	for _, d := range l.opt.days[from:to] {
		fmt.Fprintf(b, " %s |", d.name)
		rule += "---|"
	}
	fmt.Fprintf(b, "\n%s\n", rule)
	for i, c := range l.opt.contenders {
		fmt.Fprintf(b, "| %s |", c.name)
		for j := from; j < to; j++ {
			fmt.Fprintf(b, " %s |", cellText(*l.cell(i, j), l.best(j)))
		}
		fmt.Fprintln(b)
	}
}

// best is the largest share answered in a column.
func (l *lab) best(day int) (best float64) {
	for i := range l.opt.contenders {
		if share, ok := l.cell(i, day).share(); ok {
			best = max(best, share)
		}
	}
	return best
}

// cellText is a cell. A healthy day has no end of trouble to come back from, and two digits.
func cellText(c cell, best float64) string {
	share, ok := c.share()
	if !ok {
		return "-"
	}
	text := fmt.Sprintf("%.1f %%", 100*share)
	if c.day.healthy {
		text = fmt.Sprintf("%.2f %%", 100*share)
	}
	if share >= best-near {
		text = "**" + text + "**"
	}
	if !c.day.healthy {
		text += " / " + backText(c.back())
	}
	if c.disturbed() {
		text += " ~"
	}
	return text
}

func backText(back time.Duration) string {
	if back == never {
		return "never"
	}
	return strconv.FormatFloat(back.Seconds(), 'g', -1, 64) + " s"
}

// writeSummary writes what the columns come to for each contender.
func (l *lab) writeSummary(b *strings.Builder) {
	fmt.Fprint(b, "| over all days | answered, mean | of the best, or less than a point below | "+
		"furthest below the best | attempts a request, most |\n")
	fmt.Fprintln(b, "|---|---|---|---|---|")
	for i, c := range l.opt.contenders {
		sum, days, top, most := 0.0, 0, 0, 0.0
		below, where := 0.0, "-"
		for j, d := range l.opt.days {
			share, ok := l.cell(i, j).share()
			if !ok {
				continue
			}
			sum, days, most = sum+share, days+1, max(most, l.cell(i, j).amplification())
			gap := l.best(j) - share
			if gap <= near {
				top++
			}
			if gap > below {
				below, where = gap, fmt.Sprintf("%.1f points, %s", 100*gap, d.name)
			}
		}
		if days > 0 {
			fmt.Fprintf(b, "| %s | %.1f %% | %d of %d | %s | %.2f |\n", c.name, 100*sum/float64(days), top, days, where, most)
		}
	}
}

// writeInto puts text between the markers of a page.
func writeInto(path, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := replaceTable(page, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, changed, 0o644)
}

// replaceTable replaces what stands between the markers.
func replaceTable(page []byte, text string) ([]byte, error) {
	head, rest, begins := bytes.Cut(page, []byte(tableBegins+"\n"))
	_, tail, ends := bytes.Cut(rest, []byte(tableEnds+"\n"))
	if !begins || !ends {
		return nil, fmt.Errorf("has no lines %q and %q to write between", tableBegins, tableEnds)
	}
	return []byte(string(head) + tableBegins + "\n\n" + text + "\n" + tableEnds + "\n" + string(tail)), nil
}
