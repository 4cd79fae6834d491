package expect

import (
	"slices"
	"strings"

	"github.com/abate-go/abate/internal/nearest"
)

// DefaultShare is the share of runs in which an expectation must hold when its text does not say.
const DefaultShare = 0.9

// Expectation is one line of the language, read. Make one with [Parse]: a value made by hand is not checked.
type Expectation struct {
	Text     string  // as written, without spaces around; String is the canonical form
	Measure  string  // name of the measure
	Subject  string  // service or fleet; empty for all of them
	Window   Window  // part of the run
	Priority string  // class of requests, SHEDDABLE for example; empty for all of them
	Quantile float64 // 0.99 for p99; 0 for none
	Op       Op      // how what was measured compares with Value
	Value    float64 // a share as 0..1, a duration in seconds, a rate per second, a count or a number
	Share    float64 // of runs in which it must hold, above 0 and below 1; 0 for collapse, whose value is that share
}

// String is the expectation in its canonical form, which [Parse] reads as an equal one: arguments in fixed order,
// the window left out when it is the whole run, and the share of runs always said.
func (e Expectation) String() string {
	var args []string
	if e.Quantile > 0 {
		args = append(args, "p"+percentDigits(e.Quantile))
	}
	if e.Subject != "" {
		args = append(args, e.Subject)
	}
	if e.Priority != "" {
		args = append(args, e.Priority)
	}
	if e.Window != All {
		args = append(args, e.Window.String())
	}
	text, kind := e.Measure, Number
	if len(args) > 0 {
		text += "(" + strings.Join(args, ", ") + ")"
	}
	if m := measure(e.Measure); m != nil {
		kind = m.Kind
	}
	text += " " + e.Op.String() + " " + formatValue(kind, e.Value)
	if !e.ofRuns() {
		text += " in " + percentDigits(e.share()) + "% of runs"
	}
	return text
}

// MarshalText is String, or the error that [Parse] gives for it.
func (e Expectation) MarshalText() ([]byte, error) {
	text := e.String()
	if _, err := Parse(text); err != nil {
		return nil, err
	}
	return []byte(text), nil
}

// UnmarshalText is [Parse]. On an error e keeps its value.
func (e *Expectation) UnmarshalText(text []byte) error {
	read, err := Parse(string(text))
	if err != nil {
		return err
	}
	*e = read
	return nil
}

// Holds reports whether the expectation holds of one run, given what was measured in it, in the unit of Value. A run
// that never recovers has a recovery of +Inf. For collapse, value is 1 in a run that collapsed and 0 in one that did
// not, and Holds reports whether the run is one of those that the expectation wants: `collapse < 1%` wants 0,
// `collapse > 90%` wants 1. NaN stands for what could not be measured in this run: nothing holds of it.
func (e *Expectation) Holds(value float64) bool {
	if e.ofRuns() {
		if e.Op.upper() {
			return value < 0.5
		}
		return value >= 0.5
	}
	return e.Op.compare(value, e.Value)
}

// ofRuns reports whether the measure is collapse, whose value is itself a share of runs.
func (e *Expectation) ofRuns() bool { return e.Measure == "collapse" }

// share is the share of runs in which the expectation must hold.
func (e *Expectation) share() float64 {
	if e.Share == 0 {
		return DefaultShare
	}
	return e.Share
}

// Check reports whether the subject exists. names returns the services or the fleets of the scenario. The error is of
// type [Errors], and lists what there is; its column is that of the subject in Text, or in String if Text is empty.
func (e *Expectation) Check(names func(SubjectKind) []string) error {
	m := measure(e.Measure)
	if m == nil || e.Subject == "" {
		return nil
	}
	known, other := names(m.Subject), Fleet+Service-m.Subject
	if m.Subject == FleetOrService {
		known, other = slices.Concat(names(Fleet), names(Service)), NoSubject
	}
	if slices.Contains(known, e.Subject) {
		return nil
	}
	text := e.Text
	if text == "" {
		text = e.String()
	}
	p := parser{text: text}
	p.read()
	problem, fix := quote(e.Subject)+" is not a "+m.Subject.String(), suggest(e.Subject, known)
	switch {
	case other != NoSubject && slices.Contains(names(other), e.Subject):
		problem = quote(e.Subject) + " is a " + other.String() + ", but " + m.Name + " is about a " + m.Subject.String()
		if m.Name == "goodput" {
			fix += "; what a service does for its callers is its yield: yield(" + e.Subject + ")"
		}
	case len(known) == 0:
		fix = "the scenario has no " + m.Subject.String()
	case m.Subject == FleetOrService:
		fix = listed(e.Subject, names(Fleet), names(Service))
	}
	p.fail(p.subjectAt, problem, fix)
	return p.errs[len(p.errs)-1:]
}

// listed says which fleets and services there are, and which of them may have been meant.
func listed(word string, fleets, services []string) string {
	var parts []string
	if near := nearest.To(word, slices.Concat(fleets, services)); near != "" {
		parts = append(parts, "did you mean "+near+"?")
	}
	return strings.Join(append(parts, "fleets: "+some(fleets)+"; services: "+some(services)), " ")
}

// wishes reports whether less of the measure is better, or more; neither for what says how a run was, such as offered.
func (e *Expectation) wishes() (lower, higher bool) {
	switch e.Measure {
	case "goodput", "yield":
		return false, true
	case "offered", "limit", "utilization":
		return false, false
	}
	return true, false
}

// Protects reports whether the expectation asks for something good, such as `collapse < 1%` or `goodput(after) > 95%`.
// Others are there to show a storm (`collapse > 90%`) or to say what a run is like (`offered > 900/s`).
func (e *Expectation) Protects() bool {
	lower, higher := e.wishes()
	return lower && e.Op.upper() || higher && !e.Op.upper()
}

// WantsCollapse reports whether the expectation is there to show that something collapses.
func (e *Expectation) WantsCollapse() bool { return e.ofRuns() && !e.Op.upper() }
