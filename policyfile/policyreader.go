package policyfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate"
)

// policyReader reads one policy, of a service or of defaults, over the one it inherits, and remembers what stands where.
type policyReader struct {
	d       *decoder
	service string                // empty for defaults
	where   *yaml.Node            // the service's key, or nil: for mistakes that no key of its own makes
	at      map[string]*yaml.Node // values by path, list members as "retryOn[1]"
	failed  []string              // paths whose value could not be taken
	zeros   []*field              // fields set to zero explicitly
	wrong   map[string]bool       // "path: problem" of what check reported
}

// read puts what the file says for this policy into p.
func (r *policyReader) read(p *abate.Policy, n *yaml.Node) {
	r.at = map[string]*yaml.Node{}
	r.section(policyShape, n, reflect.ValueOf(p).Elem(), "")
	if r.at["jitterFactor"] != nil && r.at["jitter"] == nil && !slices.Contains(r.failed, "jitterFactor") {
		// Who writes only the factor means that kind of jitter, and with 0 none.
		p.Jitter = "factor"
		if p.JitterFactor == 0 {
			p.Jitter = "none"
		}
	}
	if r.service == "" {
		for _, key := range []string{"upstreams", "routes"} {
			if value := r.at[key]; value != nil {
				r.fail(value, key, "cannot have a default", "it says which requests belong to one service: write it there")
			}
		}
	}
}

func (r *policyReader) fail(n *yaml.Node, path, problem, mend string) {
	r.failed = append(r.failed, path)
	r.d.fail(n, r.service, r.name(path), problem, mend)
}

// name is how messages call a field of this policy.
func (r *policyReader) name(path string) string {
	if r.service != "" {
		return path
	}
	return strings.TrimSuffix("defaults."+path, ".")
}

func (r *policyReader) section(s *shape, n *yaml.Node, into reflect.Value, path string) {
	entries, ok := r.d.entries(n, r.service, r.name(path), "write it as a mapping of: "+strings.Join(s.keys, ", "))
	if !ok {
		r.failed = append(r.failed, path)
		return
	}
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	for _, e := range entries {
		f := s.byKey[e.key.Value]
		if f == nil {
			r.unknown(s, e.key, path)
			continue
		}
		r.value(f, e.value, into.FieldByIndex(f.index), prefix+f.key)
	}
}

func (r *policyReader) unknown(s *shape, key *yaml.Node, path string) {
	mend := misplaced(key.Value, s)
	if mend == "" {
		mend = suggest(key.Value, s.keys)
	}
	r.d.fail(key, r.service, r.name(path), "unknown key "+quote(key.Value), mend)
}

func (r *policyReader) value(f *field, n *yaml.Node, into reflect.Value, path string) {
	if !r.d.visit(n) {
		return
	}
	target := resolve(n)
	r.at[path] = target
	switch f.kind {
	case section:
		r.section(f.inner, target, into, path)
		return
	case sections, words:
		r.list(f, target, into, path)
		return
	}
	fresh := reflect.New(into.Type()).Elem()
	if problem, mend := f.scalar(target, fresh); problem != "" {
		r.fail(target, path, problem, mend)
		return
	}
	if fresh.IsZero() && f.limits != "" {
		r.zeros = append(r.zeros, f)
	}
	into.Set(fresh)
}

// list replaces the inherited list.
func (r *policyReader) list(f *field, n *yaml.Node, into reflect.Value, path string) {
	const longest = 1_000
	switch {
	case isNull(n):
		r.fail(n, path, "has no value", f.mendNothing())
		return
	case n.Kind != yaml.SequenceNode:
		r.fail(n, path, describe(n)+" is not a list", f.mend())
		return
	case len(n.Content) == 0 && f.emptyMeansDefault():
		r.fail(n, path, "an empty list would mean the default", "remove the key, or write maxRetries: 0 to retry nothing")
		return
	case len(n.Content) > longest:
		r.fail(n, path, fmt.Sprintf("%d members are too many", len(n.Content)), fmt.Sprintf("allowed: at most %d", longest))
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		item = resolve(item)
		r.at[at] = item
		switch {
		case !r.d.visit(item):
			return
		case f.kind == sections:
			r.section(f.inner, item, list.Index(i), at)
		default:
			if problem, mend := f.member.scalar(item, list.Index(i)); problem != "" {
				r.fail(item, at, problem, mend)
			}
		}
	}
	into.Set(list)
}

// check applies the rules of the policy as a whole. What base, the reader of the defaults, reported already is not said
// again for every service that inherits it.
func (r *policyReader) check(p *abate.Policy, base *policyReader) {
	r.wrong = map[string]bool{}
	for _, e := range append(fieldErrors(p.Validate()), r.ineffective(p, base)...) {
		what := e.Path + ": " + e.Problem
		if r.wrong[what] = true; base != nil && base.wrong[what] && r.at[e.Path] == nil || r.followsFrom(e) || base != nil && base.followsFrom(e) {
			continue
		}
		problem := e.Problem
		if base != nil && r.position(e.Path) == r.where {
			problem += " (inherited)"
		}
		r.d.fail(r.position(e.Path), r.service, r.name(e.Path), problem, e.Mend)
	}
	if len(r.wrong) == 0 && len(r.zeros) > 0 {
		r.checkZeros(p)
	}
}

// ineffective is what this service itself says without effect. Defaults may say a part of what a service completes.
func (r *policyReader) ineffective(p *abate.Policy, base *policyReader) []*abate.FieldError {
	if base == nil {
		return nil
	}
	return slices.DeleteFunc(fieldErrors(p.Ineffective()), func(e *abate.FieldError) bool { return r.at[e.Path] == nil })
}

// followsFrom tells whether a mistake is about a field that has no value because of an earlier one.
func (r *policyReader) followsFrom(e *abate.FieldError) bool {
	named := strings.Fields(e.Problem)
	if e.Problem == "has no effect" { // without the fields that the mend names
		named = strings.FieldsFunc(e.Mend, func(c rune) bool { return !unicode.IsLetter(c) })
	}
	for _, path := range r.failed {
		key := path[strings.LastIndexByte(path, '.')+1:]
		if e.Path == path || strings.HasPrefix(e.Path, path+".") || slices.Contains(named, key) {
			return true
		}
	}
	return false
}

// checkZeros refuses a zero that would not be obeyed, because for its field zero means the default.
func (r *policyReader) checkZeros(p *abate.Policy) {
	full := p.WithDefaults()
	for _, f := range r.zeros {
		value, ok := at(&full, f.path)
		if ok && !value.IsZero() && !strings.Contains(f.path, "[]") {
			r.d.fail(r.position(f.path), r.service, r.name(f.path), "0 would mean the default, "+f.text(value), "remove the key or write a value above 0; "+f.mend())
		}
	}
}

// position is where a field stands, or else the nearest thing around it.
func (r *policyReader) position(path string) *yaml.Node {
	for path != "" {
		if n := r.at[path]; n != nil {
			return n
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	if r.where != nil {
		return r.where
	}
	return &yaml.Node{Line: 1, Column: 1}
}

// fieldErrors takes apart what abate.Policy.Validate joined.
func fieldErrors(err error) []*abate.FieldError {
	var one *abate.FieldError
	switch e := err.(type) {
	case nil:
		return nil
	case *abate.FieldError:
		return []*abate.FieldError{e}
	case interface{ Unwrap() []error }:
		var list []*abate.FieldError
		for _, inner := range e.Unwrap() {
			list = append(list, fieldErrors(inner)...)
		}
		return list
	default:
		if errors.As(err, &one) {
			return []*abate.FieldError{one}
		}
		return []*abate.FieldError{{Problem: err.Error()}}
	}
}

// at is the value of the field with a path such as "circuitBreaker.rampUp".
func at(p *abate.Policy, path string) (reflect.Value, bool) {
	s, v := policyShape, reflect.ValueOf(p).Elem()
	for key := range strings.SplitSeq(path, ".") {
		if s == nil || s.byKey[key] == nil {
			return reflect.Value{}, false
		}
		v, s = v.FieldByIndex(s.byKey[key].index), s.byKey[key].inner
	}
	return v, true
}

// own cuts a policy loose from the lists it shares.
func own(p abate.Policy) abate.Policy {
	p.RetryOn, p.NeverRetryOn = slices.Clone(p.RetryOn), slices.Clone(p.NeverRetryOn)
	p.RetryMethods, p.Upstreams, p.Routes = slices.Clone(p.RetryMethods), slices.Clone(p.Upstreams), slices.Clone(p.Routes)
	return p
}
