package policyfile

import (
	"net"
	"net/url"
	"strings"
)

// addHost notes whose a host is. The first one counts.
func (x *index) addHost(host string, l Listed) {
	if _, taken := x.hosts[host]; !taken {
		x.hosts[host] = l
	}
}

// addUpstreamHost notes whose the host of a base URL is.
func (x *index) addUpstreamHost(raw, service string) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" {
		return
	}
	secure, port := u.Scheme == "https", u.Port()
	if port == "" && secure {
		port = "443"
	} else if port == "" {
		port = "80"
	}
	x.addHost(plainHost(net.JoinHostPort(u.Hostname(), port)), Listed{service, secure})
}

// Listed reports whose a host is, which has a port: a service's whose upstream is there, or that has a route with the
// host. Behind a route without a port, port 443 is taken for TLS.
func (s *Set) Listed(authority string) (l Listed, ok bool) {
	x, host := s.current.Load().index, plainHost(authority)
	if l, ok = x.hosts[host]; ok {
		return l, true
	}
	l, ok = x.hosts[withoutPort(host)]
	l.Secure = strings.HasSuffix(host, ":443")
	return l, ok
}
