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

// endpoint is one upstream of a service.
type endpoint struct {
	url       string // as in the policy file
	scheme    string
	addr      string // host and port to dial
	host      string // the Host that it expects
	authority []byte // the same
	base      string // path before that of requests, without a slash at its end
	tls       *tls.Config
	pool      pool
	http2     http2Pool
	among     atomic.Int32 // how many endpoints its service has
}

// endOfLife is when a connection that is made now is to be replaced by another.
func (e *endpoint) endOfLife(t *transport, now time.Duration) time.Duration {
	return later(now, spread.Life(t.age, int(e.among.Load()), randv2.Uint64()))
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
