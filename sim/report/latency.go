package report

import (
	"math"
	"strconv"

	"github.com/abate-go/abate/sim/engine"
	"github.com/abate-go/abate/sim/figures"
)

// heatClasses is how many shades a heat map has.
const heatClasses = 6

// latency draws how long answers took: a heat map of all of them, with the median and the 99th percentile over it.
func (v *view) latency() section {
	run := v.run
	sec := section{Title: "Latency of answered requests", ID: "latency"}
	low, high := heatRange(run.Detail)
	for _, p := range append(append([]float64(nil), run.P50...), run.P99...) {
		if figures.Finite(p) && p > 0 {
			low, high = math.Min(low, p), math.Max(high, p)
		}
	}
	if high <= 0 {
		return sec.without("No request was answered.")
	}
	y := logarithmic(math.Max(low, 1e-3), high)
	c := v.stage.timeChart("mid", run.BinSeconds, 2, y, unitTime)
	c.YLabel = "time to answer, log"
	if run.Detail != nil {
		c.Fills = c.heat(run.Detail, v.stage.columns)
	}
	c.add("p50", "p50", unitTime, run.BinSeconds, run.P50, positive)
	c.add("p99", "p99", unitTime, run.BinSeconds, run.P99, positive)
	c.describe("Time from a request to its answer; the darker, the more answers took that long.")
	sec.Plots = []*chart{c}
	if len(c.Fills) > 0 {
		sec.Notes = []string{
			"The stronger the colour, the more answers took that long, on a scale of logarithms. Two separate ridges are two " +
				"groups of users, which percentiles alone would hide.",
		}
		sec.Legend = "heat"
	}
	return sec
}

// heatRange returns the latencies that a heat map covers.
func heatRange(d *engine.Detail) (low, high float64) {
	low = math.Inf(1)
	if d == nil {
		return low, 0
	}
	for _, column := range d.Heat {
		for row, n := range column {
			if n > 0 {
				low, high = math.Min(low, rowFloor(row)), math.Max(high, rowFloor(row+1))
			}
		}
	}
	return low, high
}

// rowFloor is the shortest latency of a row, in seconds: 1 ms × 2^(row/2).
func rowFloor(row int) float64 { return 0.001 * math.Exp2(float64(row)/2) }

// heat returns one drawing per shade. Columns are joined until there are at most most of them.
func (c *chart) heat(d *engine.Detail, most int) []fill {
	if len(d.Heat) == 0 || d.HeatBin <= 0 {
		return nil
	}
	join := (len(d.Heat) + most - 1) / most
	columns := make([][engine.HeatRows]float64, (len(d.Heat)+join-1)/join)
	top := 0.0
	for i, column := range d.Heat {
		for row, n := range column {
			columns[i/join][row] += float64(n)
			top = math.Max(top, columns[i/join][row])
		}
	}
	if top == 0 {
		return nil
	}
	shades := make([]path, heatClasses+1)
	for row := range engine.HeatRows {
		heatRow(shades, columns, row, top, c)
	}
	perColumn := float64(join) * d.HeatBin.Seconds() / c.To * float64(c.W)
	var fills []fill
	for i := 1; i <= heatClasses; i++ {
		if text := shades[i].String(); text != "" {
			fills = append(fills,
				fill{Class: "cell h" + strconv.Itoa(i), D: text, Transform: "scale(" + figures.Decimals(perColumn, 5) + " 1)",
					Thick: int(math.Ceil(float64(math.Ln2 / 2 / math.Log(c.Y.High/c.Y.Low) * float64(c.H))))})
		}
	}
	return fills
}

// heatRow adds the cells of one row to the drawings of their shades, neighbours of the same shade as one line in the
// middle of the row.
func heatRow(shades []path, columns [][engine.HeatRows]float64, row int, top float64, c *chart) {
	middle := c.y(rowFloor(row) * math.Sqrt(math.Sqrt2))
	for i := 0; i < len(columns); {
		shade, end := shadeOf(columns[i][row], top), i+1
		for end < len(columns) && shadeOf(columns[end][row], top) == shade {
			end++
		}
		if shade > 0 {
			shades[shade].move(i, middle)
			shades[shade].line(end, middle)
		}
		i = end
	}
}

// shadeOf returns the shade of a cell with n of at most top answers, 0 for none.
func shadeOf(n, top float64) int {
	if n <= 0 {
		return 0
	}
	share := math.Log1p(n) / math.Log1p(top)
	return max(min(int(math.Ceil(float64(share*heatClasses))), heatClasses), 1)
}
