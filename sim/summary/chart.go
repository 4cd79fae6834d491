package summary

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

const (
	chartRows    = 7  // height of a chart
	chartColumns = 38 // of one of two side by side
	chartAlone   = 76 // of a single one
	axisWidth    = 9  // of the labels on the left
)

// eighths are the blocks that fill a cell from below, by eighths.
var eighths = [...]rune{' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

const attemptShade = '░'

// curve is one variant, binned to the columns of a chart.
type curve struct {
	title             string
	attempts, goodput []float64
	seconds           float64 // that a column stands for
	from, to          float64 // of the trouble, in seconds
}

// charts draws the first run of two variants side by side, to the same scale.
func (p *page) charts(r *sim.Result) {
	var drawn []*sim.VariantResult
	for i := range r.Variants {
		if v := &r.Variants[i]; len(v.Run.Goodput) > 0 && v.Run.BinSeconds > 0 {
			drawn = append(drawn, v)
		}
	}
	if len(drawn) == 0 {
		return
	}
	columns := chartAlone
	if len(drawn) > 1 {
		drawn, columns = []*sim.VariantResult{drawn[0], other(drawn)}, chartColumns
	}
	service := busiest(drawn)
	var curves []curve
	top := 0.0
	for _, v := range drawn {
		c := newCurve(r, v, service, columns)
		curves = append(curves, c)
		for i := range c.goodput {
			top = max(top, c.goodput[i], c.attempts[i])
		}
	}
	what := "attempts"
	if service != "" {
		what += " at " + cut(clean(service), 24)
	}
	a := newAxis(top, curves)
	p.line("\n%s", wrap("", fmt.Sprintf("%c %s and %c answers per second, in the first run; one column is %s%s",
		attemptShade, what, eighths[8], seconds(curves[0].seconds), a.about()), textWidth))
	lines := curves[0].draw(&a, columns)
	if len(curves) > 1 {
		right := curves[1].draw(&a, columns)
		for i := range lines {
			lines[i] = figures.Pad(lines[i], axisWidth+columns+3) + right[i]
		}
	}
	for _, line := range lines {
		p.line("%s", line)
	}
}

// other is the variant to draw beside the first one: the first that fails, or else the last.
func other(drawn []*sim.VariantResult) *sim.VariantResult {
	for _, v := range drawn[1:] {
		if v.Verdict == sim.Fail {
			return v
		}
	}
	return drawn[len(drawn)-1]
}

// busiest is the service with the most attempts per second: where the storm is.
func busiest(variants []*sim.VariantResult) string {
	name, most := "", 0.0
	for _, v := range variants {
		for _, s := range v.Run.Services {
			for _, n := range s.Attempts {
				if n > most {
					name, most = s.Name, n
				}
			}
		}
	}
	return name
}

func newCurve(r *sim.Result, v *sim.VariantResult, service string, columns int) curve {
	bins := len(v.Run.Goodput)
	each := (bins + columns - 1) / columns
	c := curve{
		title:    clean(v.Name),
		goodput:  means(v.Run.Goodput, each, bins),
		attempts: means(nil, each, bins),
		seconds:  float64(each) * v.Run.BinSeconds,
		from:     r.TroubleFrom,
		to:       r.TroubleTo,
	}
	for _, s := range v.Run.Services {
		if s.Name == service {
			c.attempts = means(s.Attempts, each, bins)
		}
	}
	return c
}

// means brings bins together, each so many; what is missing or no number counts as 0.
func means(values []float64, each, bins int) []float64 {
	out := make([]float64, (bins+each-1)/each)
	for i := range out {
		begin, end, sum := i*each, min((i+1)*each, bins), 0.0
		for j := begin; j < end; j++ {
			if j < len(values) && figures.Finite(values[j]) {
				sum += values[j]
			}
		}
		out[i] = sum / float64(end-begin)
	}
	return out
}

// draw returns the lines of a chart, axisWidth + columns wide or less: title, rows, time axis, fault.
func (c *curve) draw(a *axis, columns int) []string {
	lines := []string{strings.Repeat(" ", axisWidth) + cut(c.title, columns)}
	for row := chartRows - 1; row >= 0; row-- {
		lines = append(lines, figures.PadLeft(a.label(row), axisWidth-2)+" ┤"+c.row(row, a))
	}
	return append(lines, strings.Repeat(" ", axisWidth-1)+"└"+c.ruler(), strings.Repeat(" ", axisWidth)+c.mark(columns))
}

// axisNumber is a number that fits the labels.
func axisNumber(v float64) string {
	switch {
	case v >= 999_999.5:
		return figures.Decimals(v/1e6, 1) + " M"
	case v < 10:
		return figures.Decimals(v, 2)
	}
	return figures.Thousands(v)
}

// row draws one line of cells: attempts as a shade, goodput as solid blocks in front of it.
func (c *curve) row(row int, a *axis) string {
	cells := make([]rune, len(c.goodput))
	height := func(n float64) int { // in eighths of a cell, above the foot of this row
		return min(max(int(math.Round(8*a.height(n)))-row*8, 0), 8)
	}
	for i := range cells {
		cells[i] = ' '
		if height(c.attempts[i]) >= 4 {
			cells[i] = attemptShade
		}
		if good := height(c.goodput[i]); good > 0 {
			cells[i] = eighths[good]
		}
	}
	return string(cells)
}

// inTrouble reports whether something is wrong during a column.
func (c *curve) inTrouble(column int) bool {
	begin := float64(column) * c.seconds
	return begin < c.to && begin+c.seconds > c.from
}

// ruler is the time axis: a double line while something is wrong.
func (c *curve) ruler() string {
	cells := make([]rune, len(c.goodput))
	for i := range cells {
		cells[i] = '─'
		if c.inTrouble(i) {
			cells[i] = '═'
		}
	}
	return string(cells)
}

// mark points at the trouble, below the ruler.
func (c *curve) mark(columns int) string {
	for i := range c.goodput {
		if !c.inTrouble(i) {
			continue
		}
		text := " fault: " + seconds(c.from) + " to " + seconds(c.to)
		if length := utf8.RuneCountInString(text); i+1+length > columns && i >= length {
			return strings.Repeat(" ", i-length) + strings.TrimPrefix(text, " ") + " ▲"
		}
		return strings.Repeat(" ", i) + "▲" + cut(text, columns-i-1)
	}
	return ""
}
