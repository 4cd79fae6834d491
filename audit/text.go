package audit

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/lint"
)

// TextOptions says how much Text writes.
type TextOptions struct {
	All  bool // findings in the baseline, suppressed ones and notes too
	Last bool // nothing but the last line
}

// Text writes the audit for a terminal: the worst path first, then findings, the verdict and the changes. Path and
// findings have room on one screen, unless All is asked for.
func Text(w io.Writer, r *Result, o TextOptions) error {
	b := bufio.NewWriter(w)
	t := &textual{b}
	if !o.Last {
		t.headline(r)
		t.w.WriteString(findingsText(r, o))
		t.verdicts(r)
		t.changes(r)
	}
	t.last(r)
	return b.Flush()
}

type textual struct{ w *bufio.Writer }

func (t *textual) line(format string, args ...any) { fmt.Fprintf(t.w, format+"\n", args...) }

func (t *textual) headline(r *Result) {
	t.line("%s", r.headline()+".")
	if r.Worst == nil {
		return
	}
	t.line("")
	if ways := r.Worst.ways(); ways != "" {
		t.line("%s:", capital(ways))
	}
	t.path(r.Worst)
}

// headline is what an audit says first.
func (r *Result) headline() string {
	switch {
	case r.Worst != nil:
		return capital(r.Worst.Headline()) + r.besides()
	case len(r.circle) > 0:
		return "How often a call is repeated is not known: calls go in a circle, " + strings.Join(r.circle, " → ")
	case unknownTries(&r.Form):
		return "Whether a call is repeated is not known: some values could not be read"
	case len(r.Form.Calls) > 0:
		return "No call is repeated, as far as these files say"
	case r.Known() > 0:
		return "These files name no call, so nothing can be said of how often one is repeated"
	}
	return "None of these files is of a kind that is read, so nothing could be judged"
}

// besides says what is in no number although it is repeated: calls that go in a circle elsewhere.
func (r *Result) besides() string {
	at := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Rule == "F106" })
	if at < 0 || len(r.Worst.Cycle) > 0 {
		return ""
	}
	_, names, _ := strings.Cut(r.Findings[at].Message, ": ")
	return ". Nothing bounds the calls that go in a circle, " + names
}

// path writes the calls of a path, and below each its layers.
func (t *textual) path(w *Worst) {
	for _, h := range w.Hops {
		from := h.Call.From
		if from == "" {
			from = "outside"
		}
		calls := ""
		if h.Times != 1 {
			calls = fmt.Sprintf(", %s calls for each request", times(h.Times))
		}
		t.line("  %s → %s%s", from, h.Call.To, calls)
		for _, f := range h.Factors {
			if f.Times > 1 || f.Layer.Product != "" {
				t.line("      %s", layerWords(f))
			}
		}
	}
	if len(w.Hops) > 0 {
		t.line("")
	}
}

func place(f Finding) string {
	if f.At.IsZero() {
		return "(no file)"
	}
	return f.At.String()
}

func (t *textual) verdicts(r *Result) {
	var assumed []string
	for _, v := range r.Verdicts {
		if v.Failed != "" {
			t.line("Outage of %s: not played, because %s.", v.Service, v.Failed)
			continue
		}
		t.line("Outage of %s (it %s):", v.Service, Fails(v.Outcome))
		t.line("    as configured: %s", v.Before)
		if v.After != nil {
			t.line("    with the changes below: %s", v.After)
		}
		for _, a := range v.Assumed {
			if !slices.Contains(assumed, a) {
				assumed = append(assumed, a)
			}
		}
	}
	if len(assumed) > 0 {
		t.line("    What was played assumes, because no file says it:")
	}
	for _, a := range assumed {
		t.line("        %s", a)
	}
	if len(r.Verdicts) > 0 {
		t.line("")
	}
}

// leading returns the edits without those that go with another.
func leading(all []Edit) []Edit {
	return slices.DeleteFunc(slices.Clone(all), func(e Edit) bool { return e.With })
}

func (t *textual) changes(r *Result) {
	if !r.proposed {
		return
	}
	switch {
	case len(r.Changes) == 0 && r.Unfinished:
		t.line("No change is proposed: the files are too many for the search to come to an end; audit fewer at once.")
	case len(r.Changes) == 0 && r.After == nil && (len(r.Form.Calls) == 0 || unknownTries(&r.Form)):
		t.line("No change is proposed: nobody knows what is repeated.")
	case len(r.Changes) == 0 && r.After != nil && (!r.After.Known || r.After.Most > enough):
		t.line("No change is proposed: no number in these files makes the worst path shorter.")
	case len(r.Changes) == 0 && len(r.boundless.circle) > 0:
		t.line("No change is proposed: calls go in a circle, %s, and no number bounds what it sends; break it first.",
			strings.Join(r.boundless.circle, " → "))
	case len(r.Changes) == 0:
		t.line("No change is proposed: one request becomes no more than %s.", attempts(enough))
	default:
		leading := leading(r.Changes)
		t.line("The smallest change: %s.", count(len(leading), "edit"))
		for _, e := range leading {
			t.line("    %s: %s  (%s)", e.At, e, e.Why)
		}
		t.line("    One request then becomes %s.", r.then())
	}
	if r.Unfinished && len(r.Changes) > 0 {
		t.line("    not all paths were looked at: write these changes with --fix=write, and look again")
	}
	for _, l := range r.Left {
		t.line("    also repeats, and is left as it is: %s", l)
	}
	t.line("")
	if r.Diff != "" {
		t.line("%s", strings.TrimSuffix(r.Diff, "\n"))
		t.line("")
	}
}

// then says what one request becomes with the changes made.
func (r *Result) then() string {
	others := attempts(r.boundless.others) + " at most"
	switch w := r.After; {
	case w != nil && math.IsInf(w.certain(), 1):
		return fmt.Sprintf("%s, but for what fails at %s, where no number in these files bounds it", others, w.Service)
	case len(r.boundless.circle) > 0:
		return fmt.Sprintf("%s, but for what the circle %s sends, which no number bounds", others,
			strings.Join(r.boundless.circle, " → "))
	case w == nil && unknownTries(&r.fixed):
		return "an unknown number of attempts, for some values could not be read"
	case w == nil:
		return attempts(1) + " at most"
	case !w.Known:
		return "at least " + attempts(w.Proved) + "; some values could not be read, so it may be more"
	default:
		return attempts(w.Most) + " at most"
	}
}

// last is the line that everybody reads.
func (t *textual) last(r *Result) {
	known := r.Known()
	t.line("%s, %s; %s read, %d of other kinds left out, %s, %s.", count(r.Count(lint.Error), "error"),
		count(r.Count(lint.Warning), "warning"), count(known, "file"), len(r.Files)-known,
		count(len(r.Form.Services), "service"), count(len(r.Form.Calls), "call"))
	if n := r.Unread(); n > 0 {
		t.line("%s could not be read, or not wholly: F606 and F702 say which (--all).", count(n, "place"))
	}
	switch n := len(r.Stale); {
	case n == 1:
		t.line("1 finding of the baseline is gone; --write-baseline takes it out.")
	case n > 1:
		t.line("%d findings of the baseline are gone; --write-baseline takes them out.", n)
	}
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// attempts is a number of attempts in words.
func attempts(n float64) string {
	if n == 1 {
		return "1 attempt"
	}
	return times(n) + " attempts"
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// List writes each file and what it was taken for.
func List(w io.Writer, r *Result) error {
	b := bufio.NewWriter(w)
	for _, s := range r.Files {
		formats := strings.Join(s.Formats, ", ")
		if formats == "" {
			formats = "-"
		}
		fmt.Fprintf(b, "%s: %s\n", s.Name, formats)
	}
	for _, n := range r.Names {
		if n.Name != n.Service {
			fmt.Fprintf(b, "%s: %q is %s (%s)\n", n.At, n.Name, n.Service, n.Rule)
		}
	}
	return b.Flush()
}
