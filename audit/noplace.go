package audit

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/exporter"
	"github.com/abate-go/abate/importer"
	"github.com/abate-go/abate/importer/abatefile"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/policy/budget"
	"github.com/abate-go/abate/policyfile"
)

// held are keys that the form holds as far as they do anything, or that are where a service is.
var held = []string{"retryOn", "neverRetryOn", "retryMethods", "upstreams"}

// noPlace returns, for each service of a policy file, the settings for which the form has no place: without them it
// says the same, so no other format gets them. rest is what the file says beside its services, nil if that is nothing.
func noPlace(policy importer.File) (services map[string][]exporter.Row, rest *Loss) {
	file, err := policyfile.Parse(policy.Name, policy.Data)
	root := policyRoot(policy)
	if err != nil || !root.IsMap() {
		return nil, nil // what nobody could import
	}
	services = map[string][]exporter.Row{}
	for i := range file.Services {
		s := &file.Services[i]
		u := noPlaceOf{base: abatefile.Layer("", &s.Policy), idle: idle(&s.Policy),
			written: []source.Node{root.Get("services").Get(s.Name)}}
		if s.Preset != policyfile.Connections {
			u.written = append(u.written, root.Get("defaults"))
		}
		u.settings(s.Policy.Settings())
		u.words(&s.Policy)
		services[s.Name] = u.rows
	}
	return services, ofNoService(root)
}

// policyRoot returns the root of a policy file, which may stand in a ConfigMap.
func policyRoot(policy importer.File) source.Node {
	docs, _ := source.YAML(policy.Name, policy.Data)
	for _, d := range docs {
		if abatefile.Recognise(d) {
			return d.Root
		}
		for _, p := range d.Root.Get("data").Pairs() {
			inner, _ := source.Embedded(p.Key, p.Value).Parsed()
			for _, d := range inner {
				if abatefile.Recognise(d) {
					return d.Root
				}
			}
		}
	}
	return source.Node{}
}

// noPlaceOf looks for such settings of one service.
type noPlaceOf struct {
	base    any
	idle    []string
	written []source.Node
	rows    []exporter.Row
}

func (u *noPlaceOf) settings(all []policyfile.Setting) {
	for i := range all {
		s := &all[i]
		path := strings.Split(s.Key, ".")
		isWritten := slices.ContainsFunc(u.written, func(n source.Node) bool { return n.Get(path...).Written() })
		switch {
		case slices.Contains(held, s.Key), slices.Contains(u.idle, s.Key), !isWritten:
		case len(s.Parts) > 0:
			u.section(s)
		case u.same(s):
			u.rows = append(u.rows, exporter.Row{Setting: s.Key, Kind: exporter.Dropped, Before: s.Text})
		}
	}
}

// words adds what stands in lists of conditions and methods without an outcome of its own in the form.
func (u *noPlaceOf) words(p *policyfile.Policy) {
	add := func(key string, list []string, apart func(string) bool) {
		for _, word := range list {
			if !apart(word) {
				u.rows = append(u.rows, exporter.Row{Setting: key, Kind: exporter.Dropped, Before: word})
			}
		}
	}
	add("retryOn", p.RetryOn, abatefile.Apart)
	add("neverRetryOn", p.NeverRetryOn, abatefile.Apart)
	add("retryMethods", p.RetryMethods, func(method string) bool { return !strings.HasPrefix(method, "/") })
}

// section adds a section as one row if nothing of it is in the form, and otherwise its parts.
func (u *noPlaceOf) section(s *policyfile.Setting) {
	parts := noPlaceOf{base: u.base, idle: u.idle, written: u.written}
	parts.settings(s.Parts)
	if len(parts.rows) < 2 || !u.same(s) {
		u.rows = append(u.rows, parts.rows...)
		return
	}
	words := make([]string, len(parts.rows))
	for i, r := range parts.rows {
		words[i] = strings.TrimPrefix(r.Setting, s.Key+".") + ": " + r.Before
	}
	u.rows = append(u.rows, exporter.Row{Setting: s.Key, Kind: exporter.Dropped,
		Before: "{" + strings.Join(words, ", ") + "}"})
}

func (u *noPlaceOf) same(s *policyfile.Setting) bool {
	return reflect.DeepEqual(u.base, abatefile.Layer("", &s.Without))
}

// idle returns the keys that do nothing in a policy.
func idle(p *policyfile.Policy) []string {
	var keys []string
	if len(p.Upstreams) < 2 && !p.Discovery.Enabled() {
		keys = append(keys, "outlierDetection")
	}
	switch p.RetryBudget.WithDefaults().Kind { // keys of other kinds, inherited
	case budget.Tokens:
		keys = append(keys, "retryBudget.ratio", "retryBudget.reserve", "retryBudget.maxRatio", "retryBudget.minRatio")
	case budget.Adaptive:
		keys = append(keys, "retryBudget.ratio")
	}
	var walk func(error)
	walk = func(err error) {
		var field *abate.FieldError
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range many.Unwrap() {
				walk(e)
			}
		} else if errors.As(err, &field) {
			keys = append(keys, field.Path)
		}
	}
	walk(p.Ineffective())
	return keys
}

// ofNoService returns what a policy file says beside its services: other programs have none of it.
func ofNoService(root source.Node) *Loss {
	l := &Loss{Service: "the file"}
	for _, p := range root.Pairs() {
		if p.Key == "services" || p.Key == "defaults" || strings.HasPrefix(p.Key, "x-") ||
			p.Value.Text() == "false" {
			continue
		}
		before := cmp.Or(p.Value.Text(), "set")
		if names := p.Value.Pairs(); len(names) > 0 {
			words := make([]string, len(names))
			for i, n := range names {
				words[i] = n.Key
			}
			before = fmt.Sprintf("{%s}", strings.Join(words, ", "))
		}
		l.Rows = append(l.Rows, exporter.Row{Setting: p.Key, Kind: exporter.Dropped, Before: before})
	}
	if len(l.Rows) == 0 {
		return nil
	}
	return l
}
