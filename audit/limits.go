package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/lint"
	"github.com/abate-go/abate/topology"
)

// room is the share of the time that is waited for it that a limit becomes. The rest is for the caller's own work and
// the way back of the answer, which no file says; all that rule F207 asks is that some is left.
const room = 0.9

// mostLowered bounds how often a limit is lowered. Each time ends one finding, so only a tangle of calls meets it.
const mostLowered = 100

// limits lowers limits that are longer than anybody waits: the findings of rules F203 and F207. It returns the changes,
// which are made in the form too: as many as leave the least to complain about, and no rule with more errors.
func (p *plan) limits(form *topology.Form, o lint.Options) []Edit {
	changed, best := clone(*form), clone(*form)
	findings := p.lint(&changed, o)
	before, bad := complaints(findings), errorsOf(findings)
	least := before
	var all, kept []Edit
	open := opened(form)
	for range mostLowered {
		at, ok := p.lower(&changed, findings, open)
		if !ok || p.effort <= 0 {
			break
		}
		all = merged(all, []Edit{p.lowered[at]})
		findings = p.lint(&changed, o)
		if n := complaints(findings); n < before && n <= least && !moreOf(errorsOf(findings), bad) {
			least, best, kept = n, clone(changed), slices.Clone(all)
		}
	}
	*form = best
	return kept
}

// errorsOf counts the errors of each rule.
func errorsOf(all []lint.Finding) map[string]int {
	n := map[string]int{}
	for _, f := range all {
		if f.Severity == lint.Error {
			n[f.Rule]++
		}
	}
	return n
}

func moreOf(is, was map[string]int) bool {
	for rule, n := range is {
		if n > was[rule] {
			return true
		}
	}
	return false
}

// complaints counts the warnings and errors, each error twice.
func complaints(all []lint.Finding) int {
	n := 0
	for _, f := range all {
		switch f.Severity {
		case lint.Warning:
			n++
		case lint.Error:
			n += 2
		}
	}
	return n
}

// lower lowers the limit of one finding, the first for which that can be done, and returns where it stands.
func (p *plan) lower(form *topology.Form, all []lint.Finding, open map[string]bool) (topology.Position, bool) {
	for _, f := range all {
		if f.Rule != "F203" && f.Rule != "F207" || f.Severity < lint.Warning || len(f.Related) == 0 {
			continue
		}
		for _, at := range besideLimit(form, f.Related[0].At) {
			limits := limitsAt(form, at)
			if len(limits) == 0 || at == f.At {
				continue
			}
			was, most := limits[0].value.V, longestWait(form, limits, open)
			to := time.Duration(float64(most) * room).Truncate(time.Millisecond)
			if most == 0 || to >= was { // a shorter one would cut off what is waited for
				continue
			}
			e, ok := p.inserts.duration(at, was, to, p.lowered)
			if !ok {
				continue
			}
			e.Why = fmt.Sprintf("%s: a limit becomes %v, for nobody waits longer", layerName(limits[0].layer), to)
			p.lowered[at] = e
			for _, l := range limits {
				l.value.V = to
			}
			return at, true
		}
	}
	return topology.Position{}, false
}

// besideLimit returns a place of a limit, and then that of the limit of all tries beside it, where there is one: tries
// that are short enough may still be too many.
func besideLimit(form *topology.Form, at topology.Position) []topology.Position {
	all := []topology.Position{at}
	for _, l := range limitsAt(form, at) {
		if v := l.layer.Overall; stands(v) && v.At != at && !l.layer.StartsOnly && !slices.Contains(all, v.At) {
			all = append(all, v.At)
		}
	}
	return all
}

// limit is a limit of a layer on a call.
type limit struct {
	call  *topology.Call
	layer *topology.Layer
	value *topology.Value[time.Duration]
}

// limitsAt returns the limits that stand at a place.
func limitsAt(form *topology.Form, at topology.Position) []limit {
	var all []limit
	for i := range form.Calls {
		c := &form.Calls[i]
		for j := range c.Layers {
			l := &c.Layers[j]
			for _, v := range []*topology.Value[time.Duration]{&l.PerTry, &l.Overall} {
				if stands(*v) && v.At == at && v.V > 0 {
					all = append(all, limit{c, l, v})
				}
			}
		}
	}
	return all
}

// stands reports whether a limit is written in a file.
func stands(v topology.Value[time.Duration]) bool {
	return v.Origin == topology.Written || v.Origin == topology.Inherited
}

// longestWait returns how long somebody waits at most who is served within limits, 0 if that is not known of all: the
// layers outside of a limit on its own call if one of them bounds it, or else the callers of the service that calls.
// A service that nobody in the form calls, or that is called from outside too, serves people who may have time.
func longestWait(form *topology.Form, limits []limit, open map[string]bool) time.Duration {
	most := time.Duration(0)
	for _, l := range limits {
		w := waits(l.call, func(outer *topology.Layer) bool { return isOutside(l.call, outer, l.layer) })
		if w == 0 {
			w = callersWait(form, l.call.From, open)
		}
		if w == 0 {
			return 0
		}
		most = max(most, w)
	}
	return most
}

// opened returns the services of which it is not known how long all callers wait: those that are called from outside,
// and those on a cycle, of which a caller may be one that they call themselves.
func opened(form *topology.Form) map[string]bool {
	open, calls := map[string]bool{}, map[string][]string{}
	for i := range form.Services {
		open[form.Services[i].Name] = !form.Services[i].Rate.IsZero()
	}
	for i := range form.Calls {
		c := &form.Calls[i]
		calls[c.From] = append(calls[c.From], c.To)
	}
	for service := range calls {
		seen, next := map[string]bool{}, calls[service]
		for len(next) > 0 && !seen[service] {
			to := next[len(next)-1]
			next = next[:len(next)-1]
			if !seen[to] {
				seen[to] = true
				next = append(next[:len(next):len(next)], calls[to]...)
			}
		}
		open[service] = open[service] || seen[service]
	}
	return open
}

// callersWait returns how long the callers of a service wait at most, 0 if that is not known of all.
func callersWait(form *topology.Form, service string, open map[string]bool) time.Duration {
	if open[service] {
		return 0
	}
	most := time.Duration(0)
	for i := range form.Calls {
		if in := &form.Calls[i]; in.To == service && !in.Detached {
			w := waits(in, func(*topology.Layer) bool { return true })
			if w == 0 {
				return 0
			}
			most = max(most, w)
		}
	}
	return most
}

// isOutside reports whether a layer stands outside of another of its call, and is no alternative to it.
func isOutside(c *topology.Call, outer, inner *topology.Layer) bool {
	for i := range c.Layers {
		switch l := &c.Layers[i]; l {
		case inner:
			return false
		case outer:
			return outer.Choice == "" || outer.Choice != inner.Choice
		}
	}
	return false
}

// waits returns how long a try of a call lasts at most by the layers that count, 0 if nothing is known to bound it. A
// call passes one layer of each choice, which may be the one without a limit.
func waits(c *topology.Call, counts func(*topology.Layer) bool) time.Duration {
	choices := map[string]time.Duration{}
	for i := range c.Layers {
		l := &c.Layers[i]
		if !counts(l) {
			continue
		}
		one := l.PerTry.Or(0)
		if all := l.Overall.Or(0); !l.StartsOnly && (one == 0 || all > 0 && all < one) {
			one = all
		}
		key := cmp.Or(l.Choice, strconv.Itoa(i))
		if longest, among := choices[key]; !among || longest > 0 && (one == 0 || one > longest) {
			choices[key] = one
		}
	}
	shortest := time.Duration(0)
	for _, d := range choices {
		if shortest == 0 || d > 0 && d < shortest {
			shortest = d
		}
	}
	return shortest
}

// written is a duration as files have it: a number with or without a unit, several of Go ("1m30s"), or one of ISO 8601
// ("PT1M30S").
var written = regexp.MustCompile(`^(?:\\?"|')?((?i:P[0-9T][0-9.DTHMS]*)|(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+|` +
	`[0-9]+(?:\.[0-9]+)?)(?:[^\w.]|$)`)

// duration returns the edit that makes a duration another where it is written, in a way that its format takes: one
// that the file, read again, is seen to have.
func (in *inserts) duration(at topology.Position, was, to time.Duration, lowered map[topology.Position]Edit) (Edit,
	bool,
) {
	line, ok := lineOf(in.files[at.File], at.Line)
	if runes := []rune(string(line)); ok && at.Column >= 1 && at.Column <= len(runes) {
		line = []byte(string(runes[at.Column-1:]))
	}
	m := written.FindSubmatch(line)
	if m == nil || to <= 0 {
		return Edit{}, false
	}
	e := Edit{At: at, Old: string(m[1])}
	if _, again := lowered[at]; !again && !means(e.Old, was) {
		return Edit{}, false
	}
	for _, e.New = range spellings(e.Old, to) {
		if in.lasts(e, to) {
			return e, true
		}
	}
	return Edit{}, false
}

// spellings returns how a duration may be written instead of another.
func spellings(old string, d time.Duration) []string {
	seconds := strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	switch {
	case isISO(old):
		return []string{"PT" + seconds + "S"}
	case strings.Trim(old, "0123456789.") == "":
		return []string{strconv.FormatInt(d.Milliseconds(), 10), strconv.FormatInt(int64(d/time.Second), 10)}
	}
	var all []string
	if d%time.Second == 0 {
		all = append(all, seconds+"s")
	}
	return append(all, fmt.Sprintf("%dms", d.Milliseconds()), seconds+"s")
}

func isISO(text string) bool { return strings.HasPrefix(strings.ToUpper(text), "P") }

// means reports whether a text can stand for a duration.
func means(text string, d time.Duration) bool {
	if is, err := time.ParseDuration(text); err == nil {
		return is == d
	}
	if isISO(text) { // the file, read again, shows whether it was right
		return true
	}
	n, err := strconv.Atoi(text)
	return err == nil && (time.Duration(n)*time.Millisecond == d || time.Duration(n)*time.Second == d)
}

// lasts reports whether a file with an edit has a limit of that length in the line, and nothing new to complain about.
func (in *inserts) lasts(e Edit, to time.Duration) bool {
	if !in.same([]Edit{e}) {
		return false
	}
	changed, _ := Apply([]importer.File{{Name: e.At.File, Data: in.files[e.At.File]}}, []Edit{e})
	is := in.read(changed[0])
	found := false
	eachLayer(&is, func(l *topology.Layer) {
		for _, v := range []topology.Value[time.Duration]{l.PerTry, l.Overall} {
			found = found || v.At == e.At && stands(v) && v.V == to
		}
	})
	return found
}
