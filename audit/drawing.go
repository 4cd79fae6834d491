package audit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// drawing is the graph: services in columns by how far they are from a root.
type drawing struct {
	Width, Height int
	Boxes         []box
	Lines         []arrow
	Left          int // services that are not drawn
}

type box struct {
	X, Y, W, H int
	Name       string
	Short      string // the name as far as it has room
	Database   bool
	Worst      bool // on the worst path
}

type arrow struct {
	Path   string
	X, Y   int // the middle of the label's base line
	Label  string
	Detail string
	Worst  bool

	x1, y1, x2, y2 int
}

const (
	boxHeight = 34
	columnGap = 96
	rowGap    = 26
	edge      = 16
	mostDrawn = 60
	// A letter is about so wide. Names have at most so many.
	letter      = 8
	mostLetters = 32
	lineHeight  = 14
)

// draw lays out the services on the worst path, and the others as far as there is room.
func draw(r *Result) drawing {
	onPath := map[[2]string]lint.Hop{}
	inPath := map[string]bool{}
	if r.Worst != nil {
		for _, h := range r.Worst.Hops {
			onPath[[2]string{h.Call.From, h.Call.To}] = h
			inPath[h.Call.From], inPath[h.Call.To] = true, true
		}
	}
	names := drawn(&r.Form, inPath)
	column := columns(&r.Form, names)
	d := drawing{Left: len(r.Form.Services) - len(names)}
	place := map[string]box{}
	rows := map[int]int{}
	slices.SortStableFunc(names, func(a, b string) int { // the worst path is the first row
		return boolean(inPath[b]) - boolean(inPath[a])
	})
	width := boxWidth(names)
	for _, n := range names {
		c := column[n]
		b := box{X: edge + c*(width+columnGap), Y: edge + rows[c]*(boxHeight+rowGap), W: width, H: boxHeight,
			Name: n, Short: short(n), Worst: inPath[n], Database: isDatabase(&r.Form, n)}
		rows[c]++
		place[n] = b
		d.Boxes = append(d.Boxes, b)
		d.Width, d.Height = max(d.Width, b.X+b.W+edge), max(d.Height, b.Y+b.H+edge)
	}
	for i := range r.Form.Calls {
		c := &r.Form.Calls[i]
		from, ok := place[c.From]
		to, known := place[c.To]
		if ok && known {
			h, worst := onPath[[2]string{c.From, c.To}]
			d.Lines = append(d.Lines, connect(from, to, c, h, worst))
		}
	}
	d.label()
	return d
}

// boxWidth is the width of all boxes, in which the longest name has room.
func boxWidth(names []string) int {
	most := 12
	for _, n := range names {
		most = max(most, utf8.RuneCountInString(short(n)))
	}
	return most*letter + 24
}

// short is a name as far as a box has room for it.
func short(name string) string {
	if r := []rune(name); len(r) > mostLetters {
		return string(r[:mostLetters-1]) + "…"
	}
	return name
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func isDatabase(f *topology.Form, name string) bool {
	return slices.ContainsFunc(f.Services, func(s topology.Service) bool { return s.Name == name && s.Database })
}

// drawn returns the services to draw: those of the path, then those with calls, up to a number that can be looked at.
func drawn(f *topology.Form, inPath map[string]bool) []string {
	var names []string
	add := func(name string) {
		if name != "" && len(names) < mostDrawn && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, s := range f.Services {
		if inPath[s.Name] {
			add(s.Name)
		}
	}
	for _, c := range f.Calls {
		add(c.From)
		add(c.To)
	}
	return names
}

// columns returns how many calls lie between a service and the farthest root.
func columns(f *topology.Form, names []string) map[string]int {
	column := map[string]int{}
	for range names { // cycles end, too
		moved := false
		for _, c := range f.Calls {
			if c.From != "" && slices.Contains(names, c.From) && slices.Contains(names, c.To) &&
				column[c.To] < column[c.From]+1 && column[c.From] < len(names) {
				column[c.To], moved = column[c.From]+1, true
			}
		}
		if !moved {
			break
		}
	}
	return column
}

func connect(from, to box, c *topology.Call, h lint.Hop, worst bool) arrow {
	a := arrow{Worst: worst, x1: from.X + from.W, y1: from.Y + from.H/2, x2: to.X, y2: to.Y + to.H/2}
	middle := (a.x1 + a.x2) / 2
	a.Path = fmt.Sprintf("M%d %d C%d %d %d %d %d %d", a.x1, a.y1, middle, a.y1, middle, a.y2, a.x2-7, a.y2)
	tries := multiplied(c, h)
	if tries > 1 || worst {
		a.Label = "× " + times(tries)
	}
	if math.IsInf(tries, 1) {
		a.Label = "no limit"
	}
	a.Detail = strings.Join(layersOf(c, h), "\n")
	return a
}

// multiplied is how many calls one request becomes: on the worst path the path's own number, so that the numbers of its
// arrows multiply to it, and elsewhere the most that the layers of the call can make.
func multiplied(c *topology.Call, h lint.Hop) float64 {
	if h.Call == nil {
		return lint.Ceiling(c) * math.Max(1, c.PerRequest.Or(1))
	}
	n := h.Times
	for _, f := range h.Factors {
		n *= f.Times
	}
	return n
}

// layersOf describes the layers of a call: those that the path goes through, or else all that do something.
func layersOf(c *topology.Call, h lint.Hop) []string {
	var all []string
	for _, f := range h.Factors {
		all = append(all, layerWords(f))
	}
	for i := range c.Layers {
		l := &c.Layers[i]
		if h.Call != nil || lint.Local(l) {
			continue
		}
		most := 1.0
		for _, rep := range l.Repeats {
			n := float64(rep.Tries.Or(1))
			if n >= topology.Unbounded {
				n = math.Inf(1)
			}
			most = max(most, n)
		}
		all = append(all, layerWords(lint.Factor{Layer: l, Times: most}))
	}
	return all
}

// label puts the labels where they hide neither a box nor each other, if there is such a place on their lines.
func (d *drawing) label() {
	taken := slices.Clone(d.Boxes)
	for i := range d.Lines {
		a := &d.Lines[i]
		if a.Label == "" {
			continue
		}
		spot := a.spot(taken, d.Boxes)
		a.X, a.Y = spot.X+spot.W/2, spot.Y+lineHeight
		taken = append(taken, spot)
	}
}

// spot returns a place for the label, above or below the line, that covers nothing of what is taken, as near to the
// middle of the line as there is one; else the middle.
func (a *arrow) spot(taken, boxes []box) box {
	w := utf8.RuneCountInString(a.Label) * letter
	var all []box
	for _, along := range []float64{0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8, 0.15, 0.85, 0.1, 0.9, 0.04, 0.96} {
		x, y := a.at(along)
		for _, above := range []int{6 + lineHeight, -4} {
			all = append(all, box{X: x - w/2, Y: y - above, W: w, H: lineHeight + 4})
		}
	}
	for _, hidden := range [][]box{taken, boxes} { // rather another label than a service
		for _, here := range all {
			if !slices.ContainsFunc(hidden, here.covers) {
				return here
			}
		}
	}
	return all[0]
}

func (b box) covers(other box) bool {
	return b.X < other.X+other.W && other.X < b.X+b.W && b.Y < other.Y+other.H && other.Y < b.Y+b.H
}

// at is the point of the line so far along it, from 0 to 1: that of a Bézier curve of the third degree.
func (a *arrow) at(along float64) (x, y int) {
	t, s := along, 1-along
	middle := float64(a.x1+a.x2) / 2
	point := func(p0, p1, p2, p3 float64) int {
		return int(s*s*s*p0 + 3*s*s*t*p1 + 3*s*t*t*p2 + t*t*t*p3)
	}
	return point(float64(a.x1), middle, middle, float64(a.x2)),
		point(float64(a.y1), float64(a.y1), float64(a.y2), float64(a.y2))
}
