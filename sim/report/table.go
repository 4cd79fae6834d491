package report

import (
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

// table holds the measures of all variants side by side.
type table struct {
	Names   []string
	Rows    []tableRow
	Differs bool // from the first variant, in some cell
}

type tableRow struct {
	Name  string
	Cells []tableCell
}

// tableCell is the median over the runs, between what nine of ten lie, and the difference from the first variant.
type tableCell struct{ Value, Small, Difference string }

// newTable returns nil when nothing was measured. Rows are in the order of the first variant that has them.
func newTable(r *sim.Result) *table {
	t := &table{}
	rows := map[string]int{}
	for i := range r.Variants {
		t.Names = append(t.Names, r.Variants[i].Name)
		for j := range r.Variants[i].Measures {
			m := &r.Variants[i].Measures[j]
			at, ok := rows[m.Name]
			if !ok {
				at = len(t.Rows)
				rows[m.Name] = at
				t.Rows = append(t.Rows, tableRow{Name: m.Name, Cells: make([]tableCell, len(r.Variants))})
				for k := range t.Rows[at].Cells {
					t.Rows[at].Cells[k].Value = nothing
				}
			}
			t.Rows[at].Cells[i] = newTableCell(m)
		}
		for j := range r.Variants[i].Differences {
			d := &r.Variants[i].Differences[j]
			if at, ok := rows[d.Measure]; ok && i > 0 {
				text := difference(d)
				t.Rows[at].Cells[i].Difference = text
				t.Differs = t.Differs || text != ""
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

func newTableCell(m *sim.Measure) tableCell {
	if m.Finite == 0 {
		never := nothing
		if measure := measureOf(m.Name); measure == "recovery" || measure == "drained" {
			never = "never"
		}
		return tableCell{Value: never}
	}
	unit := m.Unit
	low, high := maybe(m.Value.P05, unit, "never"), maybe(m.Value.P95, unit, "never")
	c := tableCell{Value: maybe(m.Value.P50, unit, "never")}
	if low != high {
		c.Small = low + " to " + high
	}
	return c
}

// difference writes a difference that chance alone does not explain, and nothing for another one.
func difference(d *sim.Difference) string {
	if !(d.Low > 0 || d.High < 0) || !figures.Finite(d.Mean) || !figures.Finite(d.Low) || !figures.Finite(d.High) {
		return ""
	}
	mean := signed(d.Mean, d.Unit)
	if !strings.ContainsAny(mean, "123456789") { // too small to be worth a line
		return ""
	}
	text := "Δ" + space + mean
	if low, high := signed(d.Low, d.Unit), signed(d.High, d.Unit); low != mean || high != mean {
		text += " (" + low + space + "to" + space + high + ")"
	}
	return text // which may break before the interval
}

// signed writes a change, of a share in points of a percent.
func signed(v float64, unit string) string {
	sign, size := "+", math.Abs(v)
	if v < 0 {
		sign = "−"
	}
	if unit == unitShare {
		return sign + number(size*100) + space + "pt"
	}
	return sign + quantity(size, unit)
}

// sparks draws the small storm of each card, all on one scale.
func (p *page) sparks() {
	top := 0.0
	for _, v := range p.Views {
		top = math.Max(top, highest(v.run.Offered))
		if v.focus >= 0 {
			top = math.Max(top, highest(v.run.Services[v.focus].Attempts))
		}
	}
	if top == 0 {
		return
	}
	for i, v := range p.Views {
		run := v.run
		bin, join := run.BinSeconds, (len(run.Offered)+99)/100
		st := stage{result: v.stage.result, to: v.stage.to}
		c := st.timeChart("spark", bin*float64(join), 2, upTo(float64(top*1.05)), unitCount)
		c.Time, c.H, c.YTicks, c.XTicks = false, coarse, nil, nil
		add := func(name, class string, values []float64) {
			c.add(name, class, unitRate, bin*float64(join), joined(values, join), anything)
		}
		add("offered", "offered", run.Offered)
		if v.focus >= 0 {
			add("attempts", "attempts", run.Services[v.focus].Attempts)
		}
		add("goodput", "goodput", run.Goodput)
		c.describe("The storm of " + v.Name + " in small, on the same scale for all variants.")
		c.Labels = nil
		if len(c.Lines) > 0 {
			p.Cards[i].Spark, p.Sparks = c, true
		}
	}
}

// joined returns the means of every n values.
func joined(values []float64, n int) []float64 {
	var out []float64
	for i := 0; i < len(values); i += max(n, 1) {
		part := values[i:min(i+n, len(values))]
		if !slices.ContainsFunc(part, figures.Finite) { // a gap stays one
			out = append(out, math.NaN())
			continue
		}
		out = append(out, average(part))
	}
	return out
}
