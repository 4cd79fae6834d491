package lint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities. An error fails a build by default. The zero value is none of them: it stands for the one of the rule.
const (
	Note Severity = iota + 1
	Warning
	Error
)

// String is "note", "warning" or "error".
func (s Severity) String() string {
	return [...]string{"note", "note", "warning", "error"}[min(s, Error)]
}

// MarshalText is String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Place is a place that a finding has to do with, and what stands there.
type Place struct {
	At   topology.Position
	Text string
}

// Finding is one thing that is wrong. One cause, which is the line to change, makes one finding of a rule, however many
// calls it is wrong for.
type Finding struct {
	Rule     string // its id: "F101"
	Severity Severity
	At       topology.Position // the line to change; zero when nothing says where it is
	// Subject is what the finding is about, the same when lines move: the layer or call, and the key.
	Subject string
	Message string // what is wrong, with its numbers; without a line break
	Fix     string // what to do
	// Assumptions are what the finding rests on and no file says.
	Assumptions []string
	Related     []Place // the other layers that have part in it
	// Copies are the further places of what nobody wrote and several files leave out alike.
	Copies []topology.Position
	// Effect orders the findings of one severity, the largest first. For rules about amplification it is the factor.
	// It is 1e9 at most.
	Effect float64

	further  []Place  // each of several places, and the subject there
	subjects []string // of these, each a name of its own
	cause    string   // what makes findings at several places one; none if each stands for itself
}

// Fingerprint names the finding in baselines. It changes with the rule and the subject, and not when lines move.
func (f Finding) Fingerprint() string {
	sum := sha256.Sum256([]byte(f.Rule + "\x00" + f.Subject))
	return hex.EncodeToString(sum[:12])
}

// Fingerprints names the finding and what it says of further places: one that is new at one of them is a new finding.
func (f Finding) Fingerprints() []string {
	all := []string{f.Fingerprint()}
	for _, s := range f.subjects {
		all = append(all, Finding{Rule: f.Rule, Subject: s}.Fingerprint())
	}
	return unique(all)
}

// found collects findings, one for each cause.
type found struct {
	list []Finding
	by   map[string]int
	also []int // of a finding: for how many further subjects it was found
}

// add adds a finding, or what is new in it to the one with the same cause.
func (f *found) add(one Finding) {
	here := one.Rule + "\x00" + one.At.String()
	key := here
	if one.At.IsZero() {
		key += "\x00" + one.Subject
	}
	i, again := f.by[key]
	if !again && one.cause != "" {
		key = one.Rule + "\x00" + one.cause
		if i, again = f.by[key]; again && f.list[i].At != one.At {
			was, own, other := &f.list[i], one.At, one.At
			if one.Effect > was.Effect { // its words are what will be said, so they are said of its place
				other = was.At
				was.Related = slices.DeleteFunc(was.Related, func(p Place) bool { return p.Text != theSame })
			} else {
				one.At, one.Related = was.At, nil // what has part in it there is not what has part in it here
			}
			one.Related, one.Copies = append(one.Related, Place{other, theSame}), append(one.Copies, other)
			if len(was.further) == 0 {
				was.further = []Place{{was.At, was.Subject}}
			}
			was.further = append(was.further, Place{own, one.Subject})
			if !one.At.IsZero() {
				f.by[here] = i
			}
		}
	}
	if !again {
		if f.by == nil {
			f.by = map[string]int{}
		}
		if f.by[key] = len(f.list); !one.At.IsZero() {
			f.by[here] = len(f.list)
		}
		f.list, f.also = append(f.list, one), append(f.also, 0)
		return
	}
	was := &f.list[i]
	f.also[i]++
	related, copies, assumptions, further := was.Related, was.Copies, was.Assumptions, was.further
	severity, subject := max(was.Severity, one.Severity), min(was.Subject, one.Subject)
	if one.Effect > was.Effect {
		*was = one
	}
	was.Severity, was.Subject, was.further = severity, subject, further
	was.Related = places(slices.DeleteFunc(append(slices.Clone(related), one.Related...), func(p Place) bool {
		return p == Place{was.At, theSame}
	}))
	was.Copies = slices.DeleteFunc(append(slices.Clone(copies), one.Copies...), func(at topology.Position) bool {
		return at == was.At
	})
	was.Assumptions = unique(append(slices.Clone(assumptions), one.Assumptions...))
}

// theSame is what stands at a copy.
const theSame = "the same"

// AtCopy returns the finding at one of its copies, which change places with it.
func (f Finding) AtCopy(at topology.Position) Finding {
	f.Related, f.Copies = slices.Clone(f.Related), slices.Clone(f.Copies)
	for i, was := range f.Related {
		if was == (Place{at, theSame}) {
			f.Related[i].At = f.At
		}
	}
	for i, was := range f.Copies {
		if was == at {
			f.Copies[i] = f.At
		}
	}
	f.At = at
	return f
}

// maxRelated is how many related places a finding names.
const maxRelated = 20

func places(all []Place) (out []Place) {
	seen := map[Place]bool{}
	for _, p := range all {
		if !seen[p] && len(out) < maxRelated {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// sorted returns the findings, the most important first.
func (f *found) sorted() []Finding {
	for i := range f.list {
		if n := f.also[i]; n > 0 {
			f.list[i].Message += fmt.Sprintf(" (the same holds in %s)", plural(n, "further place", "further places"))
		}
	}
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		if c := cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(b.Effect, a.Effect), strings.Compare(a.Rule,
			b.Rule)); c != 0 {
			return c
		}
		switch {
		case a.At.Before(b.At):
			return -1
		case b.At.Before(a.At):
			return 1
		}
		return strings.Compare(a.Subject, b.Subject)
	})
	f.distinguish()
	return f.list
}

// distinguish gives findings of one rule with one subject, and their places, subjects of their own: by their files,
// then by their order.
func (f *found) distinguish() {
	seen := map[string]int{}
	count := func(key string) int {
		seen[key]++
		return seen[key]
	}
	own := func(rule, subject, file string) string {
		rule += "\x00"
		if count(rule+subject) == 1 {
			return subject
		}
		subject += " in " + file
		if n := count(rule + subject); n > 1 {
			subject += fmt.Sprintf(" (%d)", n)
			count(rule + subject)
		}
		return subject
	}
	for i := range f.list {
		one := &f.list[i]
		for _, p := range one.further {
			one.subjects = append(one.subjects, own(one.Rule, p.Text, p.At.File))
		}
		if len(one.subjects) > 0 {
			one.Subject = slices.Min(one.subjects)
		} else {
			one.Subject = own(one.Rule, one.Subject, one.At.File)
		}
	}
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", more)
}
