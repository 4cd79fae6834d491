// Package consul reads config entries of Consul: service-router, service-resolver, service-defaults and http-route, as
// HCL, JSON or YAML, as resources of Kubernetes or of Terraform, and those that an agent's configuration begins with.
// It reads too which services an agent registers with a sidecar, and what they call through it.
// What a destination of them repeats is said by package envoywords, because Consul's sidecars and gateways are Envoy.
package consul

import (
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version whose defaults hold when nobody says which it is.
const assumedVersion = "1.22"

// Recognise reports whether a document has a config entry that is read, or registers services with upstreams.
func Recognise(d source.Document) bool {
	return len(entriesOf(d.Root)) > 0 || len(registered(d.Root)) > 0
}

// Read returns what the entries say: each route of a router is a policy of the sidecars that call its service, and each
// rule of an http-route one of its gateways. An upstream of a service is a call.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{version: assume.Version("consul", assumedVersion), routers: map[string]bool{},
		before: map[string]bool{}, routed: map[string]bool{},
		gateways: map[string]bool{}, protocols: map[string]source.Node{}}
	r.who = "Consul " + r.version.V
	var all []entry
	for i := range docs {
		all = append(all, entriesOf(docs[i].Root)...)
	}
	r.names = namesOf(all)
	for _, e := range all {
		name := r.names[e.name.Text()]
		if name == "" {
			name = e.name.Text()
		}
		r.before[name] = r.before[name] || e.kind == "service-router" || e.kind == "service-splitter"
		switch e.kind {
		case "service-defaults":
			r.protocols[name] = get(e.spec, "Protocol")
		case "proxy-defaults":
			r.protocol = get(get(e.spec, "Config"), "Protocol")
		}
		r.routers[name] = r.routers[name] || e.kind == "service-router"
		r.routed[name] = r.routed[name] || r.before[name] || e.kind == "service-resolver"
	}
	for _, e := range all {
		r.entry(e)
	}
	for i := range docs {
		for _, s := range registered(docs[i].Root) {
			r.registration(s)
		}
	}
	r.form.Remarks = source.Distinct(r.form.Remarks)
	return r.form
}

// spoken reads the protocol of a service.
func spoken(n source.Node) topology.Value[string] {
	switch strings.ToLower(n.Text()) {
	case "grpc", "http2":
		return topology.Write(topology.SpeaksGRPC, n.At())
	case "http":
		return topology.Write(topology.SpeaksHTTP, n.At())
	}
	return topology.Value[string]{}
}

// protocolOf returns where the protocol of a service stands, if it does.
func (r *reader) protocolOf(name string) source.Node {
	if own := r.protocols[name]; own.Text() != "" {
		return own
	}
	return r.protocol
}

func (r *reader) speaks(name string) topology.Value[string] { return spoken(r.protocolOf(name)) }

func (r *reader) entry(e entry) {
	r.form.Remarks = append(r.form.Remarks, e.broken...)
	if len(e.broken) > 0 {
		return
	}
	if e.kind == "service-defaults" && !get(e.spec, "UpstreamConfig").Exists() &&
		e.spec.IsMap() {
		return // nothing of it is about calls
	}
	if e.kind == "proxy-defaults" {
		r.custom("proxy-defaults", get(e.spec, "Config"))
		return
	}
	name, ok := r.name(e.name)
	if !ok {
		return
	}
	if e.spec.Exists() && !e.spec.IsMap() {
		r.remark("F702", e.spec.At(), e.kind+" "+name, "what this entry says is not known: it is neither "+
			"jsonencode({…}) nor a text of JSON",
			"write it as config_json = jsonencode({…}), or give the audit the entry as a file of its own")
		return
	}
	switch e.kind {
	case "service-router":
		r.router(name, e.spec)
	case "service-splitter":
		r.splitter(name, e.spec)
	case "service-resolver":
		r.resolver(name, e.spec)
	case "service-defaults":
		r.defaults(name, e.spec)
	case "http-route":
		r.httpRoute(name, e.spec)
	}
}

type reader struct {
	form    topology.Form
	version topology.Value[string]
	who     string
	routers map[string]bool // services with a router
	before  map[string]bool // services with a router or a splitter
	routed  map[string]bool // and those with a resolver
	// protocols are those of services, and protocol that of all others.
	protocols map[string]source.Node
	protocol  source.Node
	names     map[string]string // of entries of Terraform, by how others refer to them
	// gateways are those that the form has.
	gateways map[string]bool
}

func get(n source.Node, key string) source.Node { return envoywords.ConsulKey(n, key) }

func read[T topology.Scalar](r *reader, n source.Node, parse func(string) (T, error)) topology.Value[T] {
	v, remarks := source.Scalar(n, parse)
	r.form.Remarks = append(r.form.Remarks, remarks...)
	return v
}

func (r *reader) remark(rule string, at topology.Position, subject, text, fix string) {
	r.form.Remarks = append(r.form.Remarks, topology.Remark{Rule: rule, At: at, Subject: subject, Text: text, Fix: fix})
}

func (r *reader) layer(name string, at topology.Position) topology.Layer {
	return topology.Layer{Kind: topology.SidecarOut, Product: "consul", Version: r.version, Name: name, At: at,
		Cancels: topology.DefaultOf(true, r.who, at), Answers: envoywords.Answers(),
		Budget: topology.Budget{Concurrent: topology.DefaultOf(envoywords.ClusterRetry, r.who, at)}}
}

// router reads the routes of a service. A request takes the first that it meets, and the service itself after them.
func (r *reader) router(name string, spec source.Node) {
	subject := "service-router " + name
	all := false
	for _, route := range get(spec, "Routes").List() {
		to := get(route, "Destination")
		l := r.layer(subject, route.At())
		l.Choice, l.Match = subject, match(get(get(route, "Match"), "HTTP"))
		all = all || !get(route, "Match").Exists()
		l.Overall = r.timeout(get(to, "RequestTimeout"), route.At())
		r.form.Remarks = append(r.form.Remarks, envoywords.ConsulRetries(&l, to, r.who)...)
		callee := name
		if to := get(to, "Service"); to.Text() != "" {
			var known bool
			if callee, known = r.name(to); !known {
				continue
			}
		}
		l.Speaks = r.speaks(callee)
		r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{callee}, Layer: l})
	}
	if all {
		return
	}
	rest := r.layer(subject+", all other requests", spec.At())
	rest.Choice, rest.Speaks = subject, r.speaks(name)
	rest.Overall = topology.DefaultOf(envoywords.RouteTimeout, r.who, spec.At())
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{name}, Layer: rest})
}

// splitter is the limit of the requests that are split, which only a router can set.
func (r *reader) splitter(name string, spec source.Node) {
	if r.routers[name] {
		return
	}
	l := r.layer("service-splitter "+name, spec.At())
	l.Overall, l.Speaks = topology.DefaultOf(envoywords.RouteTimeout, r.who, spec.At()), r.speaks(name)
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{name}, Layer: l})
}

func match(http source.Node) topology.Match {
	var m topology.Match
	switch {
	case get(http, "PathExact").Exists():
		m.Path = get(http, "PathExact").Text()
	case get(http, "PathPrefix").Exists():
		m.Path = get(http, "PathPrefix").Text() + "*"
	case get(http, "PathRegex").Exists():
		m.Path = "~" + get(http, "PathRegex").Text()
	}
	m.Methods = get(http, "Methods").Texts()
	var other []string
	for _, kind := range []string{"Header", "QueryParam"} {
		for _, n := range get(http, kind).List() {
			word := strings.ToLower(kind) + " "
			if get(n, "Invert").Text() == "true" {
				word = "no " + word
			}
			other = append(other, word+get(n, "Name").Text())
		}
	}
	m.Other = strings.Join(other, ", ")
	return m
}

func (r *reader) timeout(n source.Node, at topology.Position) topology.Value[time.Duration] {
	v, remarks := envoywords.ConsulTimeout(n, r.who, at)
	r.form.Remarks = append(r.form.Remarks, remarks...)
	return v
}

// resolver reads the time limits of a service. Its RequestTimeout counts only where nothing stands before it.
func (r *reader) resolver(name string, spec source.Node) {
	l := r.layer("service-resolver "+name, spec.At())
	l.Speaks = r.speaks(name)
	l.Connect = read(r, get(spec, "ConnectTimeout"), source.DurationIn(time.Nanosecond))
	limit := get(spec, "RequestTimeout")
	if r.before[name] {
		if limit.Exists() {
			r.remark("F602", limit.At(), l.Name+" RequestTimeout",
				"a RequestTimeout of a resolver does nothing behind a router "+
					"or a splitter", "set it in the routes of the service-router")
		}
		return
	}
	l.Overall = r.timeout(limit, spec.At())
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{name}, Layer: l})
}

// defaults reads what a service sets for the services that it calls.
func (r *reader) defaults(name string, spec source.Node) {
	config := get(spec, "UpstreamConfig")
	add := func(n source.Node, callee string) {
		r.custom("service-defaults "+name+", upstream "+callee, n)
		if !guarded(n) {
			return
		}
		l := r.layer("service-defaults "+name+" UpstreamConfig", n.At())
		if r.routed[callee] { // what routes its requests says for how long, and what is answered
			l.Answers = nil
		} else {
			l.Overall = topology.NotKnown[time.Duration]("the limit depends on the protocol of the service", n.At())
		}
		r.guards(n, &l)
		l.Speaks = r.speaks(callee)
		r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{callee}, Callers: []string{name},
			Layer: l})
	}
	for _, n := range get(config, "Overrides").List() {
		if callee := get(n, "Name").Text(); callee != "" {
			add(n, callee)
		}
	}
	add(get(config, "Defaults"), "*")
}
