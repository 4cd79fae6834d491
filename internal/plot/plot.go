// Package plot draws the course of an act of a drill with characters: what was tried as a shade, what came of it as solid
// blocks in front of it, and below when something was wrong.
package plot

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Shade and Solid are what the two numbers of a column are drawn with.
const (
	Shade = '░'
	Solid = '█'
)

// eighths are the blocks that fill a cell from below, by eighths.
var eighths = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', Solid}

const (
	rows   = 8
	margin = 70 // cells from the axis to where a note ends at the latest
)

// Plot is one drawing. It is Axis + 2 columns wide and one for each of Columns.
type Plot struct {
	Columns []Column
	Top     float64 // what the top of the scale stands for, see Top; above 0
	Label   string  // Top, for people
	Axis    int     // width of the labels
	Note    string  // on what was wrong: one line
	At      int     // the column that it points at; it begins further left if it would not fit
}

// Column is one moment.
type Column struct {
	Shade, Solid float64 // at least 0; what is above Top is cut off
	Wrong        bool
}

// Top returns the round number, at or above most, for the top of a scale. most is above 0.
func Top(most float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most))) / 5
	return math.Ceil(most/step) * step
}

// String draws the plot: eight rows, the time axis with a double line while something is wrong, and the note.
func (p *Plot) String() string {
	var out strings.Builder
	for row := rows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case rows - 1:
			label = p.Label
		case 0:
			label = "0"
		}
		fmt.Fprintf(&out, "%*s ┤%s\n", p.Axis, label, strings.TrimRight(p.row(row), " "))
	}
	ruler := make([]rune, len(p.Columns))
	for i, c := range p.Columns {
		ruler[i] = '─'
		if c.Wrong {
			ruler[i] = '═'
		}
	}
	fmt.Fprintf(&out, "%*s └%s\n", p.Axis, "", string(ruler))
	fmt.Fprintf(&out, "%*s%s\n", p.Axis+2+min(p.At, max(margin-utf8.RuneCountInString(p.Note), 0)), "", p.Note)
	return out.String()
}

// row draws one line of cells.
func (p *Plot) row(row int) string {
	cells := make([]rune, len(p.Columns))
	for i, c := range p.Columns {
		height := func(v float64) int { // in eighths of a cell, above the foot of this row
			return min(max(int(math.Round(v/p.Top*rows*8))-row*8, 0), 8)
		}
		cells[i] = ' '
		if height(c.Shade) >= 4 {
			cells[i] = Shade
		}
		if solid := height(c.Solid); solid > 0 {
			cells[i] = eighths[solid]
		}
	}
	return string(cells)
}
