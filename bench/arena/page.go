package main

import (
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"strings"
)

// pageName is the page with the curves.
const pageName = "index.html"

// Size of one chart, in pixels.
const (
	chartWidth  = 230.0
	chartHeight = 76.0
)

// chart is one contender's day for the template.
type chart struct {
	Name, What, Cell, Note string
	Answered, Sent         string // points of a line
	Trouble                []band
	Width, Height, Good    float64
}

// band is a stretch of time in pixels.
type band struct{ X, Width float64 }

// section is one day for the template.
type section struct {
	Name, What string
	Charts     []chart
}

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>The arena</title><style>
body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:1240px;padding:0 1em;color:#222;background:#fff}
section>div{display:flex;flex-wrap:wrap;gap:14px}figure{margin:0;width:230px}figcaption{font-size:12px}
svg{background:#f6f7f9;display:block}.t{fill:#f4d9d6}.g{stroke:#bbb;stroke-dasharray:3 3}
.a{fill:none;stroke:#1a6fb4;stroke-width:1.8}.s{fill:none;stroke:#c9822b;stroke-width:1}
</style></head><body><h1>The arena</h1>
<p>Blue: share of the requests of each half second that were answered, from 0 to 1; the dotted line is 95 %.
Orange: attempts a second that arrived at the service, from 0 to {{.Most}}. Red: the trouble. Each chart is {{.Length}}.
Its caption: answered of all requests / back to 95 % after.</p>
<ul>{{range .About}}<li>{{.}}</li>{{end}}</ul>
{{range .Sections}}<section><h2>{{.Name}}</h2><p>{{.What}}</p><div>{{range .Charts}}<figure title="{{.What}}">
<svg width="{{.Width}}" height="{{.Height}}" role="img" aria-label="{{.Name}}: {{.Cell}}">
{{$h := .Height}}{{range .Trouble}}<rect class="t" x="{{.X}}" y="0" width="{{.Width}}" height="{{$h}}"/>{{end}}
<line class="g" x1="0" x2="{{.Width}}" y1="{{.Good}}" y2="{{.Good}}"/>
<polyline class="s" points="{{.Sent}}"/><polyline class="a" points="{{.Answered}}"/></svg>
<figcaption><b>{{.Name}}</b> {{.Cell}}{{.Note}}</figcaption></figure>
{{end}}</div></section>{{end}}</body></html>
`))

// mostAttempts a second are at the top of a chart: four for each request.
const mostAttempts = 4 * requestRate

// writePage writes the curves of what was played so far.
func (l *lab) writePage() error {
	var sections []section
	for j, d := range l.opt.days {
		s := section{Name: d.name, What: d.what}
		for i, c := range l.opt.contenders {
			if cell := l.cell(i, j); len(cell.results) > 0 {
				s.Charts = append(s.Charts, newChart(c, *cell))
			}
		}
		if s.Charts != nil {
			sections = append(sections, s)
		}
	}
	var about []string
	for _, line := range l.about() {
		about = append(about, strings.TrimPrefix(line, "- "))
	}
	f, err := os.Create(filepath.Join(l.opt.out, pageName))
	if err != nil {
		return err
	}
	defer f.Close()
	return pageTemplate.Execute(f, map[string]any{
		"Sections": sections, "About": about, "Most": int(mostAttempts), "Length": dayLength})
}

func newChart(c contender, of cell) chart {
	at := func(seconds float64) float64 { return chartWidth * seconds / dayLength.Seconds() }
	shown := chart{Name: c.name, What: c.what, Cell: strings.ReplaceAll(cellText(of, 2), "~", ""),
		Width: chartWidth, Height: chartHeight, Good: height(good, 1),
		Answered: points(of.curve(), 1), Sent: points(of.attempts(), mostAttempts)}
	for _, f := range of.day.faults {
		to := min(f.to, dayLength)
		shown.Trouble = append(shown.Trouble, band{at(f.from.Seconds()), at((to - f.from).Seconds())})
	}
	if of.disturbed() {
		shown.Note = " (disturbed)"
	}
	return shown
}

// points is a line through the middle of each bucket.
func points(values []float64, most float64) string {
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "%.1f,%.1f ", chartWidth*(float64(i)+0.5)/float64(len(values)), height(v, most))
	}
	return strings.TrimSpace(b.String())
}

// height is where a value stands, with a pixel of air at both ends.
func height(v, most float64) float64 {
	return chartHeight - 1 - (chartHeight-2)*min(v/most, 1)
}
