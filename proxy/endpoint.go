package proxy

import (
	"crypto/tls"
	"net"
	"net/url"
	"strings"
)

// endpoint is one upstream of a service.
type endpoint struct {
	url       string // as in the policy file
	scheme    string
	addr      string // host and port to dial
	host      string // the Host that it expects
	authority []byte // the same
	base      string // path before that of requests, without a slash at its end
	tls       *tls.Config
	screen    *screen // of a host that the policy file does not list; nil for services
	pool      pool
	http2     http2Pool
}

// newEndpoint reads a base URL that the policy file has checked.
func newEndpoint(raw string) *endpoint {
	u, err := url.Parse(raw)
	if err != nil { // cannot be: Validate has parsed it
		u = &url.URL{Scheme: "http", Host: raw}
	}
	e := &endpoint{url: raw, scheme: u.Scheme, host: u.Host, authority: []byte(u.Host), addr: u.Host,
		base: strings.TrimRight(u.EscapedPath(), "/")}
	e.http2.e = e
	port := "80"
	if u.Scheme == "https" {
		port = "443"
		e.tls = &tls.Config{ServerName: u.Hostname(), NextProtos: []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(32)}
	}
	if u.Port() == "" {
		e.addr = net.JoinHostPort(u.Hostname(), port)
	}
	return e
}

func (e *endpoint) close() {
	e.pool.close()
	e.http2.close()
}
