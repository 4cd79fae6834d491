// Package consul reads config entries of Consul: service-router, service-resolver and service-defaults, as JSON or YAML
// and as resources of Kubernetes. Entries that are written in HCL are not read.
//
// Consul's sidecars are Envoy, and what Consul does not write is Envoy's default: a NumRetries of 0 is not written, so
// it is one retry, and a number of retries without a condition is none.
package consul

import (
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/envoywords"
	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version whose defaults hold when nobody says which it is.
const assumedVersion = "1.22"

// kinds are the entries that are read, by the kind of their resource in Kubernetes.
var kinds = map[string]string{"ServiceRouter": "service-router", "ServiceResolver": "service-resolver",
	"ServiceSplitter": "service-splitter", "ServiceDefaults": "service-defaults"}

// kindOf returns the kind of an entry; it is empty for other documents.
func kindOf(root source.Node) string {
	if strings.HasPrefix(root.Get("apiVersion").Text(), "consul.hashicorp.com/") {
		return kinds[root.Get("kind").Text()]
	}
	word := root.Get("Kind|kind").Text()
	for _, kind := range kinds {
		if word == kind && root.Get("Name|name").Exists() {
			return kind
		}
	}
	return ""
}

// Recognise reports whether a document is a config entry that is read.
func Recognise(d source.Document) bool { return kindOf(d.Root) != "" }

// Read returns what the entries say: each route of a router is a policy of the sidecars that call its service.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	r := &reader{version: assume.Version("consul", assumedVersion), before: map[string]bool{}}
	r.who = "Consul " + r.version.V
	for i := range docs {
		if kind := kindOf(docs[i].Root); kind == "service-router" || kind == "service-splitter" {
			r.before[nameOf(docs[i].Root)] = true
		}
	}
	for i := range docs {
		root := docs[i].Root
		spec := root
		if root.Get("spec").Exists() {
			spec = root.Get("spec")
		}
		switch kindOf(root) {
		case "service-router":
			r.router(nameOf(root), spec)
		case "service-resolver":
			r.resolver(nameOf(root), spec)
		case "service-defaults":
			r.defaults(nameOf(root), spec)
		}
	}
	r.form.Remarks = source.Distinct(r.form.Remarks)
	return r.form
}

type reader struct {
	form    topology.Form
	version topology.Value[string]
	who     string
	before  map[string]bool // services with a router or a splitter
}

func nameOf(root source.Node) string {
	if name := root.Get("metadata", "name").Text(); name != "" {
		return name
	}
	return root.Get("Name|name").Text()
}

// get returns a key in the spelling of JSON ("NumRetries"), of Kubernetes ("numRetries") or of HCL ("num_retries").
func get(n source.Node, key string) source.Node {
	var snake strings.Builder
	for i, c := range key {
		if i > 0 && c >= 'A' && c <= 'Z' && key[i-1] >= 'a' {
			snake.WriteByte('_')
		}
		snake.WriteString(strings.ToLower(string(c)))
	}
	return n.Get(key + "|" + strings.ToLower(key[:1]) + key[1:] + "|" + snake.String())
}

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
	for _, route := range get(spec, "Routes").Items() {
		to := get(route, "Destination")
		l := r.layer(subject, route.At())
		l.Choice, l.Match = subject, match(get(get(route, "Match"), "HTTP"))
		l.Overall = r.timeout(get(to, "RequestTimeout"), route.At())
		r.retries(&l, to)
		callee := get(to, "Service").Text()
		if callee == "" {
			callee = name
		}
		r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{callee}, Layer: l})
	}
	rest := r.layer(subject+", all other requests", spec.At())
	rest.Choice = subject
	rest.Overall = topology.DefaultOf(envoywords.RouteTimeout, r.who, spec.At())
	r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{name}, Layer: rest})
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
		for _, n := range get(http, kind).Items() {
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

// timeout reads a RequestTimeout: 0 is Envoy's own, and a negative one is none.
func (r *reader) timeout(n source.Node, at topology.Position) topology.Value[time.Duration] {
	if strings.HasPrefix(n.Text(), "-") {
		return topology.Write(time.Duration(0), n.At())
	}
	v := read(r, n, source.DurationIn(time.Nanosecond))
	if d, ok := v.Get(); v.IsZero() || ok && d == 0 {
		return topology.DefaultOf(envoywords.RouteTimeout, r.who, at)
	}
	return v
}

// retries reads what a destination repeats. Without one of the four keys there is no policy.
func (r *reader) retries(l *topology.Layer, to source.Node) {
	count, on := get(to, "NumRetries"), get(to, "RetryOn")
	connect, codes := get(to, "RetryOnConnectFailure"), get(to, "RetryOnStatusCodes")
	if !count.Exists() && !on.Exists() && connect.Text() != "true" && len(codes.Items()) == 0 {
		return
	}
	p := envoywords.Policy{Product: "Consul", Subject: l.Name, Words: on.Parts(","), Codes: codes.Parts(",")}
	if connect.Text() == "true" {
		p.Words = append(p.Words, source.Part{Text: "connect-failure", At: connect.At()})
	}
	if len(p.Codes) > 0 && !slices.ContainsFunc(p.Words, func(w source.Part) bool { return w.Text == byCode }) {
		p.Words = append(p.Words, source.Part{Text: byCode, At: codes.At()})
	}
	if len(p.Words) == 0 {
		r.remark("F602", count.At(), l.Name+" NumRetries", "NumRetries alone repeats nothing: Envoy gets no condition",
			"say what to repeat in RetryOn, RetryOnConnectFailure or RetryOnStatusCodes")
		return
	}
	retries := read(r, count, source.Int)
	if n, ok := retries.Get(); retries.IsZero() || ok && n == 0 {
		if ok {
			r.remark("F604", count.At(), l.Name+" NumRetries",
				"a NumRetries of 0 is not written, so Envoy's own holds: 1 retry",
				"remove what is repeated, if nothing is to be")
		}
		retries = topology.DefaultOf(envoywords.Retries, r.who, to.At())
	}
	p.Tries = envoywords.PlusOne(retries)
	repeats, more := p.Repeats()
	l.Repeats, r.form.Remarks = repeats, append(r.form.Remarks, more...)
	l.Backoff = envoywords.Backoff(topology.Value[time.Duration]{}, topology.Value[time.Duration]{}, r.who, to.At())
}

const byCode = "retriable-status-codes"

// resolver reads the time limits of a service. Its RequestTimeout counts only where nothing stands before it.
func (r *reader) resolver(name string, spec source.Node) {
	l := r.layer("service-resolver "+name, spec.At())
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
		if !n.Exists() {
			return
		}
		l := r.layer("service-defaults "+name+" UpstreamConfig", n.At())
		limits := get(n, "Limits")
		l.Limits = topology.Limits{Connections: read(r, get(limits, "MaxConnections"), source.Int),
			Pending:  read(r, get(limits, "MaxPendingRequests"), source.Int),
			Requests: read(r, get(limits, "MaxConcurrentRequests"), source.Int)}
		if check := get(n, "PassiveHealthCheck"); check.Exists() {
			l.Ejection = envoywords.Ejection(r.who, check.At())
			l.Ejection.Consecutive = envoywords.Or(read(r, get(check, "MaxFailures"), source.Int), l.Ejection.Consecutive)
			l.Ejection.Interval = envoywords.Or(read(r, get(check, "Interval"), source.DurationIn(time.Nanosecond)),
				l.Ejection.Interval)
			l.Ejection.Base = envoywords.Or(read(r, get(check, "BaseEjectionTime"), source.DurationIn(time.Nanosecond)),
				l.Ejection.Base)
		}
		r.form.Policies = append(r.form.Policies, topology.Policy{Callees: []string{callee}, Callers: []string{name},
			Layer: l})
	}
	for _, n := range get(config, "Overrides").Items() {
		if callee := get(n, "Name").Text(); callee != "" {
			add(n, callee)
		}
	}
	add(get(config, "Defaults"), "*")
}
