package proxy

import (
	"crypto/tls"
	randv2 "math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/proxy/spread"
)

// place is what an endpoint is known by.
type place struct {
	url  string // the upstream, as in the policy file
	addr string // one of its addresses, host and port; "" for the upstream itself, which is dialled by its name
}

// endpoint is one upstream of a service, or one address of it.
type endpoint struct {
	at        place
	url       string // with the address in it
	scheme    string
	addr      string // host and port to dial
	host      string // the Host that it expects
	authority []byte // the same
	base      string // path before that of requests, without a slash at its end
	tls       *tls.Config
	screen    *screen // of a host that the policy file does not list; nil for services
	pool      pool
	http2     http2Pool
	among     atomic.Int32 // how many endpoints its service has
}

// endOfLife is when a connection that is made now is to be replaced by another.
func (e *endpoint) endOfLife(t *transport, now time.Duration) time.Duration {
	return later(now, spread.Life(t.age, int(e.among.Load()), randv2.Uint64()))
}

// newEndpoint reads a base URL that the policy file has checked.
func newEndpoint(at place) *endpoint {
	u, err := url.Parse(at.url)
	if err != nil { // cannot be: Validate has parsed it
		u = &url.URL{Scheme: "http", Host: at.url}
	}
	e := &endpoint{at: at, url: at.url, scheme: u.Scheme, host: u.Host, authority: []byte(u.Host), addr: at.addr,
		base: strings.TrimRight(u.EscapedPath(), "/")}
	e.http2.e = e
	if u.Scheme == "https" {
		e.tls = &tls.Config{ServerName: u.Hostname(), NextProtos: []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(32)}
	}
	if at.addr == "" {
		e.addr = dialAddr(u)
	} else {
		e.url = u.Scheme + "://" + at.addr + e.base
	}
	return e
}

// dialAddr is the host and the port of a URL.
func dialAddr(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

func (e *endpoint) close() {
	e.pool.close()
	e.http2.close()
}
