package tune

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

const mostRejected = 10 // changes that are listed for a terminal

//go:embed page.tmpl
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"short": short, "policy": func(b []byte) string { return string(b) },
}).Parse(pageText))

// HTML writes the report as one page for a browser, which needs no network.
func HTML(w io.Writer, r *Result) error { return page.Execute(w, r) }

// Text writes the report for a terminal.
func Text(w io.Writer, r *Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\nObjective: %s, %d runs.\n\n", capital(r.Text), r.Objective, r.Runs)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "scenario\tdefault policy\ttuned\twhat is bad")
	for _, x := range r.Given {
		fmt.Fprintf(t, "%s\t%s\t%s\t× %s\n", x.Name, x.Before, x.After, short(x.Ratio))
	}
	for _, group := range []struct {
		name string
		list []WorldResult
	}{{"perturbed copies", r.Copies}, {"generated systems", r.Generated}} {
		if len(group.list) > 0 {
			low, middle, high := spreadOf(group.list)
			fmt.Fprintf(t, "%d %s\t\t\t× %s (%s to %s)\n", len(group.list), group.name, short(middle), short(low), short(high))
		}
	}
	t.Flush()
	for _, x := range r.Given {
		if x.Fails != "" {
			fmt.Fprintf(&b, "%s: %s\n", x.Name, x.Fails)
		}
	}
	for i, c := range r.Changes {
		fmt.Fprintf(&b, "\n%d. %s\n", i+1, c.Change)
		for _, line := range c.Bought {
			fmt.Fprintf(&b, "   bought  %s\n", line)
		}
		for _, line := range c.Cost {
			fmt.Fprintf(&b, "   cost    %s\n", line)
		}
		if len(c.Cost) == 0 {
			b.WriteString("   cost    nothing that was measured\n")
		}
	}
	if len(r.Rejected) > 0 {
		b.WriteString("\nRejected, though better here:\n")
	}
	for _, x := range r.Rejected[:min(mostRejected, len(r.Rejected))] {
		fmt.Fprintf(&b, "   %s\n      %s\n", x.Change, x.Why)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// spreadOf is the smallest, the middle and the largest ratio.
func spreadOf(list []WorldResult) (low, middle, high float64) {
	ratios := make([]float64, len(list))
	for i := range list {
		ratios[i] = list[i].Ratio
	}
	slices.Sort(ratios)
	return ratios[0], ratios[len(ratios)/2], ratios[len(ratios)-1]
}
