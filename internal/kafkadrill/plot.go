package kafkadrill

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

// plotTop is what the top of both plots stands for. What the worst seconds need above it is cut off: the normal load must stay visible.
func (r *Result) plotTop() float64 {
	const most = 4 // times the capacity
	top := 1.0
	for _, a := range r.Acts {
		for _, p := range a.Series {
			top = max(top, float64(p.Attempts), float64(p.Handled))
		}
	}
	top = min(top, most*r.Setup.CapacityPerSecond)
	step := math.Pow(10, math.Floor(math.Log10(top))) / 5
	return math.Ceil(top/step) * step
}

// plot draws one act, a column per second: attempts as a shade, what was handled as solid blocks in front of it, the outage below.
func (a *ActResult) plot(s Setup, top float64) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: attempts %c and messages handled %c per second\n", a.Act, attemptShade, eighths[8])
	for row := plotRows - 1; row >= 0; row-- {
		label := ""
		switch row {
		case plotRows - 1:
			label = fmt.Sprintf("%.0f", top)
		case 0:
			label = "0"
		}
		fmt.Fprintf(&out, "%6s ┤%s\n", label, strings.TrimRight(a.plotRow(row, top), " "))
	}
	ruler := make([]rune, len(a.Series))
	for i, p := range a.Series {
		ruler[i] = '─'
		if p.AtSeconds >= s.BeforeSeconds && p.AtSeconds < s.BeforeSeconds+s.OutageSeconds {
			ruler[i] = '═'
		}
	}
	said := fmt.Sprintf("▲ outage of %.3g s", s.OutageSeconds)
	fmt.Fprintf(&out, "%6s └%s\n", "", string(ruler))
	fmt.Fprintf(&out, "%8s%s%s\n", "", strings.Repeat(" ", min(int(s.BeforeSeconds), max(70-utf8.RuneCountInString(said), 0))), said)
	return out.String()
}

// plotRow draws one line of cells.
func (a *ActResult) plotRow(row int, top float64) string {
	cells := make([]rune, len(a.Series))
	for i, p := range a.Series {
		cells[i] = ' '
		height := func(n int) int { // in eighths of a cell, above the foot of this row
			return min(max(int(math.Round(float64(n)/top*plotRows*8))-row*8, 0), 8)
		}
		if height(p.Attempts) >= 4 {
			cells[i] = attemptShade
		}
		if done := height(p.Handled); done > 0 {
			cells[i] = eighths[done]
		}
	}
	return string(cells)
}
