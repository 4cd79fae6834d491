package policyfile

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/strictyaml"
)

var policyShape = newPolicyShape()

// newPolicyShape is the keys of a policy, and what no tag of them says.
func newPolicyShape() *strictyaml.Shape {
	s := strictyaml.ShapeOf(reflect.TypeFor[abate.Policy]())
	s.Find("fallback.body").Longest = 64 << 10 // a page, not a word
	for _, key := range []string{"retryOn", "retryMethods"} {
		s.Find(key).NotEmpty = "remove the key, or write maxRetries: 0 to retry nothing"
	}
	return s
}

// policyReader reads one policy, of a service or of defaults, over the one it inherits, and remembers what stands where.
type policyReader struct {
	*strictyaml.Positions
	wrong map[string]bool // "path: problem" of what check reported
}

// read puts what the file says for this policy into p.
func (r *policyReader) read(p *abate.Policy, n *yaml.Node) {
	r.Read(policyShape, n, reflect.ValueOf(p).Elem())
	if r.Has("jitterFactor") && !r.Has("jitter") && !slices.Contains(r.Failed(), "jitterFactor") {
		// Who writes only the factor means that kind of jitter, and with 0 none.
		p.Jitter = "factor"
		if p.JitterFactor == 0 {
			p.Jitter = "none"
		}
	}
	if r.Service == "" {
		for _, key := range []string{"upstreams", "routes"} {
			if r.Has(key) {
				r.Reject(key, "cannot have a default", "it says which requests belong to one service: write it there")
			}
		}
	}
}

// check applies the rules of the policy as a whole. What base, the reader of the defaults, reported already is not said
// again for every service that inherits it.
func (r *policyReader) check(p *abate.Policy, base *policyReader) {
	r.wrong = map[string]bool{}
	for _, e := range append(fieldErrors(p.Validate()), r.ineffective(p, base)...) {
		what := e.Path + ": " + e.Problem
		if r.wrong[what] = true; base != nil && base.wrong[what] && !r.Has(e.Path) || r.followsFrom(e) || base != nil && base.followsFrom(e) {
			continue
		}
		problem := e.Problem
		if base != nil && r.Node(e.Path) == r.Where {
			problem += " (inherited)"
		}
		r.Add(e.Path, problem, e.Mend)
	}
	if len(r.wrong) == 0 && len(r.Zeros()) > 0 {
		r.checkZeros(p)
	}
}

// ineffective is what this service itself says without effect. Defaults may say a part of what a service completes.
func (r *policyReader) ineffective(p *abate.Policy, base *policyReader) []*abate.FieldError {
	if base == nil {
		return nil
	}
	return slices.DeleteFunc(fieldErrors(p.Ineffective()), func(e *abate.FieldError) bool { return !r.Has(e.Path) })
}

// followsFrom tells whether a mistake is about a field that has no value because of an earlier one.
func (r *policyReader) followsFrom(e *abate.FieldError) bool {
	named := strings.Fields(e.Problem)
	if e.Problem == "has no effect" { // without the fields that the mend names
		named = strings.FieldsFunc(e.Mend, func(c rune) bool { return !unicode.IsLetter(c) })
	}
	for _, path := range r.Failed() {
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
	for _, f := range r.Zeros() {
		value, ok := policyShape.Value(reflect.ValueOf(full), f.Path)
		if ok && !value.IsZero() {
			r.Add(f.Path, "0 would mean the default, "+f.Text(value), "remove the key or write a value above 0; "+f.Mend())
		}
	}
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

// own cuts a policy loose from the lists it shares.
func own(p abate.Policy) abate.Policy {
	p.RetryOn, p.NeverRetryOn = slices.Clone(p.RetryOn), slices.Clone(p.NeverRetryOn)
	p.RetryMethods, p.Upstreams, p.Routes = slices.Clone(p.RetryMethods), slices.Clone(p.Upstreams), slices.Clone(p.Routes)
	return p
}
