package policyfile

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/abate-go/abate/internal/pathform"
	"github.com/abate-go/abate/internal/strictyaml"
	"github.com/abate-go/abate/internal/upstream"
)

// place is where a request goes: a host, empty for any, and the path prefix of a route.
type place struct{ host, path string }

// destination is what a place belongs to.
type destination struct {
	service string
	label   string // the route as written, for metrics and logs: never a part of the request
	rewrite Rewrite
}

// index finds the service of a request. It is built once per load and only read afterwards.
type index struct {
	routes    map[place]destination
	upstreams map[place]destination
	folded    map[place]destination // routes with their paths in lower case
	longest   int                   // bytes of the longest path in either
	hosts     map[string]Listed     // with a port, or of routes perhaps without
}

// Listed is a host that belongs to a service.
type Listed struct {
	Service string
	Secure  bool // it speaks TLS
}

func emptyIndex() *index {
	return &index{routes: map[place]destination{}, upstreams: map[place]destination{}, folded: map[place]destination{},
		hosts: map[string]Listed{}}
}

func newIndex(services []Service) *index {
	x := emptyIndex()
	shared := sharedUpstreams(services)
	for i := range services {
		s := &services[i]
		for _, r := range s.Policy.Routes {
			x.addRoute(r, s.Name)
			if r.Host != "" {
				x.addHost(plainHost(r.Host), Listed{s.Name, false})
			}
		}
		for _, u := range s.Policy.Upstreams {
			if p, ok := upstreamPlace(u); ok && !(shared[p] && len(s.Policy.Routes) > 0) {
				x.add(x.upstreams, p, destination{service: s.Name, label: p.host + p.path})
				x.add(x.upstreams, place{host: p.host, path: anyPath}, destination{service: s.Name, label: p.host})
			}
			x.addUpstreamHost(u, s.Name)
		}
	}
	return x
}

// sharedUpstreams are the base URLs that several services list: the methods of one server, for example, under policies
// of their own. Their routes choose; a request that is only addressed to the URL belongs to the one without routes, if
// there is one.
func sharedUpstreams(services []Service) map[place]bool {
	shared, first := map[place]bool{}, map[place]string{}
	for i := range services {
		for _, u := range services[i].Policy.Upstreams {
			p, _ := upstreamPlace(u)
			if name, ok := first[p]; ok && name != services[i].Name {
				shared[p] = true
			}
			first[p] = services[i].Name
		}
	}
	return shared
}

// anyPath stands for the requests to an upstream's host that are below none of the base URLs there.
const anyPath = "*"

func (x *index) add(to map[place]destination, p place, d destination) {
	if _, taken := to[p]; !taken {
		to[p] = d
	}
	x.longest = max(x.longest, len(p.path))
}

func (x *index) addRoute(r Route, service string) {
	p := routePlace(r.Host, r.Path)
	d := destination{service, r.Host + r.Path, r.rewriting(p.path)}
	x.add(x.routes, p, d)
	x.add(x.folded, place{p.host, strings.ToLower(p.path)}, d)
}

// routePlace is the key of a route: lower-case host, path in the form in which requests are matched, without a slash at
// its end.
func routePlace(host, path string) place {
	return place{plainHost(host), strings.TrimRight(string(pathform.Canonical([]byte(path))), "/")}
}

// plainHost is a host in lower case, without the dot that may stand at the end of a name, an IPv6 address in its
// shortest form, and an IPv4 address that is written as one of IPv6 as what it is: it leads to the same service.
func plainHost(host string) string {
	host = strings.ToLower(host)
	name := withoutPort(host)
	if strings.HasPrefix(name, "[") && strings.HasSuffix(name, "]") {
		if addr, err := netip.ParseAddr(name[1 : len(name)-1]); err == nil {
			plain := "[" + addr.String() + "]"
			if addr.Is4In6() {
				plain = addr.Unmap().String()
			}
			if plain != name {
				return plain + host[len(name):]
			}
		}
		return host
	}
	if dotless, dotted := strings.CutSuffix(name, "."); dotted && dotless != "" {
		return dotless + host[len(name):]
	}
	return host
}

// upstreamPlace is the key of a base URL. The port that its scheme means anyway is left out.
func upstreamPlace(raw string) (place, bool) {
	u, ok := upstream.Parse(raw)
	if !ok || u.Authority() == "" {
		return place{}, false
	}
	path := strings.TrimRight(string(pathform.Canonical([]byte(u.Base))), "/")
	return place{withoutDefaultPort(u.Scheme, plainHost(u.Host)), path}, true
}

func withoutDefaultPort(scheme, host string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// find is what a request belongs to; upstream reports whether it was addressed to an upstream itself. Longer paths go
// before shorter ones, and for the same path host and port go before the host alone, and that before any host. Routes
// go before upstreams.
func (x *index) find(host, path string) (d destination, upstream bool) {
	host = plainHost(host)
	bare := withoutPort(host)
	if d, _ := x.longestPrefix(x.routes, path, host, bare, ""); d.service != "" {
		return d, false
	}
	if d, _ := x.longestPrefix(x.upstreams, path, host, bare, bare); d.service != "" {
		return d, true
	}
	if d := x.upstreams[place{host, anyPath}]; d.service != "" {
		return d, true
	}
	return x.upstreams[place{bare, anyPath}], true
}

// forward is find for a request to a forward proxy: what has no host, or another port, is not what it asked for.
func (x *index) forward(scheme, host, path string) (d destination, upstream bool) {
	host = plainHost(host)
	bare := withoutPort(host)
	if d, _ := x.longestPrefix(x.routes, path, host, bare, bare); d.service != "" {
		return d, false
	}
	host = withoutDefaultPort(scheme, host)
	if d, _ := x.longestPrefix(x.upstreams, path, host, host, host); d.service != "" {
		return d, true
	}
	return x.upstreams[place{host, anyPath}], true
}

// caseDecides reports whether the path in lower case belongs to a longer route.
func (x *index) caseDecides(host, path string) bool {
	if head := path[:min(len(path), x.longest+1)]; strings.ToLower(head) == head {
		return false
	}
	host = plainHost(host)
	bare := withoutPort(host)
	_, length := x.longestPrefix(x.routes, path, host, bare, "")
	_, other := x.longestPrefix(x.folded, strings.ToLower(path), host, bare, "")
	return other > length
}

// longestPrefix finds a destination, and how long its path is.
func (x *index) longestPrefix(in map[place]destination, path, host, bare, any string) (d destination, length int) {
	if len(in) == 0 {
		return destination{}, 0
	}
	if len(path) > x.longest { // no longer prefix is known: try none, however long the path is
		path = path[:max(strings.LastIndexByte(path[:x.longest+1], '/'), 0)]
	}
	for {
		path = strings.TrimRight(path, "/")
		for _, h := range [...]string{host, bare, any} {
			if d := in[place{h, path}]; d.service != "" {
				return d, len(path)
			}
		}
		if path == "" {
			return destination{}, 0
		}
		path = path[:max(strings.LastIndexByte(path, '/'), 0)]
	}
}

// withoutPort cuts the port off: "[::1]:80" is "[::1]", and "::1" stays.
func withoutPort(host string) string {
	colon := strings.LastIndexByte(host, ':')
	if colon < 0 || strings.IndexByte(host[colon:], ']') >= 0 {
		return host
	}
	if host[0] != '[' && strings.IndexByte(host, ':') != colon {
		return host
	}
	return host[:colon]
}

// claims reports requests that two services want: the order of the file must not decide where money goes.
func (d *decoder) claims(services []Service, readers []*reader) {
	type claim struct {
		by string // routes or upstreams
		place
	}
	taken := map[claim]string{}
	take := func(i, member int, shown string, c claim) {
		fix := "remove it here or there"
		if c.by == "upstreams" {
			fix = "remove it here or there, or give one of them routes"
		}
		field := fmt.Sprintf("%s[%d]", c.by, member)
		if first, ok := taken[c]; ok && first != services[i].Name {
			d.Fail(readers[i].Node(field), services[i].Name, field,
				strictyaml.Quote(shown)+" belongs to service "+strictyaml.Quote(first)+" already", fix)
		} else {
			taken[c] = services[i].Name
		}
	}
	for i := range services {
		for j, r := range services[i].Policy.Routes {
			take(i, j, r.Host+r.Path, claim{"routes", routePlace(r.Host, r.Path)})
		}
		for j, u := range services[i].Policy.Upstreams {
			if p, ok := upstreamPlace(u); ok && len(services[i].Policy.Routes) == 0 {
				take(i, j, u, claim{"upstreams", p})
			}
		}
	}
}
