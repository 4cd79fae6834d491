package report

import (
	"math"
	"strconv"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

// cliffMap is a table of shares of collapsed runs.
type cliffMap struct {
	Loads []string
	Rows  []cliffRow
	Runs  string
	Here  string
	Line  *cliffLine // nil where it is not known or beyond the map
	Note  string     // what it means
}

// cliffLine is the load at which offered × attempts = capacity: a line between two columns, with a label below.
type cliffLine struct {
	Text          string
	Before, After int  // columns on both sides, that of the names included
	Left          bool // the label is on its left
}

type cliffRow struct {
	Length string
	Cells  []cliffCell
}

// cliffCell is one cell: its text, its shade from 0 to 5 or "none", whether the scenario is there, and whether the line
// is on its left.
type cliffCell struct {
	Text, Shade string
	Here, Line  bool
}

// cliff shows how far the scenario is from collapse.
func (v *view) cliff() section {
	sec := section{Title: "How far from the cliff", ID: "cliff", Class: "two"}
	for i := range v.variant.Margins {
		m := &v.variant.Margins[i]
		sec.Facts = append(sec.Facts, fact{Name: dimension(m), Value: m.Text, Small: bracket(m)})
	}
	sec.Map = newCliffMap(v.variant.Map)
	switch {
	case sec.Map != nil:
		sec.Notes = []string{
			"Share of runs that collapse, by load and by how long the trouble lasts. The outlined cell is this scenario: " +
				sec.Map.Here + ".",
		}
		if sec.Map.Note != "" {
			sec.Notes = append(sec.Notes, sec.Map.Note)
		}
	case len(sec.Facts) == 0:
		return sec.without("The distance to the cliff was not searched for.")
	}
	return sec
}

// dimension names what a margin varies.
func dimension(m *sim.Margin) string {
	switch {
	case m.Dimension == "trouble":
		return "trouble length"
	case m.Fleet != "":
		return m.Dimension + " of " + m.Fleet
	}
	return m.Dimension
}

// bracket says between which values the verdict changes, and after how many runs that was known.
func bracket(m *sim.Margin) string {
	if m.Beyond {
		return plural(m.Runs, "run", "runs")
	}
	value := func(v float64) string {
		switch m.Unit {
		case unitTime, unitShare, unitNone:
			return quantity(v, m.Unit)
		}
		return number(v) + space + m.Unit
	}
	return "turns between " + value(m.Low) + " and " + value(m.High) + ", " + plural(m.Runs, "run", "runs")
}

// newCliffMap returns nil when there is nothing to show.
func newCliffMap(m *sim.CliffMap) *cliffMap {
	if m == nil || len(m.Loads) == 0 || len(m.Lengths) == 0 {
		return nil
	}
	out := &cliffMap{
		Runs: plural(m.Runs, "run", "runs") + " a cell",
		Here: number(m.HereLoad) + space + "× the load, " + seconds(m.HereLen),
	}
	for _, load := range m.Loads {
		out.Loads = append(out.Loads, number(load)+space+"×")
	}
	out.line(m)
	load, length := nearest(m.Loads, m.HereLoad), nearest(m.Lengths, m.HereLen)
	for i := len(m.Lengths) - 1; i >= 0; i-- {
		row := cliffRow{Length: seconds(m.Lengths[i])}
		for j := range m.Loads {
			share := -1.0
			if i < len(m.Collapse) && j < len(m.Collapse[i]) {
				share = m.Collapse[i][j]
			}
			cell := newCell(share)
			cell.Here = i == length && j == load
			cell.Line = out.Line != nil && j == out.Line.Before-1
			row.Cells = append(row.Cells, cell)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// line puts the line where offered × attempts = capacity between the columns of its neighbours.
func (c *cliffMap) line(m *sim.CliffMap) {
	if !figures.Finite(m.StableLoad) || m.StableLoad <= 0 {
		return
	}
	at := number(m.StableLoad) + space + "×"
	const safe = "retries alone cannot keep the system down."
	below := 0
	for _, load := range m.Loads {
		if load <= m.StableLoad {
			below++
		}
	}
	if below == len(m.Loads) {
		c.Note = "All attempts that the policies allow would fill the capacity only at " +
			at + " the load, beyond this map: within it, " + safe
		return
	}
	c.Line = &cliffLine{
		Text: "capacity / attempts: " + at, Before: below + 1, After: len(m.Loads) - below, Left: 2*below > len(m.Loads),
	}
	c.Note = "Dashed: " + at + " the load, where all attempts that the policies allow fill the capacity. At less load, " +
		safe
}

func newCell(share float64) cliffCell {
	if !figures.Finite(share) || share < 0 {
		return cliffCell{Text: "", Shade: "none"}
	}
	return cliffCell{Text: percent(share), Shade: strconv.Itoa(min(int(math.Ceil(share*5)), 5))}
}

// nearest returns the place of the value closest in ratio.
func nearest(values []float64, v float64) int {
	best, at := math.Inf(1), 0
	for i, x := range values {
		distance := math.Abs(x - v)
		if x > 0 && v > 0 {
			distance = math.Abs(math.Log(x / v))
		}
		if distance < best {
			best, at = distance, i
		}
	}
	return at
}
