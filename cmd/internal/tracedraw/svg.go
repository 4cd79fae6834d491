package tracedraw

import (
	"fmt"
	"html"
	"io"
	"time"
)

// The measures of the drawing, in pixels.
const (
	svgWidth, svgNames, svgBars, svgRow, svgTop = 920, 250, 430, 28, 58
	svgAbout                                    = svgNames + svgBars + 16
)

// The colours go with a light page and a dark one. A failure has a pattern too, for those who see no colours.
const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" ` +
	`aria-label="%s" font-family="ui-sans-serif, system-ui, sans-serif" font-size="13">
<style>
text { fill: #1f2933 } .dim { fill: #616e7c } .grid { stroke: #d9e0e7 } .good { fill: #2f7ed8 } .bad { fill: url(#bad) }
.wait { stroke: #8895a3; stroke-width: 2; stroke-dasharray: 3 4 } .bg { fill: #d64545 } .fg { stroke: #ffffff }
@media (prefers-color-scheme: dark) {
text { fill: #e4e9ee } .dim { fill: #9aa5b1 } .grid { stroke: #3a4450 } .good { fill: #5fa3ea } .bg { fill: #e66a6a }
.fg { stroke: #1b2129 } }
</style>
<defs><pattern id="bad" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
	`<rect class="bg" width="6" height="6"/><line class="fg" x1="0" y1="0" x2="0" y2="6" stroke-width="2"/>` +
	`</pattern></defs>
`

// svg draws a picture.
func (d *drawing) svg(w io.Writer) {
	height := svgTop + svgRow*len(d.lines) + 12
	title := fmt.Sprintf("Trace %s, %s", d.trace, round(d.took))
	fmt.Fprintf(w, svgHead, svgWidth, height, svgWidth, height, html.EscapeString(title))
	fmt.Fprintf(w, "<text x=\"0\" y=\"16\" font-weight=\"600\">%s</text>\n", html.EscapeString(title))
	for i := range 5 { // a scale
		x, at := svgNames+float64(svgBars*i)/4, d.took*time.Duration(i)/4
		fmt.Fprintf(w, "<line class=\"grid\" x1=\"%.1f\" y1=\"46\" x2=\"%.1f\" y2=\"%d\"/>\n", x, x, height-8)
		fmt.Fprintf(w, "<text class=\"dim\" x=\"%.1f\" y=\"40\" text-anchor=\"middle\" font-size=\"11\">%s</text>\n", x,
			round(at))
	}
	for i, l := range d.lines {
		d.svgLine(w, svgTop+svgRow*i, l)
	}
	fmt.Fprintln(w, "</svg>")
}

func (d *drawing) svgLine(w io.Writer, y int, l line) {
	at := func(t time.Duration) float64 {
		return svgNames + float64(svgBars)*min(max(float64(t)/float64(max(d.took, 1)), 0), 1)
	}
	from, to := at(l.from), at(l.to)
	dim := ""
	if l.wait {
		dim = ` class="dim"`
	}
	fmt.Fprintf(w, "<text%s x=\"%d\" y=\"%d\">%s</text>\n", dim, 14*l.depth, y+14,
		html.EscapeString(fit(l.label, 36-2*l.depth)))
	switch {
	case l.wait:
		fmt.Fprintf(w, "<line class=\"wait\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", from, y+10, to, y+10)
	default:
		class := "good"
		if l.failed {
			class = "bad"
		}
		fmt.Fprintf(w, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"2\"/>\n", class, from, y+2,
			max(to-from, 3))
	}
	fmt.Fprintf(w, "<text%s x=\"%d\" y=\"%d\">%s</text>\n", dim, svgAbout, y+14, html.EscapeString(fit(l.about, 34)))
}
