package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// row is one target's line of the table.
type row struct {
	target   string
	samples  []sample
	repeated int    // runs that were thrown away because other programs disturbed them
	absent   string // why it was not measured, without anything being wrong
	err      error  // why it could not be measured
}

// values are one metric's, sorted; none when it was not measured.
func (r row) values(m metric) []float64 {
	var all []float64
	for _, s := range r.samples {
		if v, ok := s[m]; ok {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// middle is the median; ok is false when nothing complete was measured.
func (r row) middle(m metric) (value float64, ok bool) {
	all := r.values(m)
	if len(all) == 0 || r.err != nil {
		return 0, false
	}
	return middle(all), true
}

// middle is the median of sorted values.
func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// find returns the row of a target, an empty one when it took no part.
func find(rows []row, target string) row {
	for _, r := range rows {
		if r.target == target {
			return r
		}
	}
	return row{}
}

// column is one column of the table. A cell is asked for only when the row has values of the metric.
type column struct {
	metric metric
	head   string
	cell   func(values []float64, rows []row) string
	format string // of one value
}

// median is a column with the middle value.
func median(m metric, format string) column {
	return column{m, string(m), func(values []float64, _ []row) string {
		return fmt.Sprintf(format, middle(values))
	}, format}
}

// spread adds the smallest and the largest value to the middle one.
func spread(m metric, format string) column {
	return column{m, string(m), func(values []float64, _ []row) string {
		if len(values) == 1 {
			return fmt.Sprintf(format, values[0])
		}
		return fmt.Sprintf(format+" ("+format+"–"+format+")", middle(values), values[0], values[len(values)-1])
	}, format}
}

// worst is a column with the largest value.
func worst(m metric, format string) column {
	return column{m, string(m), func(values []float64, _ []row) string {
		return fmt.Sprintf(format, values[len(values)-1])
	}, format}
}

// ratio compares the middle value with another target's.
func ratio(m metric, peer string) column {
	return column{m, "× " + peer, func(values []float64, rows []row) string {
		theirs, ok := find(rows, peer).middle(m)
		if !ok || theirs == 0 {
			return none
		}
		return fmt.Sprintf("%.2f", middle(values)/theirs)
	}, ""}
}

// none stands in a cell for which nothing was measured.
const none = "-"

// line is one sample in words, for progress.
func (m mode) line(s sample) string {
	var parts []string
	for _, c := range m.columns {
		if v, ok := s[c.metric]; ok && c.format != "" {
			parts = append(parts, string(c.metric)+" "+fmt.Sprintf(c.format, v))
		}
	}
	return strings.Join(parts, ", ")
}

// report prints a mode's table, what to think of it, and what the project promises.
func report(w io.Writer, about []string, m mode, rows []row) error {
	for _, line := range append(about, m.title, "") {
		fmt.Fprintln(w, line)
	}
	if err := writeTable(w, m, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for _, line := range disturbances(rows, m.repeats > 0) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	return writeVerdicts(w, judge(m.promises, rows))
}

func writeTable(w io.Writer, m mode, rows []row) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "target")
	for _, c := range m.columns {
		fmt.Fprint(tw, "\t", c.head)
	}
	fmt.Fprintln(tw)
	for _, r := range rows {
		if len(r.samples) == 0 || r.err != nil {
			continue
		}
		fmt.Fprint(tw, r.target)
		for _, c := range m.columns {
			text := none
			if values := r.values(c.metric); len(values) > 0 {
				text = c.cell(values, rows)
			}
			fmt.Fprint(tw, "\t", text)
		}
		fmt.Fprintln(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, r := range rows { // outside the tab stops: a reason is longer than any column
		switch {
		case r.err != nil:
			fmt.Fprintf(w, "%s: could not be measured: %v\n", r.target, r.err)
		case r.absent != "":
			fmt.Fprintf(w, "%s: %s\n", r.target, r.absent)
		}
	}
	return nil
}

// disturbances says how far the machine was somebody else's, and what that did to numbers which suffer from it.
func disturbances(rows []row, suffers bool) []string {
	lines := []string{"others: processors that other programs kept busy, the worst run"}
	if !suffers {
		return lines
	}
	runs, repeated, disturbed := 0, 0, 0
	for _, r := range rows {
		repeated += r.repeated
		for _, s := range r.samples {
			runs++
			if s[others] > quietEnough {
				disturbed++
			}
		}
	}
	lines[0] += fmt.Sprintf("; %d of %d runs repeated because it was above %.2f", repeated, runs+repeated, quietEnough)
	if disturbed > 0 {
		lines = append(lines, fmt.Sprintf("BUSY MACHINE: %d of %d runs are disturbed all the same: read them with care",
			disturbed, runs))
	}
	return lines
}
