package report

import (
	"math"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/figures"
)

// states draws what the guards of each edge and the gates of each service did, one strip per protection that acted.
func (v *view) states() section {
	sec := section{Title: "When each protection acted", ID: "states"}
	detail := v.run.Detail
	if detail == nil || len(detail.States) == 0 || detail.StateBin <= 0 {
		return sec.without("The states of guards were not recorded.")
	}
	for i := range detail.States {
		sec.Plots = append(sec.Plots, v.strips(&detail.States[i], detail.StateBin.Seconds())...)
	}
	sec.Plots = append(sec.Plots, v.gates()...)
	if len(sec.Plots) == 0 {
		return sec.without("No breaker opened, no budget was drawn on, no call waited for a permit and no gate refused " +
			"anything.")
	}
	for _, c := range sec.Plots[:len(sec.Plots)-1] {
		c.XTicks = nil
	}
	sec.Notes = append([]string{
		"One strip per protection of a caller or service that did something; its height is how much.",
	}, v.gateNotes()...)
	return sec
}

// strips returns the strips of one edge.
func (v *view) strips(s *engine.StateStrip, bin float64) []*chart {
	edge := s.Caller + " → " + s.Callee
	var out []*chart
	open, half := wide(s.Open), wide(s.HalfOpen)
	if highest(open) > 0 || highest(half) > 0 {
		c := v.strip(edge+": breaker", bin, 1, unitShare)
		either := make([]float64, len(open))
		for i := range open {
			either[i] = math.Min(open[i]+at(half, i), 1)
		}
		c.area("half", bin, either)
		c.area("open", bin, open)
		c.add("open", "open", unitShare, bin, open, anything)
		if highest(half) > 0 && c.add("probing", "half", unitShare, bin, half, anything) {
			c.Lines[len(c.Lines)-1].Class += " bare" // its shape stands on top of the other
		}
		out = append(out, c.done("Share of the breakers of "+edge+" that are open, over the run."))
	}
	budget := wide(s.Budget)
	if varies(budget) {
		c := v.strip(edge+": retry budget", bin, highest(budget), unitNone)
		c.area("budget", bin, budget)
		c.add("retries left", "budget", unitNone, bin, budget, notNegative)
		out = append(
			out, c.done("Extra attempts that the budgets of "+edge+" would still allow, mean of all callers, over the run."))
	}
	waiting := wide(s.Bulkhead)
	if highest(waiting) > 0 {
		c := v.strip(edge+": bulkhead", bin, highest(waiting), unitNone)
		c.area("bulkhead", bin, waiting)
		c.add("calls waiting", "bulkhead", unitNone, bin, waiting, anything)
		out = append(out, c.done("Calls of "+edge+" that wait for a permit, mean of all callers, over the run."))
	}
	return out
}

// strip returns an empty strip from 0 to top.
func (v *view) strip(title string, bin, top float64, unit string) *chart {
	c := v.stage.timeChart("strip", bin, 2, upTo(top), unit)
	c.Title, c.H = title, coarse
	c.YTicks = []tick{{Share: 1, Text: quantity(top, unit)}}
	return c
}

func (c *chart) done(about string) *chart {
	c.describe(about)
	return c
}

// area fills the space under values, one step per bin.
func (c *chart) area(class string, bin float64, values []float64) {
	values, bin = c.joined(values, bin)
	var p path
	begun, start := false, 0
	for i, v := range values {
		from, to := c.x(c.From+float64(i)*bin), c.x(c.From+float64(i+1)*bin)
		if !figures.Finite(v) || v <= 0 {
			if begun {
				p.close(start, c.H)
			}
			begun = false
			continue
		}
		if !begun {
			start, begun = from, true
			p.move(from, c.y(v))
		} else if y := c.y(v); y != p.y+p.dy {
			p.line(from, y)
		}
		p.line(to, c.y(v))
	}
	if begun {
		p.close(start, c.H)
	}
	if d := p.String(); d != "" {
		c.Fills = append(c.Fills, fill{Class: class, D: d})
	}
}

// wide converts a strip for drawing.
func wide(values []float32) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

func at(values []float64, i int) float64 {
	if i < len(values) {
		return values[i]
	}
	return 0
}

func notNegative(v float64) bool { return v >= 0 }

// varies reports whether a budget, which is -1 where there is none, was ever drawn on.
func varies(values []float64) bool {
	first, seen := 0.0, false
	for _, v := range values {
		if !figures.Finite(v) || v < 0 {
			continue
		}
		if seen && math.Abs(v-first) > 0.01*math.Max(first, 1) {
			return true
		}
		if !seen {
			first, seen = v, true
		}
	}
	return false
}
