package audit

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// HTML writes one page for a browser, which needs no network: the graph with the attempts on its calls, findings, the
// verdict and the changes.
func HTML(w io.Writer, r *Result) error {
	p := pageData{Result: r, Graph: draw(r), Errors: count(r.Count(lint.Error), "error"),
		Warnings: count(r.Count(lint.Warning), "warning")}
	p.Title = "No call is repeated, as far as these files say."
	if r.Worst != nil {
		p.Title = capital(r.Worst.Headline()) + "."
	}
	for _, f := range r.Findings {
		p.Findings = append(p.Findings, pageFinding{Finding: f, Place: place(f), Level: level(f.Severity)})
	}
	for _, v := range r.Verdicts {
		p.Verdicts = append(p.Verdicts, pageVerdict{v, Fails(v.Outcome)})
	}
	return page.Execute(w, p)
}

type pageData struct {
	*Result
	Title, Errors, Warnings string
	Graph                   drawing
	Findings                []pageFinding
	Verdicts                []pageVerdict
}

type pageFinding struct {
	Finding
	Place, Level string
}

type pageVerdict struct {
	Verdict
	How string
}

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
	Database   bool
	Worst      bool // on the worst path
}

type arrow struct {
	Path   string
	X, Y   int
	Label  string
	Detail string
	Worst  bool
}

const (
	boxWidth  = 150
	boxHeight = 34
	columnGap = 96
	rowGap    = 26
	edge      = 16
	mostDrawn = 60
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
	for _, n := range names {
		c := column[n]
		b := box{X: edge + c*(boxWidth+columnGap), Y: edge + rows[c]*(boxHeight+rowGap), W: boxWidth, H: boxHeight,
			Name: n, Worst: inPath[n], Database: isDatabase(&r.Form, n)}
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
	return d
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
	x1, y1, x2, y2 := from.X+from.W, from.Y+from.H/2, to.X, to.Y+to.H/2
	middle := (x1 + x2) / 2
	a := arrow{Path: fmt.Sprintf("M%d %d C%d %d %d %d %d %d", x1, y1, middle, y1, middle, y2, x2-7, y2), X: middle,
		Y: (y1+y2)/2 - 6, Worst: worst}
	tries := 1.0
	var details []string
	for i := range c.Layers {
		l := &c.Layers[i]
		most := 1
		for _, rep := range l.Repeats {
			most = max(most, rep.Tries.Or(1))
		}
		n := float64(most)
		if worst && i < len(h.Factors) {
			n = h.Factors[i].Times
		}
		tries *= n
		details = append(details, layerWords(lint.Factor{Layer: l, Times: n}))
	}
	if tries > 1 || worst {
		a.Label = "× " + times(tries*math.Max(1, c.PerRequest.Or(1)))
	}
	a.Detail = strings.Join(details, "\n")
	return a
}
