package linkerd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

type (
	scalar                   = topology.Scalar
	value[T topology.Scalar] = topology.Value[T]
)

// reader holds the objects of all files while policies are made of them.
type reader struct {
	version  value[string]
	who      string // whose defaults: "Linkerd 2.19"
	services []source.Resource
	routes   []source.Resource
	profiles []source.Resource
	profiled map[string]source.Resource   // ServiceProfiles by the service that they are for
	named    map[string][]source.Resource // Services by name
	form     topology.Form
}

// Read returns what the documents, all of them recognised, say.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{version: assume.Version("linkerd", latest)}
	r.who = "Linkerd " + r.version.V
	for _, d := range docs {
		switch o := d.Resource(); o.Kind {
		case "Service":
			r.services = append(r.services, o)
		case "ServiceProfile":
			r.profiles = append(r.profiles, o)
		default:
			r.routes = append(r.routes, o)
		}
	}
	r.profiled, r.named = map[string]source.Resource{}, map[string][]source.Resource{}
	for _, p := range r.profiles {
		r.profiled[topology.Strip(p.Name)] = p
		r.profile(p)
	}
	for _, s := range r.services {
		r.named[s.Name] = append(r.named[s.Name], s)
	}
	for _, o := range r.routes {
		r.route(o)
	}
	for _, s := range r.services {
		if r.annotations(s, s.Name, s.Namespace) {
			l := r.layer(s.String(), s.At)
			r.retries(&l, s)
			r.timeouts(&l, s)
			r.breaker(&l, s)
			r.emit(source.Qualified(s.Name, s.Namespace), s.Namespace, l)
		}
	}
	r.form.Remarks = source.Distinct(r.form.Remarks)
	return r.form
}

// spaces returns the namespaces that an object may be of: its own, or those of all ServiceProfiles where its file
// leaves it out.
func (r *reader) spaces(namespace string) []string {
	if namespace != "" {
		return []string{namespace}
	}
	var out []string
	for _, p := range r.profiles {
		if !slices.Contains(out, p.Namespace) {
			out = append(out, p.Namespace)
		}
	}
	return out
}

func (r *reader) remark(rule string, at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: subject, Text: text, Fix: fix})
}

// read is source.Scalar, whose remarks are added to the form's.
func read[T scalar](r *reader, n source.Node, parse func(string) (T, error)) value[T] {
	v, more := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, more...)
	return v
}

func (r *reader) layer(name string, at topology.Position) topology.Layer {
	return topology.Layer{Kind: topology.SidecarOut, Product: "linkerd", Version: r.version, Name: name, At: at,
		Choice: "the routes of the sidecar", Cancels: topology.DefaultOf(true, r.who, at),
		Overridable: topology.DefaultOf(false, r.who+" (without --allow-l5d-request-headers)", at),
		Answers: []topology.Answer{{After: topology.Hang, Gives: topology.S504}, {After: topology.Refused,
			Gives: topology.S502},
			{After: topology.ResetUnsent, Gives: topology.S502}, {After: topology.ResetSent, Gives: topology.S502}}}
}

func (r *reader) emit(callee, namespace string, l topology.Layer) {
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{callee}, Namespace: namespace, Layer: l})
}

// annotations reports whether the annotations of an object hold: the version knows them, and no ServiceProfile for the
// same service takes their place.
func (r *reader) annotations(o source.Resource, service, namespace string) bool {
	if !annotated(o) {
		return true
	}
	all := o.Root.Get("metadata", "annotations").Pairs()
	at := all[slices.IndexFunc(all, isOurs)].Name.At()
	if source.Before(r.version.V, "2.16") {
		r.remark("F602", at, o.String()+" annotations",
			"Linkerd "+r.version.V+" does not know these annotations: they came with 2.16",
			"update Linkerd, or write a ServiceProfile")
		return false
	}
	for _, space := range r.spaces(namespace) {
		if p, found := r.profiled[topology.Strip(source.Qualified(service, space))]; found {
			r.remark("F603", at, o.String()+" annotations", "the ServiceProfile of the same service ("+p.At.String()+
				") takes the place of these annotations: they do nothing", "remove one of the two")
			return false
		}
	}
	return true
}

// route reads an HTTPRoute or GRPCRoute whose parent is a Service. What it leaves out, its Service says.
func (r *reader) route(o source.Resource) {
	for _, ref := range o.Spec.Get("parentRefs").Items() {
		if kind := ref.Get("kind").Text(); kind != "Service" {
			continue
		}
		name, space := ref.Get("name").Text(), cmp.Or(ref.Get("namespace").Text(), o.Namespace)
		if name == "" || !r.annotations(o, name, space) {
			continue
		}
		service := r.service(name, space)
		for i, rule := range o.Spec.Get("rules").Items() {
			l := r.layer(fmt.Sprintf("%s, rules[%d]", o, i), rule.At())
			from := o
			if !has(o, isRetry) {
				from = service
			}
			r.retries(&l, from)
			if from = o; !has(o, isTimeout) {
				from = service
			}
			r.timeouts(&l, from)
			r.ruleTimeout(&l, o, rule)
			r.breaker(&l, service)
			for _, m := range source.RouteMatches(rule.Get("matches")) {
				one := l
				one.Match = m
				r.emit(source.Qualified(name, space), space, one)
			}
		}
	}
}

func (r *reader) service(name, namespace string) source.Resource {
	for _, s := range r.named[name] {
		if s.Namespace == namespace || s.Namespace == "" || namespace == "" {
			return s
		}
	}
	return source.Resource{}
}

// ruleTimeout reads timeouts of a rule. Linkerd's own HTTPRoute obeys request; whether it obeys one of the Gateway API
// depends on the version.
func (r *reader) ruleTimeout(l *topology.Layer, o source.Resource, rule source.Node) {
	n := rule.Get("timeouts", "request")
	switch {
	case l.Overall.Origin != topology.Default || !n.Exists():
	case o.Group == ownGroup:
		l.Overall = read(r, n, source.Duration)
	default:
		l.Overall = topology.NotKnown[duration]("not every version of Linkerd obeys timeouts of a Gateway API route", n.At())
	}
}
