package report

import (
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim/figures"
)

// fineStep is the width of a bin of the arrivals around recovery.
const fineStep = 0.01

// arrivals draws the attempts around the end of the trouble, fine enough to see callers that act in step.
func (v *view) arrivals() section {
	sec := section{Title: "Arrivals around recovery", ID: "arrivals"}
	detail := v.run.Detail
	if detail == nil || len(detail.Fine.Services) == 0 || len(v.run.Services) == 0 {
		return sec.without("The arrivals were not recorded at 10 ms.")
	}
	if !v.stage.trouble() {
		return sec.without("Nothing goes wrong in this scenario.")
	}
	from := detail.Fine.From.Seconds()
	scale := math.Max(float64(v.stage.result.Scale), 1) // what was counted is smaller by it than what is shown
	for _, i := range v.busiest(detail.Fine.Services) {
		counts := detail.Fine.Services[i]
		values := make([]float64, min(len(counts), v.stage.bars))
		for j, n := range counts[:len(values)] {
			values[j] = float64(n) * scale
		}
		sec.Plots = append(sec.Plots, v.fine(i, from, values))
	}
	if len(sec.Plots) == 0 {
		return sec.without("No attempt was made around the end of the trouble.")
	}
	sec.Notes = []string{"Attempts in each 10 ms. Narrow spikes are callers that retry in step; jitter flattens them."}
	return sec
}

// busiest returns a few services with the highest peaks, in the order of the scenario.
func (v *view) busiest(fine [][]uint16) []int {
	var order []int
	for i := range min(len(fine), len(v.run.Services)) {
		if len(fine[i]) > 1 && slices.Max(fine[i]) > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(slices.Max(fine[b])) - int(slices.Max(fine[a])) })
	order = order[:min(len(order), v.stage.fine)]
	slices.Sort(order)
	return order
}

// fine draws the arrivals at one service.
func (v *view) fine(i int, from float64, values []float64) *chart {
	s := &v.run.Services[i]
	limit := s.Capacity * fineStep
	top := math.Max(highest(values), 4) // below it the marks of the axis would not be whole numbers
	if limited(s) && limit < 4*top {
		top = math.Max(top, limit)
	}
	to := from + float64(len(values))*fineStep
	c := &chart{Class: "half", Title: s.Name + ", attempts per 10 ms", From: from, To: to, W: len(values), H: coarse,
		Gutter: true, Y: linear(top)}
	c.YTicks = c.Y.ticks(unitCount)
	end := v.stage.result.TroubleTo
	for _, t := range timeTicks(from-end, to-end) {
		t.Text = strings.Replace(t.Text, "-", "−", 1)
		c.XTicks = append(c.XTicks, t)
	}
	c.area("bars", fineStep, values)
	if limited(s) {
		c.level("capacity", "capacity", unitNone, limit)
	}
	c.rule("trouble ends", end)
	peak, when := peakOf(values, fineStep)
	c.describe("Attempts at " + s.Name + " in each 10 ms around the end of the trouble; most: " + figures.Thousands(peak) +
		" at " + seconds(from+when) + ".")
	return c
}

// rule marks a moment.
func (c *chart) rule(text string, at float64) {
	if at < c.From || at > c.To {
		return
	}
	share := (at - c.From) / (c.To - c.From)
	c.Rules = append(c.Rules, rule{X: c.x(at), At: place(share), Text: text, End: share > 0.6})
}
