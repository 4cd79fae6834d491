package abatefile

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/topology"
)

// own are keys of a service that no other format has below "services" or "defaults".
var own = []string{"maxRetries", "attemptTimeout", "retryOwner", "retryBudget", "circuitBreaker", "outlierDetection",
	"retryOn",
	"neverRetryOn", "retryMethods", "bulkhead", "initialDelay", "maxDelay", "hedge", "fallback", "preset", "upstreams",
	"pacing",
	"internalHeaders", "throttle", "kafka", "rateLimit", "jitter", "jitterFactor", "backoff", "timeout"}

// Recognise reports whether a document is a policy file of Abate.
func Recognise(d source.Document) bool {
	if !d.Root.IsMap() || d.Root.Get("kind").Exists() || d.Root.Get("version").Exists() {
		return false
	}
	has := func(n source.Node) bool {
		return slices.ContainsFunc(n.Pairs(), func(p source.Pair) bool { return slices.Contains(own, p.Key) })
	}
	for _, p := range d.Root.Pairs() {
		switch p.Key {
		case "defaults", "services", "protect", "gatewayRetries", "ambiguousPaths", "redis":
		default:
			if !strings.HasPrefix(p.Key, "x-") {
				return false
			}
		}
	}
	if has(d.Root.Get("defaults")) || d.Root.Get("gatewayRetries").Exists() {
		return true
	}
	if slices.ContainsFunc(d.Root.Get("protect").Pairs(), func(p source.Pair) bool { return p.Value.IsMap() }) {
		return true
	}
	for _, p := range d.Root.Get("services").Pairs() {
		if p.Value.Get("image").Exists() || p.Value.Get("build").Exists() {
			return false
		}
		if has(p.Value) {
			return true
		}
	}
	return false
}

// Read returns what the documents say. A file with mistakes is a remark for each, and says nothing else: a program
// refuses it too.
func Read(docs []source.Document, _ source.Assume) topology.Form {
	var out topology.Form
	for i := range docs {
		d := &docs[i]
		file, err := policyfile.Parse(d.File, d.Data)
		if err != nil {
			out.Remarks = append(out.Remarks, mistakes(d, err)...)
			continue
		}
		r := &reader{doc: d, form: &out}
		for j := range file.Services {
			r.service(&file.Services[j])
		}
		for j := range file.Protect {
			r.protect(&file.Protect[j])
		}
	}
	return out
}

func mistakes(d *source.Document, err error) []topology.Remark {
	var all policyfile.Errors
	if !errors.As(err, &all) {
		return []topology.Remark{{Rule: "F606", At: d.At(1, 0), Subject: "policy file", Text: err.Error()}}
	}
	var out []topology.Remark
	for _, e := range all {
		at := d.At(1, 0)
		if e.Line > 0 {
			at = d.At(e.Line, e.Col)
		}
		subject := "policy file"
		if e.Service != "" {
			subject = e.Service
		}
		out = append(out, topology.Remark{Rule: "F606", At: at, Subject: strings.TrimSpace(subject + " " + e.Field),
			Text: e.Problem,
			Fix:  e.Fix})
	}
	return out
}

// reader reads one file.
type reader struct {
	doc  *source.Document
	form *topology.Form
}

// at returns where a value is written: in the service, or in the defaults.
func (r *reader) at(service string, path ...string) (n source.Node, inherited bool) {
	if n = r.doc.Root.Get("services").Get(service).Get(path...); n.Written() {
		return n, false
	}
	if r.doc.Root.Get("services", service, "preset").Text() == string(policyfile.Connections) {
		return source.Node{}, false // which takes no defaults
	}
	return r.doc.Root.Get("defaults").Get(path...), true
}

// value gives v, which the policy has, the place that it comes from.
func value[T topology.Scalar](r *reader, service string, v T, path ...string) topology.Value[T] {
	switch n, inherited := r.at(service, path...); {
	case !n.Written():
		return topology.DefaultOf(v, "Abate", r.place(service))
	case inherited:
		return topology.Inherit(v, n.At(), "defaults")
	default:
		return topology.Write(v, n.At())
	}
}

// place returns where a service's entry begins.
func (r *reader) place(service string) topology.Position {
	for _, p := range r.doc.Root.Get("services").Pairs() {
		if p.Key == service {
			return p.Name.At()
		}
	}
	return r.doc.Root.At()
}

// protect makes the service that a gate stands in front of.
func (r *reader) protect(p *policyfile.Protected) {
	n := r.doc.Root.Get("protect").Get(p.Name)
	s := topology.Service{Name: p.Name, At: n.At(), Cancels: topology.DefaultOf(true, "Abate", n.At())}
	if trusted := n.Get("trustedPeers"); len(p.Protection.TrustedPeers) > 0 && trusted.Written() {
		s.CallTree = topology.Write(true, trusted.At())
	}
	r.form.Services = append(r.form.Services, s)
}

func (r *reader) backoff(service string, p *policyfile.Policy) topology.Backoff {
	b := topology.Backoff{First: value(r, service, p.InitialDelay, "initialDelay"), Max: value(r, service, p.MaxDelay,
		"maxDelay"),
		Multiplier: value(r, service, p.Multiplier, "multiplier"),
		RetryAfter: topology.DefaultOf(true, "Abate", r.place(service))}
	jitter := string(p.Jitter)
	switch p.Jitter {
	case "factor":
		b.Jitter = value(r, service, percent(p.JitterFactor), "jitterFactor")
	case "decorrelated": // from the first delay to three times the one before
		b.Multiplier, jitter = topology.DefaultOf(3.0, "Abate's decorrelated jitter", r.place(service)), "full"
		b.Jitter = value(r, service, jitter, "jitter")
	default:
		key := "jitter"
		if n, _ := r.at(service, key); !n.Written() { // a factor of 0 is none
			key = "jitterFactor"
		}
		b.Jitter = value(r, service, jitter, key)
	}
	switch p.Backoff {
	case "none":
		return topology.Backoff{First: value(r, service, time.Duration(0), "backoff"), RetryAfter: b.RetryAfter}
	case "fixed":
		b.Multiplier = value(r, service, 1.0, "backoff")
	case "linear": // twice the last one is never less
		b.Multiplier = value(r, service, 2.0, "backoff")
	}
	return b
}
