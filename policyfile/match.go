package policyfile

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
)

// place is where a request goes: a host, empty for any, and the path prefix of a route.
type place struct{ host, path string }

// destination is what a place belongs to.
type destination struct {
	service string
	label   string // the route as written, for metrics and logs: never a part of the request
}

// index finds the service of a request. It is built once per load and only read afterwards.
type index struct {
	routes    map[place]destination
	upstreams map[place]destination
	longest   int // bytes of the longest path in either
}

func newIndex(services []Service) *index {
	x := &index{routes: map[place]destination{}, upstreams: map[place]destination{}}
	shared := sharedUpstreams(services)
	for i := range services {
		s := &services[i]
		for _, r := range s.Policy.Routes {
			x.add(x.routes, routePlace(r.Host, r.Path), destination{s.Name, r.Host + r.Path})
		}
		for _, u := range s.Policy.Upstreams {
			if p, ok := upstreamPlace(u); ok && !(shared[p] && len(s.Policy.Routes) > 0) {
				x.add(x.upstreams, p, destination{s.Name, p.host + p.path})
				x.add(x.upstreams, place{host: p.host, path: anyPath}, destination{s.Name, p.host})
			}
		}
	}
	return x
}

// sharedUpstreams are the base URLs that several services list: the methods of one server, for example, under policies of their
// own. Their routes choose; a request that is only addressed to the URL belongs to the one without routes, if there is one.
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

// routePlace is the key of a route: lower-case host, path without a slash at its end.
func routePlace(host, path string) place {
	return place{strings.ToLower(host), strings.TrimRight(path, "/")}
}

// upstreamPlace is the key of a base URL. The port that its scheme means anyway is left out.
func upstreamPlace(raw string) (place, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return place{}, false
	}
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	} else {
		host = strings.TrimSuffix(host, ":80")
	}
	return place{host, strings.TrimRight(u.Path, "/")}, true
}

// find is what a request belongs to; upstream tells that it was addressed to an upstream itself. Longer paths go before
// shorter ones, and for the same path host and port go before the host alone, and that before any host. Routes go before
// upstreams.
func (x *index) find(host, path string) (d destination, upstream bool) {
	host = strings.ToLower(host)
	bare := withoutPort(host)
	if d := x.longestPrefix(x.routes, path, host, bare, ""); d.service != "" {
		return d, false
	}
	if d := x.longestPrefix(x.upstreams, path, host, bare, bare); d.service != "" {
		return d, true
	}
	if d := x.upstreams[place{host, anyPath}]; d.service != "" {
		return d, true
	}
	return x.upstreams[place{bare, anyPath}], true
}

func (x *index) longestPrefix(in map[place]destination, path, host, bare, any string) destination {
	if len(in) == 0 {
		return destination{}
	}
	if len(path) > x.longest { // no longer prefix is known: try none, however long the path is
		path = path[:max(strings.LastIndexByte(path[:x.longest+1], '/'), 0)]
	}
	for {
		path = strings.TrimRight(path, "/")
		for _, h := range [...]string{host, bare, any} {
			if d := in[place{h, path}]; d.service != "" {
				return d
			}
		}
		if path == "" {
			return destination{}
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
		mend := "remove it here or there"
		if c.by == "upstreams" {
			mend = "remove it here or there, or give one of them routes"
		}
		field := fmt.Sprintf("%s[%d]", c.by, member)
		if first, ok := taken[c]; ok && first != services[i].Name {
			d.Fail(readers[i].Node(field), services[i].Name, field, strictyaml.Quote(shown)+" belongs to service "+strictyaml.Quote(first)+" already", mend)
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
