package summary

import (
	"encoding/xml"
	"io"

	"github.com/abate-go/abate/sim"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes results in the XML that continuous integration reads: a test suite per scenario, a test case per variant
// and expectation, a failure for FAIL, skipped for UNDECIDED. The class name is scenario.variant, because some readers
// know a case by class and name only.
func JUnit(w io.Writer, results []*sim.Result) error {
	all := junitSuites{Name: "abate sim"}
	for _, r := range results {
		s := suiteOf(r)
		all.Tests, all.Failures, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Skipped+s.Skipped
		all.Suites = append(all.Suites, s)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}

func suiteOf(r *sim.Result) junitSuite {
	s := junitSuite{Name: clean(nameOf(r))}
	s.Properties = append(s.Properties, junitProperty{"verdict", r.Verdict})
	if r.File != "" {
		s.Properties = append(s.Properties, junitProperty{"file", clean(r.File)})
	}
	if r.Interrupted {
		s.Properties = append(s.Properties, junitProperty{"interrupted", "true"})
	}
	for i := range r.Variants {
		v := &r.Variants[i]
		for _, text := range v.NotCovered {
			s.Properties = append(s.Properties, junitProperty{"notCovered", clean(v.Name + ": " + text)})
		}
		for j := range v.Expectations {
			e := &v.Expectations[j]
			c := junitCase{Class: s.Name + "." + clean(v.Name), Name: clean(e.Text)}
			message := &junitMessage{Message: clean(evidence(e)), Text: clean(e.Text + ": " + evidence(e))}
			switch e.Verdict {
			case sim.Fail:
				c.Failure = message
				s.Failures++
			case sim.Undecided:
				c.Skipped = message
				s.Skipped++
			}
			s.Cases = append(s.Cases, c)
		}
	}
	s.Tests = len(s.Cases)
	return s
}
