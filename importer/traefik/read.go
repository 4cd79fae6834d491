package traefik

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate/importer/source"
	"github.com/abate-go/abate/topology"
)

// assumedVersion is the version whose defaults hold when nobody says which it is.
const assumedVersion = "3.7"

// Recognise reports whether a document is a dynamic configuration, a resource of Traefik, a compose file with labels
// for
// it, or gives it limits as it starts.
func Recognise(d source.Document) bool {
	if starts(d) {
		return true
	}
	if api := d.Root.Get("apiVersion").Text(); api != "" {
		return isIngress(d) || strings.HasPrefix(api, "traefik.io/") || strings.HasPrefix(api, "traefik.containo.us/")
	}
	http := d.Root.Get("http")
	if http.Get("routers").IsMap() || http.Get("middlewares").IsMap() {
		return true
	}
	return slices.ContainsFunc(d.Root.Get("services").Pairs(),
		func(p source.Pair) bool { return len(labels(p.Value)) > 0 })
}

// configuration is what all documents of one Traefik say.
type configuration struct {
	routers     []router
	middlewares map[string]*middleware
	services    map[string]*group
	transports  map[string]source.Node
	resources   map[string]string // names of middlewares, by those that an Ingress calls them
	remarks     []topology.Remark
	started     map[string]topology.Value[time.Duration] // limits of every call, by their names in lower case
}

// retryKeys are those of a retry middleware.
var retryKeys = []string{"attempts", "initialInterval", "timeout", "maxRequestBodyBytes", "status",
	"retryNonIdempotentMethod", "disableRetryOnNetworkError"}

// router sends some requests to services, through middlewares.
type router struct {
	name        string
	rule        string
	match       topology.Match // of an Ingress, which has no rule
	at          topology.Position
	middlewares []string
	services    []string
	tls         bool
}

// middleware is one that tries again or redirects, or a chain of others.
type middleware struct {
	name  string
	at    topology.Position
	retry settings // nil for others
	chain []string
	used  bool
	https bool // it redirects what did not come over TLS
}

// settings gives the value of a key.
type settings func(key string) word

// word is a value with its place.
type word struct {
	text string
	at   topology.Position
	set  bool
}

// group is what a router sends requests to.
type group struct {
	hosts     []string
	servers   int
	others    []string // groups that it is made of
	transport string
	at        topology.Position
	h2c       bool // a server is to be asked in HTTP/2 without TLS
}

// Read returns what the documents say. All together are one Traefik.
func Read(docs []source.Document, assume source.Assume) topology.Form {
	c := &configuration{middlewares: map[string]*middleware{}, services: map[string]*group{},
		transports: map[string]source.Node{}, resources: map[string]string{},
		started: map[string]topology.Value[time.Duration]{}}
	service := ""
	for i := range docs {
		d := &docs[i]
		c.start(d.Root)
		switch {
		case d.Root.Get("kind").Exists():
			c.resource(d.Root)
		case d.Root.Get("http").Exists():
			c.file(d.Root.Get("http"))
		default:
			c.compose(d.Root)
		}
		if service == "" {
			service = d.Owner
		}
	}
	if service == "" {
		service = "traefik"
	}
	out := topology.Form{Remarks: c.remarks}
	t := &traefik{configuration: c, form: &out, service: service, version: assume.Version("traefik", assumedVersion),
		mentions: assume.Mentions}
	t.calls()
	if len(out.Calls) > 0 {
		out.Services = append(out.Services, topology.Service{Name: service, At: docs[0].Root.At(),
			Cancels: topology.DefaultOf(true, t.product(), docs[0].Root.At())})
	}
	return out
}

// plain takes the provider from a name: "retry@file" is retry.
func plain(name string) string {
	name, _, _ = strings.Cut(strings.TrimSpace(name), "@")
	return name
}

func plains(names []string) []string {
	var out []string
	for _, n := range names {
		for part := range strings.SplitSeq(n, ",") {
			if part = plain(part); part != "" {
				out = append(out, part)
			}
		}
	}
	return out
}

func ofNode(n source.Node) settings {
	return func(key string) word {
		v := n.Get(key)
		if v.IsList() {
			return word{strings.Join(v.Texts(), ","), v.At(), true}
		}
		return word{v.Text(), v.At(), v.Exists()}
	}
}

// file reads a dynamic configuration.
func (c *configuration) file(http source.Node) {
	for _, p := range http.Get("middlewares").Pairs() {
		c.middleware(p.Key, p.Name.At(), p.Value, plains(p.Value.Get("chain", "middlewares").Texts()))
	}
	for _, p := range http.Get("services").Pairs() {
		g := &group{at: p.Name.At(), transport: plain(p.Value.Get("loadBalancer", "serversTransport").Text())}
		for _, s := range p.Value.Get("loadBalancer", "servers").Items() {
			g.add(s.Get("url").Text())
		}
		for _, s := range p.Value.Get("weighted", "services").Items() {
			g.others = append(g.others, plain(s.Get("name").Text()))
		}
		c.services[p.Key] = g
	}
	for _, p := range http.Get("serversTransports").Pairs() {
		c.transports[p.Key] = p.Value
	}
	for _, p := range http.Get("routers").Pairs() {
		c.routers = append(c.routers, router{name: p.Key, rule: p.Value.Get("rule").Text(), at: p.Name.At(),
			middlewares: plains(p.Value.Get("middlewares").Texts()), tls: p.Value.Get("tls").Exists(),
			services: []string{plain(p.Value.Get("service").Text())}})
	}
}

func (c *configuration) middleware(name string, at topology.Position, spec source.Node, chain []string) {
	m := &middleware{name: name, at: at, chain: chain}
	if retry := spec.Get("retry"); retry.Written() {
		m.at, m.retry = retry.At(), ofNode(retry)
		c.remarks = append(c.remarks, retry.Unknown("Traefik", "middleware "+name, retryKeys...)...)
	}
	m.https = redirects(spec.Get("redirectScheme", "scheme").Text())
	c.middlewares[name] = m
}

func redirects(scheme string) bool { return strings.EqualFold(scheme, "https") }

func (g *group) add(address string) {
	g.servers++
	g.h2c = g.h2c || strings.HasPrefix(address, "h2c://")
	if host := source.Callee(address); host != "" && !slices.Contains(g.hosts, host) {
		g.hosts = append(g.hosts, host)
	}
}

var (
	expression = regexp.MustCompile(`\$\{[^{}]*\}`)
	object     = regexp.MustCompile(`^\$\{kubernetes_\w+\.(\w+)[.\[][^?]*\}$`)
	reference  = regexp.MustCompile(`[A-Za-z_]\w*\.([A-Za-z_]\w*)`)
)

// named returns a name in which expressions of Terraform are called after what they refer to: an object after its name
// there, which is mostly its own, anything else in parentheses.
func named(name string) string {
	return expression.ReplaceAllStringFunc(name, func(e string) string {
		if m := object.FindStringSubmatch(e); m != nil {
			return m[1]
		}
		if m := reference.FindStringSubmatch(e); m != nil {
			return "(" + m[1] + ")"
		}
		return "(unknown)"
	})
}

// resource reads a Middleware, an IngressRoute, an Ingress or a ServersTransport.
func (c *configuration) resource(root source.Node) {
	namespace := root.Get("metadata", "namespace").Text()
	in := func(name, ns string) string { // of what namespace a name is
		if ns == "" {
			ns = namespace
		}
		name, ns = named(name), named(ns)
		if ns == "" {
			return name
		}
		return name + "." + ns
	}
	name, spec := in(root.Get("metadata", "name").Text(), ""), root.Get("spec")
	switch root.Get("kind").Text() {
	case "Middleware":
		var chain []string
		for _, m := range spec.Get("chain", "middlewares").Items() {
			chain = append(chain, in(m.Get("name").Text(), m.Get("namespace").Text()))
		}
		c.middleware(name, spec.At(), spec, chain)
		c.resources[cmp.Or(named(namespace), "default")+"-"+root.Get("metadata", "name").Text()] = name
	case "Ingress":
		c.ingress(root, in)
	case "ServersTransport":
		c.transports[name] = spec
	case "IngressRoute":
		for _, r := range spec.Get("routes").Items() {
			out := router{name: name, rule: r.Get("match").Text(), at: r.At(), tls: spec.Get("tls").Exists()}
			for _, m := range r.Get("middlewares").Items() {
				out.middlewares = append(out.middlewares, in(m.Get("name").Text(), m.Get("namespace").Text()))
			}
			for _, s := range r.Get("services").Items() {
				to := in(s.Get("name").Text(), s.Get("namespace").Text())
				g := &group{at: s.At(), hosts: []string{strings.ToLower(to)}, servers: 1}
				if t := s.Get("serversTransport"); t.Exists() {
					g.transport = in(t.Text(), "")
				}
				c.services[to] = g
				out.services = append(out.services, to)
			}
			c.routers = append(c.routers, out)
		}
	}
}
