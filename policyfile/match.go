package policyfile

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/abate-go/abate/internal/strictyaml"
)

// place is where a request goes: a host, empty for any, and the path prefix of a route.
type place struct{ host, path string }

// index finds the service of a request. It is built once per load and only read afterwards.
type index struct {
	routes    map[place]string // to the service's name
	upstreams map[place]string
	longest   int // bytes of the longest path in either
}

func newIndex(services []Service) *index {
	x := &index{routes: map[place]string{}, upstreams: map[place]string{}}
	for i := range services {
		s := &services[i]
		for _, r := range s.Policy.Routes {
			x.add(x.routes, routePlace(r.Host, r.Path), s.Name)
		}
		for _, u := range s.Policy.Upstreams {
			if p, ok := upstreamPlace(u); ok {
				x.add(x.upstreams, p, s.Name)
				x.add(x.upstreams, place{host: p.host, path: anyPath}, s.Name)
			}
		}
	}
	return x
}

// anyPath stands for the requests to an upstream's host that are below none of the base URLs there.
const anyPath = "*"

func (x *index) add(to map[place]string, p place, name string) {
	if _, taken := to[p]; !taken {
		to[p] = name
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
	if u.Scheme == "http" {
		host = strings.TrimSuffix(host, ":80")
	} else {
		host = strings.TrimSuffix(host, ":443")
	}
	return place{host, strings.TrimRight(u.Path, "/")}, true
}

// find is the service of a request, or "". Longer paths go before shorter ones, and for the same path host and port go
// before the host alone, and that before any host. Routes go before upstreams.
func (x *index) find(host, path string) string {
	host = strings.ToLower(host)
	bare := withoutPort(host)
	if name := x.longestPrefix(x.routes, path, host, bare, ""); name != "" {
		return name
	}
	if name := x.longestPrefix(x.upstreams, path, host, bare, bare); name != "" {
		return name
	}
	if name := x.upstreams[place{host, anyPath}]; name != "" {
		return name
	}
	return x.upstreams[place{bare, anyPath}]
}

func (x *index) longestPrefix(in map[place]string, path, host, bare, any string) string {
	if len(in) == 0 {
		return ""
	}
	if len(path) > x.longest { // no longer prefix is known: try none, however long the path is
		path = path[:max(strings.LastIndexByte(path[:x.longest+1], '/'), 0)]
	}
	for {
		path = strings.TrimRight(path, "/")
		for _, h := range [...]string{host, bare, any} {
			if name := in[place{h, path}]; name != "" {
				return name
			}
		}
		if path == "" {
			return ""
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
func (d *decoder) claims(services []Service, readers []*policyReader) {
	type claim struct {
		by string // routes or upstreams
		place
	}
	taken := map[claim]string{}
	take := func(i, member int, shown string, c claim) {
		field := fmt.Sprintf("%s[%d]", c.by, member)
		if first, ok := taken[c]; ok && first != services[i].Name {
			d.Fail(readers[i].Node(field), services[i].Name, field, strictyaml.Quote(shown)+" belongs to service "+strictyaml.Quote(first)+" already", "remove it here or there")
		} else {
			taken[c] = services[i].Name
		}
	}
	for i := range services {
		for j, r := range services[i].Policy.Routes {
			take(i, j, r.Host+r.Path, claim{"routes", routePlace(r.Host, r.Path)})
		}
		for j, u := range services[i].Policy.Upstreams {
			if p, ok := upstreamPlace(u); ok {
				take(i, j, u, claim{"upstreams", p})
			}
		}
	}
}
