package lint

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/abate-go/abate/topology"
)

// Run returns what is wrong with a form, the most important first: by severity, then by effect. The remarks of the form
// are findings too.
func Run(f topology.Form, o Options) []Finding {
	o = o.WithDefaults()
	g := newGraph(f)
	// What stays below the limit is no finding, but what is repeated beside it may be.
	r := &run{g: g, o: o, amplified: amplify(g, Options{Least: 2, Work: o.Work})}
	r.remarks()
	r.amplification()
	r.collateral()
	r.capacity()
	r.cycles()
	r.sameEdge()
	r.hierarchy()
	r.unlimited()
	r.alike()
	r.layers(r.implicit, r.times, r.endless, r.repeated, r.overridden, r.pace, r.budget, r.breaker, r.bounds)
	r.services()
	r.unfinished()
	if o.Steps != nil {
		*o.Steps += r.amplified.steps()
	}
	return r.sorted()
}

// run is one pass of all rules over a form.
type run struct {
	found
	g         *graph
	o         Options
	amplified *Amplified
	loud      map[*topology.Layer]float64 // layers on a path that comes to too much, and to how much
	hops      int                         // of the paths that were described
	inverted  map[int]bool                // services whose callers leave before they can answer
	edge      *edge                       // the call and the layer that are looked at, while layers are
	layer     *topology.Layer
}

// report adds a finding, if its rule is asked.
func (r *run) report(one Finding) {
	if len(r.o.Only) > 0 && !slices.Contains(r.o.Only, one.Rule) {
		return
	}
	if one.Severity == 0 {
		one.Severity = severity(one.Rule)
	}
	one.Message, one.Fix = topology.OneLine(one.Message), topology.OneLine(one.Fix)
	for i := range one.Assumptions {
		one.Assumptions[i] = topology.OneLine(one.Assumptions[i])
	}
	if one.Effect = min(one.Effect, mostEffect); math.IsNaN(one.Effect) {
		one.Effect = 0
	}
	if one.cause == "" && r.layer != nil && one.Severity < Error { // errors are mended one by one
		one.cause = words(r.edge, r.layer, &one)
	}
	r.add(one)
}

// words returns what a finding says of a layer of a call, but for the names of the layer and of the call. What is said
// of several routes in the same words, or of copies of a file, is one finding.
func words(e *edge, l *topology.Layer, one *Finding) string {
	bare := strings.NewReplacer(e.way(), "", name(l), "", e.call.To, "", l.Overall.Source(), l.Overall.Why)
	return fmt.Sprint(l.Kind, l.Product, one.Severity, bare.Replace(one.Message))
}

// mostEffect stands for an effect without bounds: JSON has no infinity.
const mostEffect = 1e9

func (r *run) layers(checks ...func(*edge, *topology.Layer)) {
	for i := range r.g.calls {
		e := &r.g.calls[i]
		for _, slot := range e.slots {
			for _, l := range slot {
				r.edge, r.layer = e, l
				for _, check := range checks {
					check(e, l)
				}
			}
		}
	}
	r.edge, r.layer = nil, nil
}

// remarks makes findings of what importers noticed.
func (r *run) remarks() {
	for _, m := range r.g.form.Remarks {
		subject := m.Subject
		if subject == "" {
			subject = m.Text
		}
		one := Finding{Rule: m.Rule, At: m.At, Subject: subject, Message: oneLine(m.Text), Fix: m.Fix,
			Severity: severity(m.Rule)}
		if m.Assumed != "" {
			one.Severity, one.Assumptions = min(one.Severity, Warning), []string{m.Assumed}
		}
		one.cause = together(m)
		r.report(one)
	}
}

// together names what makes remarks at several places one: the same words, or that one thing is to be done about all.
func together(m topology.Remark) string {
	switch {
	case m.Rule != "F702":
	case strings.Contains(m.Fix, "rendered") && !strings.Contains(m.Fix, "the variable"):
		return "templates"
	case strings.HasPrefix(m.Fix, "tell which profiles are active"):
		return "profiles"
	}
	return m.Text + "\x00" + m.Fix + "\x00" + m.Assumed
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// way names a call: "checkout → orders".
func (e *edge) way() string {
	from := e.call.From
	if from == "" {
		from = "outside"
	}
	return from + " → " + e.call.To
}

// subject is the identity of a key of a layer.
func subject(e *edge, l *topology.Layer, key string) string {
	if l.Name == "" {
		n := 1 // of several such layers
		for i := range e.call.Layers {
			if m := &e.call.Layers[i]; m == l {
				break
			} else if m.Name == "" && title(m) == title(l) {
				n++
			}
		}
		return fmt.Sprintf("%s %s %d %s", e.way(), title(l), n, key)
	}
	return fmt.Sprintf("%s %s %s", title(l), l.Name, key)
}

// title names a layer by its product and place.
func title(l *topology.Layer) string {
	if l.Product == "" {
		return l.Kind.String()
	}
	return l.Product + " " + l.Kind.String()
}

// name is what people call the layer.
func name(l *topology.Layer) string {
	if l.Name == "" {
		return title(l)
	}
	return title(l) + " (" + l.Name + ")"
}

// sourced is a value of any type.
type sourced interface {
	Source() string
	IsZero() bool
}

// assumed lists what values rest on that no file says: defaults, and what was assumed. The version whose defaults a
// layer has is one of them.
func assumptions(l *topology.Layer, values ...sourced) (all []string) {
	byDefault := false
	for _, v := range values {
		text := v.Source()
		if text, is := strings.CutPrefix(text, "default of "); is {
			byDefault = true
			what, _, _ := strings.Cut(text, "; ")
			all = append(all, "the default of "+what)
		} else if strings.HasPrefix(text, "assumed: ") {
			all = append(all, strings.TrimPrefix(text, "assumed: "))
		}
	}
	if byDefault && l.Version.Origin == topology.Assumed {
		all = append(all, fmt.Sprintf("%s %s: %s", l.Product, l.Version.V, l.Version.Why))
	}
	return unique(all)
}

// place is where a value is written, or else the layer.
func place[T topology.Scalar](v topology.Value[T], l *topology.Layer) topology.Position {
	if !v.At.IsZero() {
		return v.At
	}
	return l.At
}

// most returns the rule of a layer with the most tries of those that are about one of the outcomes and the methods.
func mostTries(l *topology.Layer, m topology.Methods, about func(topology.Outcome) bool) (by *topology.Repeat, n int) {
	n = 1
	for i := range l.Repeats {
		rep := &l.Repeats[i]
		if rep.Methods != 0 && rep.Methods&m == 0 || !slices.ContainsFunc(rep.On, about) || rep.Word == cached {
			continue
		}
		if tries := rep.Tries.Or(1); tries > n {
			by, n = rep, tries
		}
	}
	return by, n
}

// cached is the word of the one try more that nginx makes when a connection breaks which it had kept: the business of a
// transport, as that of connections that are opened again. It counts where attempts are counted.
const cached = "keepalive"

func anything(topology.Outcome) bool { return true }

// processed reports that a failure is one after the request was sent.
func processed(o topology.Outcome) bool { return o != topology.Refused && o != topology.ResetUnsent }

// status reports that a failure is an answer.
func status(o topology.Outcome) bool { return o > topology.Hang }

func is(these ...topology.Outcome) func(topology.Outcome) bool {
	return func(o topology.Outcome) bool { return slices.Contains(these, o) }
}

// where is the place of a rule of a layer.
func where(rep *topology.Repeat, l *topology.Layer) topology.Position {
	switch {
	case !rep.Tries.At.IsZero():
		return rep.Tries.At
	case !rep.At.IsZero():
		return rep.At
	}
	return l.At
}

// listed is where the outcomes of a rule stand: a word of its own, if there is one.
func listed(rep *topology.Repeat, l *topology.Layer) topology.Position {
	if !rep.At.IsZero() {
		return rep.At
	}
	return where(rep, l)
}

func triesText(n int) string {
	if n == topology.Unbounded {
		return "without a limit"
	}
	return fmt.Sprint(n, " times in all")
}
