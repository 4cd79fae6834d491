package audit

import (
	"bufio"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/abate-go/abate/lint"
)

// GitHub writes new findings as workflow commands: GitHub shows them beside the lines.
func GitHub(w io.Writer, r *Result) error {
	b := bufio.NewWriter(w)
	for _, f := range r.Findings {
		if f.State != New {
			continue
		}
		command := map[lint.Severity]string{lint.Error: "error", lint.Warning: "warning"}[f.Severity]
		if command == "" {
			command = "notice"
		}
		fmt.Fprintf(b, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", command, property(f.At.File), f.At.Line, f.At.Column,
			property(f.Rule), data(message(f)))
	}
	return b.Flush()
}

// data escapes the text of a workflow command, and property one of its properties.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func property(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(data(s))
}

type gitlabIssue struct {
	Description string         `json:"description"`
	Check       string         `json:"check_name"`
	Fingerprint string         `json:"fingerprint"`
	Severity    string         `json:"severity"`
	Location    gitlabLocation `json:"location"`
}

type gitlabLocation struct {
	Path  string      `json:"path"`
	Lines gitlabLines `json:"lines"`
}

type gitlabLines struct {
	Begin int `json:"begin"`
}

// GitLab writes the findings that files do not accept as a code quality report.
func GitLab(w io.Writer, r *Result) error {
	list := []gitlabIssue{}
	for _, f := range r.Findings {
		if f.State == Suppressed {
			continue
		}
		severity := map[lint.Severity]string{lint.Error: "critical", lint.Warning: "major", lint.Note: "info"}[f.Severity]
		list = append(list, gitlabIssue{message(f), f.Rule, f.Fingerprint(), severity,
			gitlabLocation{f.At.File, gitlabLines{max(1, f.At.Line)}}})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	Failure *junitText `xml:"failure,omitempty"`
	Skipped *junitText `xml:"skipped,omitempty"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes a test case for each finding, and one that passes when there is none. Findings below least pass; those
// that the baseline has or a file accepts are skipped.
func JUnit(w io.Writer, r *Result, least lint.Severity) error {
	suite := junitSuite{Name: "abate audit"}
	for _, f := range r.Findings {
		c := junitCase{Name: f.Rule + " " + f.Subject, Class: f.At.File}
		switch {
		case f.State != New:
			c.Skipped = &junitText{Message: map[State]string{Known: "in the baseline", Suppressed: f.Reason}[f.State]}
			suite.Skipped++
		case f.Severity >= least:
			c.Failure = &junitText{Message: f.Message, Text: place(f) + ": " + message(f)}
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if len(suite.Cases) == 0 {
		suite.Cases = []junitCase{{Name: "no finding", Class: "abate audit"}}
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// Markdown writes the audit for a pull request: the headline, the path, new findings and the verdict.
func Markdown(w io.Writer, r *Result) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "**%s.**\n", cell(r.headline()))
	if r.Worst != nil {
		fmt.Fprintln(b)
		if ways := r.Worst.ways(); ways != "" {
			fmt.Fprintf(b, "%s:\n\n", capital(cell(ways)))
		}
		for _, h := range r.Worst.Hops {
			var layers []string
			for _, f := range h.Factors {
				layers = append(layers, layerWords(f))
			}
			fmt.Fprintf(b, "- %s → %s: %s\n", cell(or(h.Call.From, "outside")), cell(h.Call.To),
				cell(or(strings.Join(layers, "; "), "nothing is repeated")))
		}
	}
	fmt.Fprintln(b)
	rows := 0
	for _, f := range r.Findings {
		if f.State != New || f.Severity == lint.Note {
			continue
		}
		if rows++; rows == 1 {
			fmt.Fprint(b, "| | where | what | fix |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(b, "| %s %s | `%s` | %s | %s |\n", f.Severity, f.Rule, strings.ReplaceAll(place(f), "`", ""),
			cell(f.Message),
			cell(f.Fix))
	}
	if rows > 0 {
		fmt.Fprintln(b)
	}
	for _, v := range r.Verdicts {
		if v.Failed != "" {
			continue
		}
		fmt.Fprintf(b, "Outage of %s: %s.", cell(v.Service), cell(v.Before.String()))
		if v.After != nil {
			fmt.Fprintf(b, " With %s changed: %s.", count(len(leading(r.Changes)), "number"), cell(v.After.String()))
		}
		fmt.Fprint(b, "\n\n")
	}
	fmt.Fprintf(b, "%s, %s.\n", count(r.Count(lint.Error), "error"), count(r.Count(lint.Warning), "warning"))
	return b.Flush()
}

// cell makes text safe inside a table and outside of HTML.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "'").Replace(s)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
