package drill

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/sim/figures"
)

// Plot shows the course of an act with characters: attempts as a shade, what was done as solid blocks in front of it,
// and below when something was wrong.
type Plot struct {
	Done       string  // what Column.Done counts, in words
	BinSeconds float64 // length of a column
	Columns    []Column
	From, To   float64 // seconds: when something was wrong
	Note       string  // on what was wrong
}

// Column is one length of time. Its numbers are per second.
type Column struct{ Attempts, Done float64 }

// What the numbers of a column are drawn with.
const (
	shade = '░'
	solid = '█'
)

// eighths are the blocks that fill a cell from below, by eighths.
var eighths = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', solid}

const (
	rows        = 8
	axis        = 8  // width of the labels
	plotWidth   = 69 // columns, at most
	noteEnd     = 70 // cells from the axis to where the note ends at the latest
	mostVisible = 4  // times the capacity: the normal load must stay visible
)

// top returns what the top of all plots stands for, so that acts can be compared by eye. What the worst seconds need
// above some times the capacity is cut off.
func (r *Report) top() float64 {
	top := 1.0
	for _, a := range r.Acts {
		for _, c := range a.Plot.Columns {
			top = max(top, c.Attempts, c.Done)
		}
	}
	if r.Capacity > 0 {
		top = min(top, mostVisible*r.Capacity)
	}
	return roundTop(top)
}

// roundTop returns the round number, at or above most, for the top of a scale. most is above 0.
func roundTop(most float64) float64 {
	step := math.Pow(10, math.Floor(math.Log10(most))) / 5
	return math.Ceil(most/step) * step
}

// draw returns the plot of an act: eight rows, the time axis with a double line while something is wrong, and the note.
func (p *Plot) draw(act string, top float64) string {
	p.fit()
	var out strings.Builder
	fmt.Fprintf(&out, "%s: attempts %c and %s %c per second, one column is %.3g s\n", act, shade, p.Done, solid,
		p.BinSeconds)
	for row := rows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case rows - 1:
			label = figures.Thousands(top)
		case 0:
			label = "0"
		}
		fmt.Fprintf(&out, "%*s ┤%s\n", axis, label, strings.TrimRight(p.row(row, top), " "))
	}
	ruler := make([]rune, len(p.Columns))
	for i := range p.Columns {
		ruler[i] = '─'
		if at := float64(i) * p.BinSeconds; at >= p.From && at < p.To {
			ruler[i] = '═'
		}
	}
	fmt.Fprintf(&out, "%*s └%s\n", axis, "", string(ruler))
	note := "▲ " + p.Note
	// further left if it would not fit
	indent := min(int(p.From/p.BinSeconds), max(noteEnd-utf8.RuneCountInString(note), 0))
	fmt.Fprintf(&out, "%*s%s\n", axis+2+indent, "", note)
	return out.String()
}

// fit joins columns until a line has room for all.
func (p *Plot) fit() {
	per := (len(p.Columns) + plotWidth - 1) / plotWidth
	if per <= 1 {
		return
	}
	var joined []Column
	for at := 0; at < len(p.Columns); at += per {
		var sum Column
		some := p.Columns[at:min(at+per, len(p.Columns))]
		for _, c := range some {
			sum.Attempts += c.Attempts / float64(len(some))
			sum.Done += c.Done / float64(len(some))
		}
		joined = append(joined, sum)
	}
	p.Columns, p.BinSeconds = joined, p.BinSeconds*float64(per)
}

// row draws one line of cells.
func (p *Plot) row(row int, top float64) string {
	cells := make([]rune, len(p.Columns))
	for i, c := range p.Columns {
		height := func(v float64) int { // in eighths of a cell, above the foot of this row
			return min(max(int(math.Round(v/top*rows*8))-row*8, 0), 8)
		}
		cells[i] = ' '
		if height(c.Attempts) >= 4 {
			cells[i] = shade
		}
		if done := height(c.Done); done > 0 {
			cells[i] = eighths[done]
		}
	}
	return string(cells)
}
