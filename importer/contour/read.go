package contour

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

type (
	scalar                   = topology.Scalar
	value[T topology.Scalar] = topology.Value[T]
)

// envoy is what Contour's Envoy is called as a service.
const envoy = "contour-envoy"

// reader holds the objects of all files while routes are read.
type reader struct {
	version  value[string]
	who      string // whose defaults: "Contour 1.33"
	proxies  []source.Resource
	named    map[string][]source.Resource // proxies by namespace and name
	services map[string][]source.Resource // by name
	hosts    []string
	reached  map[string]bool // proxies that a root includes, by name and namespace
	included int             // how often a proxy was read
	form     topology.Form
}

// Read returns what the documents, all of them recognised, say.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{version: assume.Version("contour", latest), reached: map[string]bool{},
		named: map[string][]source.Resource{}, services: map[string][]source.Resource{}}
	r.who = "Contour " + r.version.V
	for _, d := range docs {
		if o := d.Resource(); o.Kind == "HTTPProxy" {
			r.proxies = append(r.proxies, o)
			r.named[key(o)] = append(r.named[key(o)], o)
		} else {
			r.services[o.Name] = append(r.services[o.Name], o)
		}
	}
	for _, p := range r.proxies {
		if host := p.Spec.Get("virtualhost", "fqdn"); host.Exists() {
			r.hosts = append(r.hosts, host.Text())
			r.proxy(p, topology.Match{Host: host.Text()}, 0)
		}
	}
	for _, p := range r.proxies {
		if !r.reached[key(p)] { // its root is in no file
			r.proxy(p, topology.Match{}, 0)
		}
	}
	if len(r.form.Calls) > 0 {
		at := r.proxies[0].At
		s := topology.Service{Name: envoy, At: at, AnswersWith: topology.DefaultOf("same", r.who, at),
			Cancels: topology.DefaultOf(true, r.who, at)}
		for _, h := range r.hosts {
			if strings.Contains(h, ".") && !strings.Contains(h, "*") && source.Template(h) == "" {
				s.Aliases = append(s.Aliases, h)
			}
		}
		r.form.Services = []topology.Service{s}
	}
	r.form.Remarks = source.Distinct(r.form.Remarks)
	return r.form
}

func key(p source.Resource) string { return p.Namespace + "/" + p.Name }

// proxy reads the routes of an HTTPProxy, and those of the proxies that it includes.
func (r *reader) proxy(p source.Resource, outer topology.Match, depth int) {
	const deepest, most = 20, 100_000 // Contour refuses circles
	if r.included++; depth > deepest || r.included > most {
		return
	}
	r.reached[key(p)] = true
	for i, n := range p.Spec.Get("routes").Items() {
		r.route(p, n, i, conditions(n.Get("conditions"), outer))
	}
	for _, inc := range p.Spec.Get("includes").Items() {
		space := inc.Get("namespace").Text()
		if space == "" {
			space = p.Namespace
		}
		for _, other := range r.named[space+"/"+inc.Get("name").Text()] {
			r.proxy(other, conditions(inc.Get("conditions"), outer), depth+1)
		}
	}
}

// conditions narrows a match by a list of conditions, all of which have to be met. Prefixes are put together.
func conditions(n source.Node, m topology.Match) topology.Match {
	for _, c := range n.Items() {
		switch {
		case c.Get("prefix").Exists():
			if p := strings.TrimSuffix(strings.TrimSuffix(m.Path, "*"), "/") + c.Get("prefix").Text(); p != "/" {
				m.Path = p + "*"
			}
		case c.Get("exact").Exists():
			m.Path = c.Get("exact").Text()
		case c.Get("regex").Exists():
			m.Path = "~" + c.Get("regex").Text()
		case c.Get("header").Exists():
			if h := c.Get("header"); h.Get("name").Text() == ":method" && h.Get("exact").Exists() {
				m.Methods = append(slices.Clone(m.Methods), h.Get("exact").Text())
			} else {
				word := ", header "
				if h.Get("notpresent|notexact|notcontains").Text() != "" {
					word = ", no header "
				}
				m.Other = strings.TrimPrefix(m.Other+word+h.Get("name").Text(), ", ")
			}
		case c.Get("queryParameter").Exists():
			m.Other = strings.TrimPrefix(m.Other+", query parameter "+c.Get("queryParameter", "name").Text(), ", ")
		}
	}
	return m
}

// route reads one route.
func (r *reader) route(p source.Resource, n source.Node, i int, m topology.Match) {
	if n.Get("requestRedirectPolicy").Exists() || n.Get("directResponsePolicy").Exists() {
		return
	}
	l := topology.Layer{Kind: topology.Gateway, Product: "contour", Version: r.version, At: n.At(), Match: m,
		Name: fmt.Sprintf("%s, routes[%d]", p, i), Choice: "the routes of the gateway", Answers: envoywords.Answers(),
		Cancels: topology.DefaultOf(true, r.who, n.At()), Overridable: topology.DefaultOf(false, r.who, n.At())}
	l.Overall = r.timeout(n.Get("timeoutPolicy", "response"), l.Name+" response")
	if l.Overall.IsZero() {
		l.Overall = topology.DefaultOf(envoywords.RouteTimeout, r.who, n.At())
	}
	if open := n.Get("enableWebsockets"); open.Text() == "true" {
		l.Upgrades = topology.Write(true, open.At())
	}
	mirror := l
	if policy := n.Get("retryPolicy"); policy.Written() {
		r.retries(&l, policy)
	}
	for _, s := range n.Get("services").Items() {
		name := s.Get("name").Text()
		if name == "" || source.Template(name) != "" {
			continue
		}
		to, one := source.Qualified(name, p.Namespace), l
		detached := s.Get("mirror").Text() == "true"
		if detached {
			one = mirror
		}
		r.limits(&one, name, p.Namespace)
		if is := s.Get("protocol"); is.Text() == "h2c" || is.Text() == "h2" {
			one.Speaks = topology.Write(topology.SpeaksGRPC, is.At())
		}
		r.form.Calls = append(r.form.Calls, topology.Call{From: envoy, To: to, At: s.At(), Detached: detached,
			Layers: []topology.Layer{one}})
	}
}

// timeout reads a limit of time. infinity is none; 0s is as if nothing were written.
func (r *reader) timeout(n source.Node, subject string) value[time.Duration] {
	if text := n.Text(); text == "infinity" || text == "infinite" {
		return topology.Write(time.Duration(0), n.At())
	}
	v := read(r, n, source.Duration)
	if d, known := v.Get(); known && d == 0 {
		r.remark("F604", n.At(), subject, "0s counts as nothing written, so the default holds", "write infinity for no limit")
		return value[time.Duration]{}
	}
	return v
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
