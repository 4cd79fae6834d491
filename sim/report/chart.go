package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/sim"
	"github.com/abate-go/abate/sim/figures"
)

// chart is one drawing with its axes. Its drawing area is W wide and H high and is stretched to the page;
// everything with letters stands beside it as text, so that it stays readable at any width.
type chart struct {
	Class  string // of its height: "tall", "mid", "strip", "half"
	Name   string // in a few words
	Title  string // of one of several in a section
	Desc   string // what it shows, in words
	YLabel string
	XLabel string
	Time   bool    // shares the cursor and zoom of the variant
	From   float64 // seconds at the left edge
	To     float64 // and at the right
	W, H   int     // of the drawing
	join   int     // values that are drawn as one; 0 for one
	Y      scale
	YTicks []tick
	XTicks []tick
	Lane   []fault // faults as labelled bars above
	Bands  []band  // shaded behind
	Fills  []fill
	Rules  []rule // vertical marks with a word
	Lines  []curve
	Labels []label
	Gutter bool // room for labels, even without any
}

// band is a shaded stretch of the time axis, in units of the drawing.
type band struct{ X, W int }

// fill is a shape that is not read back. With a thickness it is drawn with a pen that thick, in units of the drawing.
type fill struct {
	Class, D, Transform string
	Thick               int
}

// curve is a line.
type curve struct{ Class, D string }

// label names a line beside it.
type label struct {
	Name, Class, Unit string
	Value             string  // of a line that is level
	Line              int     // which one
	Back              bool    // the way back of a line that goes there and back
	At                float64 // in percent from the head
	first, last, top  point
}

// point is a value at a time.
type point struct{ at, value float64 }

// rule is a vertical mark.
type rule struct {
	X    int
	At   string // percent from the left, for its text
	Text string
	End  bool // its text stands to the left of it
}

// fault is a labelled bar above a time chart.
type fault struct {
	Text, From, To string // seconds
	Left, Width    string // percent
	End            bool   // its text ends at the right edge
}

// stage holds what all time charts of a variant share.
type stage struct {
	detail
	result *sim.Result
	to     float64
}

// trouble reports whether anything goes wrong in the scenario.
func (s *stage) trouble() bool { return s.result.TroubleTo > s.result.TroubleFrom }

// timeChart returns an empty chart of the whole run with steps drawing units per bin of so many seconds.
func (s *stage) timeChart(class string, bin float64, steps int, y scale, unit string) *chart {
	c := &chart{Class: class, Time: true, To: s.to, Y: y, YTicks: y.ticks(unit), XTicks: timeTicks(0, s.to), W: 1,
		H: resolution}
	if s.join > 1 {
		c.join, bin = s.join, bin*float64(s.join)
	}
	if bin > 0 {
		c.W = int(math.Round(math.Max(1, math.Min(float64(s.to/bin*float64(steps)), 1e6))))
	}
	for _, f := range s.result.Faults {
		from, to := s.clip(f.From), s.clip(f.To)
		if to > from {
			x := int(math.Round(float64(from / s.to * float64(c.W))))
			c.Bands = append(c.Bands, band{x, max(int(math.Round(float64(to/s.to*float64(c.W))))-x, 1)})
		}
	}
	c.Bands = union(c.Bands)
	return c
}

// clip moves a time into the run.
func (s *stage) clip(t float64) float64 {
	if !figures.Finite(t) {
		return 0
	}
	return math.Max(0, math.Min(t, s.to))
}

// union joins bands that overlap, so that shades do not add up.
func union(bands []band) []band {
	slices.SortStableFunc(bands, func(a, b band) int { return a.X - b.X })
	var out []band
	for _, b := range bands {
		if n := len(out); n > 0 && b.X <= out[n-1].X+out[n-1].W {
			out[n-1].W = max(out[n-1].W, b.X+b.W-out[n-1].X)
			continue
		}
		out = append(out, b)
	}
	return out
}

// lane returns the faults as bars with words, at most six.
func (s *stage) lane() []fault {
	var out []fault
	for _, f := range s.result.Faults[:min(len(s.result.Faults), 6)] {
		from, to := s.clip(f.From), s.clip(f.To)
		text := f.Text
		if to > from {
			text += ", " + seconds(to-from)
		}
		out = append(out, fault{
			Text: text, From: figures.Decimals(from, 3), To: figures.Decimals(to, 3),
			Left: place(from / s.to), Width: place((to - from) / s.to), End: from > s.to*0.6,
		})
	}
	return out
}

// anything draws every value that is a number.
func anything(float64) bool { return true }

// positive leaves out what was not there to measure.
func positive(v float64) bool { return v > 0 }

// add draws values, one per bin of so many seconds, each in the middle of its bin; what shown refuses is a gap. It
// reports whether there was anything to draw.
func (c *chart) add(name, class, unit string, bin float64, values []float64, shown func(float64) bool) bool {
	values, bin = c.joined(values, bin)
	var p path
	gap := true
	for i, v := range values {
		if !figures.Finite(v) || !shown(v) {
			gap = true
			continue
		}
		if x, y := c.x((float64(i)+0.5)*bin), c.y(v); gap {
			p.move(x, y)
		} else {
			p.line(x, y)
		}
		gap = false
	}
	l := label{Name: name, Class: class, Unit: unit, Line: len(c.Lines)}
	if !l.measure(bin, values, shown) {
		return false
	}
	c.Lines = append(c.Lines, curve{Class: class, D: p.String()})
	c.name(l)
	return true
}

// joined returns values as they are drawn.
func (c *chart) joined(values []float64, bin float64) ([]float64, float64) {
	if c.join < 2 {
		return values, bin
	}
	return joined(values, c.join), bin * float64(c.join)
}

// measure notes where a line begins, ends and is highest. It reports whether there are two points at least.
func (l *label) measure(bin float64, values []float64, shown func(float64) bool) bool {
	n := 0
	for i, v := range values {
		if !figures.Finite(v) || !shown(v) {
			continue
		}
		here := point{(float64(i) + 0.5) * bin, v}
		if n == 0 {
			l.first, l.top = here, here
		}
		if v > l.top.value {
			l.top = here
		}
		l.last = here
		n++
	}
	return n > 1
}

// name puts a label beside the end of its line.
func (c *chart) name(l label) {
	if l.Name != "" {
		l.At = 100 - float64(100*c.Y.share(l.last.value))
		c.Labels = append(c.Labels, l)
	}
}

// x returns the place of a moment; what is beyond the chart stands at its edge.
func (c *chart) x(at float64) int {
	share := (at - c.From) / (c.To - c.From)
	if !figures.Finite(share) {
		return 0
	}
	return int(math.Round(float64(math.Max(0, math.Min(share, 1)) * float64(c.W))))
}

// y returns the place of a value; the y axis of a drawing points down.
func (c *chart) y(v float64) int { return c.H - int(math.Round(float64(c.Y.share(v)*float64(c.H)))) }

// level draws a horizontal line through the whole chart.
func (c *chart) level(name, class, unit string, value float64) {
	if !figures.Finite(value) || value < c.Y.Low || value > c.Y.High*1.0001 {
		return
	}
	var p path
	p.move(0, c.y(value))
	p.line(c.W, c.y(value))
	at := point{0, value}
	c.name(label{Name: name, Class: class, Unit: unit, Value: quantity(value, unit), Line: len(c.Lines), first: at,
		last: at, top: at})
	c.Lines = append(c.Lines, curve{Class: class, D: p.String()})
}

// labelHeight is the distance that labels beside lines need, in percent of the chart's height.
var labelHeight = map[string]float64{"tall": 7.6, "mid": 10.6, "strip": 40, "half": 8}

// spread moves labels apart that would stand on each other.
func (c *chart) spread() {
	order := make([]*label, len(c.Labels))
	for i := range c.Labels {
		order[i] = &c.Labels[i]
	}
	slices.SortStableFunc(order, func(a, b *label) int { return cmp.Compare(a.At, b.At) })
	gap := labelHeight[c.Class]
	for i := 1; i < len(order); i++ {
		order[i].At = math.Max(order[i].At, order[i-1].At+gap)
	}
	low := 100.0
	for i := len(order) - 1; i >= 0; i-- {
		order[i].At = math.Min(order[i].At, low)
		low = order[i].At - gap
	}
}

// describe puts the lines into words, for those who do not see them.
func (c *chart) describe(about string) {
	var parts []string
	for _, l := range c.Labels {
		if l.first.value == l.top.value && l.last.value == l.top.value {
			parts = append(parts, l.Name+" "+quantity(l.last.value, l.Unit)+".")
			continue
		}
		parts = append(parts, l.Name+" begins at "+quantity(l.first.value, l.Unit)+", is highest with "+quantity(
			l.top.value, l.Unit)+
			" at "+seconds(l.top.at)+" and ends at "+quantity(l.last.value, l.Unit)+".")
	}
	c.Name, c.Desc = about, strings.Join(parts, " ")
	c.spread()
}

// Grid returns the horizontal lines at the marks of the y axis.
func (c *chart) Grid() string {
	var p path
	for _, t := range c.YTicks {
		y := c.H - int(math.Round(float64(t.Share*float64(c.H))))
		p.move(0, y)
		p.line(c.W, y)
	}
	return p.String()
}
