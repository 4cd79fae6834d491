package audit

import (
	_ "embed"
	"html/template"
	"io"

	"github.com/abate-go/abate/lint"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// HTML writes one page for a browser, which needs no network: the graph with the attempts on its calls, findings, the
// verdict and the changes.
func HTML(w io.Writer, r *Result) error {
	p := pageData{Result: r, Graph: draw(r), Errors: count(r.Count(lint.Error), "error"),
		Warnings: count(r.Count(lint.Warning), "warning")}
	p.Title = r.headline() + "."
	if r.Worst != nil {
		p.Ways = r.Worst.ways()
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
	Title, Errors, Warnings, Ways string
	Graph                         drawing
	Findings                      []pageFinding
	Verdicts                      []pageVerdict
}

type pageFinding struct {
	Finding
	Place, Level string
}

type pageVerdict struct {
	Verdict
	How string
}
