package audit

import (
	"slices"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// Options says what an audit assumes and complains about. The zero Options are good ones.
type Options struct {
	Assume source.Assume
	// Propagate assumes that an application whose call has failed answers as the call did, where no file says what it
	// answers. Without it what applications answer is not known: the worst case counts, the proof does not.
	Propagate bool
	Lint      lint.Options
	Baseline  Baseline // findings that were there before; they do not fail an audit
}

// Result is what an audit found.
type Result struct {
	Form     topology.Form // joined
	Files    []importer.Seen
	Names    []topology.Found // how names were joined
	Worst    *Worst           // nil when nothing is repeated
	Findings []Finding
	Stale    []string  // fingerprints of the baseline that no finding has
	Verdicts []Verdict // of outages that were played; nil when none was
	Changes  []Edit    // the smallest changes that make the worst path short
	Diff     string    // the same as a unified diff
	After    *Worst    // the worst path with the changes made
	// Unfinished reports that the search for changes ended before all paths were looked at, because the form is large.
	Unfinished bool
	// Left are the retries on the worst path that are left: no number in a file can be changed for them, or it is as small
	// as it may be.
	Left []string

	assume    source.Assume
	fixed     topology.Form // with the changes made
	proposed  bool          // changes were looked for
	circle    []string      // a way round that calls go
	boundless boundless
}

// State says what becomes of a finding.
type State uint8

// The states of a finding.
const (
	New        State = iota
	Known            // it stands in the baseline
	Suppressed       // its file accepts it, with a reason
)

// Finding is a finding of a rule, and what people have said of it.
type Finding struct {
	lint.Finding
	State  State
	Reason string // of a suppressed one
}

// Run audits files.
func Run(files []importer.File, o Options) *Result {
	form, seen := importer.Read(files, o.Assume)
	r := &Result{Files: seen, assume: o.Assume}
	r.Form, r.Names = form.Join()
	if o.Propagate {
		propagate(&r.Form)
	}
	if anyRepeats(&r.Form) { // else several calls of one request are no attempts of one
		a := lint.Amplification(r.Form, o.Lint)
		r.Worst, r.circle = worst(a), circle(a)
	}
	r.findings(files, o)
	return r
}

func propagate(f *topology.Form) {
	for i := range f.Services {
		if s := &f.Services[i]; s.AnswersWith.IsZero() {
			s.AnswersWith = topology.Assume("same", "told on the command line")
		}
	}
}

func (r *Result) findings(files []importer.File, o Options) {
	accepted := newIgnored(files)
	here := map[string]bool{}
	for _, f := range lint.Run(r.Form, o.Lint) {
		for _, print := range f.Fingerprints() {
			here[print] = true
		}
		f, reason, said := accepted.of(f)
		found := Finding{Finding: f}
		switch {
		case said && reason != "":
			found.State, found.Reason = Suppressed, reason
		case said:
			found.Message += "; its file accepts it without a reason, which does not count"
		case o.Baseline.has(f):
			found.State = Known
		}
		r.Findings = append(r.Findings, found)
	}
	for _, f := range o.Baseline.Fingerprints {
		if !here[f] {
			r.Stale = append(r.Stale, f)
		}
	}
}

// Known returns how many files are of a kind that an audit reads.
func (r *Result) Known() int {
	n := 0
	for _, s := range r.Files {
		if len(s.Formats) > 0 {
			n++
		}
	}
	return n
}

// Unread returns how many findings are about what could not be read: broken files, templates, values.
func (r *Result) Unread() int {
	n := 0
	for _, f := range r.Findings {
		if f.Rule == "F702" || f.Rule == "F606" {
			n++
		}
	}
	return n
}

// Count returns how many new findings there are of a severity.
func (r *Result) Count(s lint.Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.State == New && f.Severity == s {
			n++
		}
	}
	return n
}

// Fails reports whether there is a new finding of a severity or a higher one.
func (r *Result) Fails(least lint.Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.State == New && f.Severity >= least })
}
