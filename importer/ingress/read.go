package ingress

import (
	"cmp"
	"slices"
	"strings"

	"github.com/abate-go/abate/importer/kong"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// reader holds the objects of all files while the Ingresses are read.
type reader struct {
	assume       source.Assume
	classes      map[string]source.Resource
	defaultClass string
	ingresses    []source.Resource
	kong         kong.Controller
	configs      []source.Resource            // ConfigMaps of ingress-nginx
	made         map[string]bool              // services of the form
	beside       map[[3]string]topology.Layer // of ingress-nginx: canaries take them over
	form         topology.Form
}

// Read returns what the documents, all of them recognised, say.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{assume: assume, classes: map[string]source.Resource{}, made: map[string]bool{},
		beside: map[[3]string]topology.Layer{}}
	r.kong.Version = r.version(kongIngress)
	for _, d := range ordered(docs) {
		switch o := d.Resource(); o.Kind {
		case "Ingress":
			r.ingresses = append(r.ingresses, o)
		case "IngressClass":
			r.classes[o.Name] = o
			if o.Annotation("ingressclass.kubernetes.io/is-default-class").Text() == "true" {
				r.defaultClass = o.Name
			}
		case "Service":
			r.kong.Services = append(r.kong.Services, o)
		case "KongIngress":
			r.kong.Overrides = append(r.kong.Overrides, o)
		default:
			r.configs = append(r.configs, o)
		}
	}
	r.form.Remarks = r.kong.Retired()
	for _, canary := range []bool{false, true} { // which follow what they stand beside
		for _, o := range r.ingresses {
			if o.Annotation(middlewares).Text() != "" {
				continue
			}
			if c := r.classOf(o); canary == (c.controller == ingressNginx && isCanary(o)) {
				r.ingress(o, c)
			}
		}
	}
	r.form.Remarks = source.Distinct(append(r.form.Remarks, r.kong.Remarks...))
	return r.form
}

// ordered returns documents by file and line: where they contradict, the order in which files were named decides
// nothing.
func ordered(docs []source.Document) []source.Document {
	docs = slices.Clone(docs)
	slices.SortStableFunc(docs, func(a, b source.Document) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return docs
}

// middlewares is the annotation of an Ingress that package traefik reads.
const middlewares = "traefik.ingress.kubernetes.io/router.middlewares"

func (r *reader) remark(rule string, at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: subject, Text: text, Fix: fix})
}

// target is one path of an Ingress, or what it does with the rest.
type target struct {
	match   topology.Match
	title   string
	backend source.Node // what a path says
	service source.Node // or the name alone
	at      topology.Position
}

// keys are what a canary has in common with the Ingress that it stands beside: host and path, and best of all the
// namespace. ingress-nginx does not ask for the namespace, but the same host in two of them is mostly that of two
// clusters.
func (t *target) keys(namespace string) [][3]string {
	return [][3]string{{namespace, t.match.Host, t.match.Path}, {"", t.match.Host, t.match.Path}}
}

// ingress makes the calls of one Ingress.
func (r *reader) ingress(o source.Resource, c class) {
	layer := func(target, string) (l topology.Layer, known bool) { return l, false }
	switch c.controller {
	case ingressNginx:
		if redirects(o) {
			return
		}
		if o.Annotation(nginxPrefix+"ssl-passthrough").Text() == "true" {
			break // connections are passed on as they are: nothing of a request is tried again
		}
		layer = r.nginx(o)
	case kongIngress:
		layer = func(t target, name string) (topology.Layer, bool) {
			return r.kong.Layer(kong.Service{At: t.at}, name, o.Namespace), true
		}
	}
	for _, t := range r.targets(o, c) {
		name := r.backend(o, t)
		if name == "" {
			continue
		}
		call := topology.Call{From: r.from(c, o.At), To: source.Qualified(name, o.Namespace), At: t.at}
		if l, known := layer(t, name); known {
			l.Name, l.At, l.Match, l.Choice = t.title, t.at, t.match, c.service
			call.Layers = []topology.Layer{l}
		}
		r.form.Calls = append(r.form.Calls, call)
	}
}

// targets returns where an Ingress leads.
func (r *reader) targets(o source.Resource, c class) []target {
	var all []target
	rules := o.Spec.Get("rules")
	r.isList(o, "rules", rules)
	for _, rule := range rules.Items() {
		host := rule.Get("host").Text()
		paths := rule.Get("http", "paths")
		r.isList(o, "paths", paths)
		for _, p := range paths.Items() {
			path := p.Get("path").Text()
			all = append(all, target{match: topology.Match{Host: host, Path: pathOf(o, c, path, p.Get("pathType").Text())},
				title: o.String() + ", " + cmp.Or(host+path, "/"), backend: p.Get("backend"), at: p.At()})
		}
	}
	if b := o.Spec.Get("defaultBackend|backend"); b.Exists() {
		all = append(all, target{title: o.String() + ", default back end", backend: b, at: b.At()})
	}
	if n := o.Annotation(nginxPrefix + "default-backend"); c.controller == ingressNginx && n.Text() != "" {
		all = append(all, target{title: o.String() + ", default-backend", service: n, at: n.At(),
			match: topology.Match{Other: "while no endpoint of the service is ready"}})
	}
	if len(all) == 0 && !rules.Exists() && !r.elsewhere(o) {
		r.remark("F702", o.At, o.String()+" rules", "this Ingress has neither rules nor a default back end here, so where "+
			"it leads is not known", "pass the file as it is rendered (kustomize build … | abate audit -), or complete "+
			"it: Kubernetes refuses it as it is")
	}
	return all
}

// isList remarks a list that is none, which Kubernetes refuses.
func (r *reader) isList(o source.Resource, key string, n source.Node) {
	switch {
	case !n.Exists() || n.IsList():
	case source.Template(n.Text()) != "":
		r.remark("F702", n.At(), o.String()+" "+key, "the "+key+" are a template: "+source.Template(n.Text()),
			"pass the file as it is rendered")
	default:
		r.remark("F606", n.At(), o.String()+" "+key, key+" is no list here, and Kubernetes refuses the Ingress",
			"write a list: each entry begins with a dash")
	}
}

// elsewhere reports whether another document is the same Ingress with rules: this one is a patch for it.
func (r *reader) elsewhere(o source.Resource) bool {
	for _, other := range r.ingresses {
		if other.Name == o.Name && other.Spec.Get("rules|defaultBackend|backend").Exists() {
			return true
		}
	}
	return false
}

// pathOf is the path of a rule as a condition.
func pathOf(o source.Resource, c class, path, kind string) string {
	switch {
	case c.controller == ingressNginx && o.Annotation(nginxPrefix+"use-regex").Text() == "true" && path != "":
		return "~" + path
	case c.controller == kongIngress && strings.HasPrefix(path, "/~"):
		return "~" + strings.TrimPrefix(path, "/~")
	case kind == "Exact":
		return path
	case path == "" || path == "/":
		return ""
	}
	return path + "*"
}

// action is the port of what is no service, but a redirect or an answer, of the load balancers of AWS.
const action = "use-annotation"

// backend returns the name of the service that a path leads to, if one can be known.
func (r *reader) backend(o source.Resource, t target) string {
	service := t.backend.Get("service")
	name := service.Get("name")
	if t.service.Exists() {
		name = t.service
	} else if !service.Exists() {
		name = t.backend.Get("serviceName") // v1beta1
	}
	subject := t.title + " backend"
	resource := t.backend.Get("resource")
	switch template := source.Template(name.Text()); {
	case template != "":
		r.remark("F702", name.At(), subject, "the back end is a template: "+template, "pass the file as it is rendered")
	case service.Get("port", "name").Text() == action || t.backend.Get("servicePort").Text() == action:
	case name.Text() != "":
		return name.Text()
	case resource.Exists():
		r.remark("F702", resource.At(), subject, "the back end is a "+cmp.Or(resource.Get("kind").Text(), "resource")+
			" and no Service, so who is called is not known", "write a line under calls: for it, if it is a service")
	default:
		at := t.backend.At()
		if at.IsZero() {
			at = t.at
		}
		r.remark("F606", at, subject, "this path names no back end, and Kubernetes refuses the Ingress",
			"write backend: {service: {name: NAME, port: {number: 80}}}")
	}
	return ""
}
