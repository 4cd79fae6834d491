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
	"github.com/abate-go/abate/policy/breaker"
)

var policyShape = newPolicyShape()

// newPolicyShape is the keys of a policy, and what no tag of them says.
func newPolicyShape() *strictyaml.Shape {
	s := strictyaml.ShapeOf(reflect.TypeFor[entry]())
	s.Find("fallback.body").Longest = 64 << 10 // a page, not a word
	for _, key := range []string{"retryOn", "retryMethods"} {
		s.Find(key).NotEmpty = "remove the key, or write maxRetries: 0 to retry nothing"
	}
	s.Find("kafka.tiers").NotEmpty = "remove the key, or write disabled: true for no retry topics"
	return s
}

// reader reads one policy, of a service or of defaults, or another section of the top level, over what it inherits, and
// remembers what stands where.
type reader struct {
	*strictyaml.Positions
	shape *strictyaml.Shape
	wrong map[string]bool // "path: problem" of what check reported
	gives string          // how those who inherit from this section say so
}

// reader begins to read the section at key, which belongs to service or else stands below prefix.
func (d *decoder) reader(shape *strictyaml.Shape, service, prefix string, key *yaml.Node) *reader {
	return &reader{Positions: &strictyaml.Positions{Document: d.Document, Service: service, Prefix: prefix, Where: key},
		shape: shape}
}

// policy puts what the file says for this policy into p.
func (r *reader) policy(p *entry, n *yaml.Node) {
	r.Read(r.shape, n, reflect.ValueOf(p).Elem())
	if r.Has("jitterFactor") && !r.Has("jitter") && !slices.Contains(r.Failed(), "jitterFactor") {
		// Who writes only the factor means that kind of jitter, and with 0 none.
		p.Jitter = "factor"
		if p.JitterFactor == 0 {
			p.Jitter = "none"
		}
	}
	r.kindOfBreaker(p)
	if r.Service == "" {
		for _, key := range ofOneService {
			if r.Has(key) {
				r.Reject(key, "cannot have a default", "it is about one service: write it there")
			}
		}
	}
	r.checkPreset(p)
}

// kindOfBreaker settles which kind of circuit breaker this section means. Its own numbers make it one of the kind
// thresholds, also where the kind adaptive is inherited; its own kind adaptive drops numbers that are inherited.
func (r *reader) kindOfBreaker(p *entry) {
	const section = "circuitBreaker"
	c := &p.CircuitBreaker
	own := slices.DeleteFunc(breaker.NumberKeys(), func(key string) bool { return !r.Has(section + "." + key) })
	switch explicit := r.Has(section + ".kind"); {
	case c.Kind != breaker.Adaptive:
	case !explicit && len(own) > 0:
		c.Kind = ""
		if !slices.Contains(own, "failureRateThreshold") {
			c.FailureRateThreshold = breaker.Numbers().FailureRateThreshold
		}
		if !slices.Contains(own, "rampUp") {
			c.RampUp = breaker.Numbers().RampUp
		}
	case explicit:
		for _, key := range own {
			path := section + "." + key
			if v, ok := r.shape.Value(reflect.ValueOf(*p), path); ok && !v.IsZero() {
				r.Reject(path, "has no meaning with kind: adaptive", "remove it, or write kind: thresholds")
			}
		}
		*c = c.WithoutNumbers()
	}
}

// checkPolicy applies the rules of the policy as a whole. Defaults (base is nil) may say a part of what a service
// completes, so only services can have settings without effect.
func (r *reader) checkPolicy(p *entry, base *reader) {
	var ineffective []*abate.FieldError
	if base != nil {
		ineffective = fieldErrors(p.Ineffective())
	}
	r.check(fieldErrors(p.Validate()), ineffective, entry{Policy: p.WithDefaults()}, base)
}

// check reports what is invalid, what this section itself says without effect, and zeros that would mean another value
// of full. What base, the reader of the defaults, reported already is not said again for every service that inherits
// it.
func (r *reader) check(invalid, ineffective []*abate.FieldError, full any, base *reader) {
	r.wrong = map[string]bool{}
	ineffective = slices.DeleteFunc(ineffective, func(e *abate.FieldError) bool { return !r.Has(e.Path) })
	for _, e := range append(invalid, ineffective...) {
		what := e.Path + ": " + e.Problem
		if r.wrong[what] = true; base != nil && base.wrong[what] && !r.Has(e.Path) || r.followsFrom(e) ||
			base != nil && base.followsFrom(e) {
			continue
		}
		problem := e.Problem
		if base != nil && r.Node(e.Path) == r.Where {
			problem += " (" + base.gives + ")"
		}
		r.Add(e.Path, problem, e.Fix)
	}
	if len(r.wrong) == 0 && len(r.Zeros()) > 0 {
		r.checkZeros(full)
	}
}

// followsFrom reports whether a mistake is about a field that has no value because of an earlier one.
func (r *reader) followsFrom(e *abate.FieldError) bool {
	named := strings.Fields(e.Problem)
	if e.Problem == "has no effect" { // without the fields that the fix names
		named = strings.FieldsFunc(e.Fix, func(c rune) bool { return !unicode.IsLetter(c) })
	}
	for _, path := range r.Failed() {
		key := path[strings.LastIndexByte(path, '.')+1:]
		if path == "" || e.Path == path || strings.HasPrefix(e.Path, path+".") || slices.Contains(named, key) {
			return true
		}
	}
	return false
}

// checkZeros refuses a zero that would not be obeyed, because for its field zero means the default.
func (r *reader) checkZeros(full any) {
	for _, f := range r.Zeros() {
		value, ok := r.shape.Value(reflect.ValueOf(full), f.Path)
		if ok && !value.IsZero() {
			r.Add(f.Path, "0 would mean the default, "+f.Text(value), "remove the key or write a value above 0; "+f.Fix())
		}
	}
}

// shareable are the sections that one instance can share with the others.
var shareable = []string{"rateLimit", "idempotency", "retryBudget", "circuitBreaker"}

// needRedis reports what is to be shared in a file that does not say through which Redis.
func (r *reader) needRedis() {
	for _, section := range shareable {
		if path := section + ".fleet"; r.Has(path) && strings.EqualFold(r.Node(path).Value, "true") &&
			!r.wrong[path+": has no effect"] {
			r.Add(path, "needs a Redis", "add redis: {addresses: [\"redis:6379\"]} at the top level of the file, or redis: "+
				"{embedded: true} for trying")
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
