package report

import (
	"math"
	"slices"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

const (
	pathPoints    = 80  // of one run in the phase portrait, at most
	recoverySteps = 120 // of the recovery curve, at most
)

// fan draws how goodput spreads over all runs.
func (v *view) fan() section {
	f := &v.variant.Fan
	sec := section{Title: "All " + plural(v.variant.Runs, "run", "runs"), ID: "runs"}
	if len(f.Mid) < 2 || f.BinSeconds <= 0 {
		return sec.without("There was no goodput to compare.")
	}
	top := math.Max(highest(f.High), math.Max(highest(f.Mid), 1))
	y := scale{High: 1}
	if top > 1.001 {
		y = linear(top)
	}
	c := v.stage.timeChart("mid", f.BinSeconds, 2, y, unitShare)
	c.YLabel = "goodput, share of offered"
	c.between("best 5 %", "worst 5 %", "spread", f.BinSeconds, f.High, f.Low)
	c.add("median run", "goodput", unitShare, f.BinSeconds, f.Mid, anything)
	c.describe("Goodput as a share of what was offered: the median of all runs, and the band in which nine of ten lie.")
	sec.Plots = []*chart{c}
	sec.Notes = []string{
		"Goodput by the time the request began. The band holds nine of ten runs; a wide band means that the average says " +
			"little.",
	}
	return sec
}

// between draws a band as one line along its upper edge and back along its lower.
func (c *chart) between(upper, lower, class string, bin float64, high, low []float64) {
	high, _ = c.joined(high, bin)
	low, bin = c.joined(low, bin)
	n := min(len(low), len(high))
	for i := range n {
		if !figures.Finite(low[i]) || !figures.Finite(high[i]) {
			return
		}
	}
	there := label{Name: upper, Class: class, Unit: unitShare, Line: len(c.Lines)}
	back := label{Name: lower, Class: class, Unit: unitShare, Line: len(c.Lines), Back: true}
	if !there.measure(bin, high[:n], anything) || !back.measure(bin, low[:n], anything) {
		return
	}
	var p path
	for i := range n {
		if x, y := c.x((float64(i)+0.5)*bin), c.y(high[i]); i == 0 {
			p.move(x, y)
		} else {
			p.line(x, y)
		}
	}
	for i := n - 1; i >= 0; i-- {
		p.line(c.x((float64(i)+0.5)*bin), c.y(low[i]))
	}
	c.Lines = append(c.Lines, curve{Class: class, D: p.String()})
	c.name(there)
	c.name(back)
}

// phase draws runs in the plane of queue wait and goodput: two places where runs come to rest are two stable states.
func (v *view) phase() section {
	sec := section{Title: "Is it bistable?", ID: "phase", Class: "half"}
	top, bin := 0.0, v.variant.Fan.BinSeconds
	for i := range v.variant.Paths {
		top = math.Max(top, highest(v.variant.Paths[i].Wait))
	}
	if len(v.variant.Paths) == 0 || bin <= 0 {
		return sec.without("No run was kept for it.")
	}
	if top < 0.001 {
		return sec.without("No queue ever held requests for 1 ms.")
	}
	x := logarithmic(0.001, top)
	c := &chart{Class: "square", W: coarse * 4, H: coarse * 4, Y: scale{High: 1}, XTicks: x.ticks(unitTime),
		XLabel: "queue wait (longest of all services), log", YLabel: "goodput, share of offered"}
	c.YTicks = c.Y.ticks(unitShare)
	runs := v.variant.Paths[:min(len(v.variant.Paths), v.stage.paths)]
	for i := range runs {
		v.phasePath(c, x, &runs[i])
	}
	c.Name, c.Desc = plural(len(runs), "run", "runs")+" in the plane of queue wait and goodput, before, during and "+
		"after the trouble.", v.ends(runs)
	sec.Plots, sec.Legend = []*chart{c}, "phase"
	sec.Notes = []string{plural(len(runs), "run", "runs") + ", one line each; a dot is where a run ends. " + v.ends(runs)}
	return sec
}

// ends says where the paths come to rest.
func (v *view) ends(runs []sim.Path) string {
	up, down, never := 0, 0, 0
	for i := range runs {
		if mean(runs[i].Goodput, 0, 0.05) < 0.5 {
			never++
		}
		if g := mean(runs[i].Goodput, 0.9, 1); g >= 0.9 {
			up++
		} else if g < 0.5 {
			down++
		}
	}
	switch {
	case down == len(runs) && never == len(runs):
		return "All are down low from the beginning."
	case up > 0 && down > 0:
		return "Some end up high and some down low: the same system has two states in which it stays."
	case down > 0 && down == len(runs):
		return "All end down low: once there, the system does not come back by itself."
	case up == len(runs):
		return "All come back to where they began."
	}
	return "Where they end is spread out."
}

// phasePath draws one run, in pieces before, during and after the trouble.
func (v *view) phasePath(c *chart, x scale, run *sim.Path) {
	n := min(len(run.Wait), len(run.Goodput))
	if n < 2 {
		return
	}
	r, bin := v.stage.result, v.variant.Fan.BinSeconds
	most := max(pathPoints/v.stage.join, 12)
	step := max((n+most-1)/most, 1)
	classes := [...]string{"before", "during", "after"}
	window := func(i int) int {
		switch at := (float64(i) + 0.5) * bin; {
		case at >= r.TroubleTo:
			return 2
		case at >= r.TroubleFrom:
			return 1
		}
		return 0
	}
	var pieces [3]path
	last, lastX, lastY := -1, 0, 0
	for i, end := 0, 0; i < n; i = end {
		piece := window(i)
		for end = i + 1; end < min(i+step, n) && window(end) == piece; {
			end++
		}
		px := int(math.Round(float64(x.share(average(run.Wait[i:end])) * float64(c.W))))
		py := c.y(average(run.Goodput[i:end]))
		switch {
		case last < 0:
			pieces[piece].move(px, py)
		case last != piece: // on from where the piece before ends
			pieces[piece].move(lastX, lastY)
		}
		if last >= 0 {
			pieces[piece].line(px, py)
		}
		last, lastX, lastY = piece, px, py
	}
	for i := range pieces {
		if d := pieces[i].String(); d != "" {
			c.Lines = append(c.Lines, curve{Class: classes[i], D: d})
		}
	}
	var rest path
	rest.move(lastX, lastY)
	c.Lines = append(c.Lines, curve{Class: "dot " + classes[last], D: rest.String()})
}

// average returns the mean of the numbers among values.
func average(values []float64) float64 { return mean(values, 0, 1) }

// recovery draws which share of the runs had recovered by when.
func (v *view) recovery() section {
	sec := section{Title: "Time to recover", ID: "recovery", Class: "half"}
	times, runs := v.variant.Recovery, v.variant.Runs
	times = slices.DeleteFunc(slices.Clone(times), func(t float64) bool { return !figures.Finite(t) || t < 0 })
	slices.Sort(times)
	if !v.stage.trouble() {
		return sec.without("Nothing goes wrong in this scenario.")
	}
	if runs <= 0 {
		return sec.without("There were no runs.")
	}
	if len(times) == 0 {
		return sec.without("Not one of " + plural(runs, "run", "runs") + " recovered.")
	}
	share := func(i int) float64 { return math.Min(float64(i)/float64(runs), 1) }
	last := times[len(times)-1]
	c := &chart{
		Class:  "square",
		To:     linear(math.Max(last*1.05, 0.01)).High,
		Y:      scale{High: 1},
		W:      coarse * 4,
		H:      coarse * 4,
		XLabel: "after the end of the trouble",
		YLabel: "share of runs that recovered",
	}
	c.YTicks, c.XTicks = c.Y.ticks(unitShare), timeTicks(0, c.To)
	var p path
	p.move(0, c.H)
	most := max(recoverySteps/v.stage.join, 30)
	step := (len(times) + most - 1) / most
	for i := step; i < len(times)+step; i += step {
		k := min(i, len(times))
		x := c.x(times[k-1])
		p.line(x, p.y+p.dy)
		p.line(x, c.y(share(k)))
	}
	p.line(c.W, p.y+p.dy)
	c.Lines = append(c.Lines, curve{Class: "goodput", D: p.String()})
	text := figures.Thousands(float64(len(times))) + " of " + plural(runs, "run", "runs") + " recovered"
	if half := (runs + 1) / 2; half <= len(times) {
		text += ", half of all within " + seconds(times[half-1])
	}
	if most := int(math.Ceil(0.99 * float64(runs))); most <= len(times) {
		text += ", 99 % within " + seconds(times[most-1])
	}
	c.Name = "Share of the runs that had recovered, by the time since the end of the trouble."
	c.Desc, sec.Notes = text+".", []string{text + ". A curve that ends below 100 % leaves runs that never did."}
	if len(times) == runs {
		sec.Notes[0] = text + "."
	}
	sec.Plots = []*chart{c}
	return sec
}
