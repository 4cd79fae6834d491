package drill

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// plotRows is the height of a plot.
const plotRows = 8

// eighths are the blocks that fill a cell from below, by eighths.
var eighths = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

const attemptShade = '░'

// plotTop returns the attempts per second that the top of all plots stands for, so that acts can be compared by eye.
func (r *Result) plotTop() float64 {
	top := 1.0
	for _, a := range r.Acts {
		for _, b := range a.Series {
			top = max(top, float64(b.Attempts)/a.BinSeconds, float64(b.Answered)/a.BinSeconds)
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(top))) / 5
	return math.Ceil(top/step) * step
}

// Plot draws one act: attempts as a shade, goodput as solid blocks in front of it, and the trouble below. It is at most
// 80 columns wide.
func (a *ActResult) Plot(s Setup, top float64) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: attempts %c and answers %c per second, one column is %.3g s\n", a.Act, attemptShade, eighths[8], a.BinSeconds)
	for row := plotRows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case plotRows - 1:
			label = thousands(top)
		case 0:
			label = "0"
		}
		fmt.Fprintf(&out, "%8s ┤%s\n", label, strings.TrimRight(a.plotRow(row, top), " "))
	}
	fmt.Fprintf(&out, "%8s └%s\n", "", a.ruler(s))
	begin := min(int(s.BeforeSeconds/a.BinSeconds), max(68-utf8.RuneCountInString(s.Trouble), 0))
	fmt.Fprintf(&out, "%10s%s▲ %s\n", "", strings.Repeat(" ", begin), s.Trouble)
	return out.String()
}

// plotRow draws one line of cells.
func (a *ActResult) plotRow(row int, top float64) string {
	cells := make([]rune, len(a.Series))
	for i, b := range a.Series {
		cells[i] = ' '
		height := func(n int) int { // in eighths of a cell, above the foot of this row
			all := math.Round(float64(n) / a.BinSeconds / top * plotRows * 8)
			return min(max(int(all)-row*8, 0), 8)
		}
		if height(b.Attempts) >= 4 {
			cells[i] = attemptShade
		}
		if good := height(b.Answered); good > 0 {
			cells[i] = eighths[good]
		}
	}
	return string(cells)
}

// ruler is the time axis: a double line while something is wrong.
func (a *ActResult) ruler(s Setup) string {
	cells := make([]rune, len(a.Series))
	for i, b := range a.Series {
		cells[i] = '─'
		if b.AtSeconds >= s.BeforeSeconds && b.AtSeconds < s.BeforeSeconds+s.TroubleSeconds {
			cells[i] = '═'
		}
	}
	return string(cells)
}
