package proxy

import (
	randv2 "math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/internal/upstream"
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
	network   string // tcp or unix
	addr      string // to dial in it: host and port, or a path
	host      string // the Host that it expects
	authority []byte // the same
	base      string // path before that of requests, without a slash at its end
	secured   secured
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
func newEndpoint(at place, by *approach) *endpoint {
	u, ok := upstream.Parse(at.url)
	if !ok { // cannot be: Validate has parsed it
		u = upstream.URL{Scheme: "http", Host: at.url}
	}
	e := &endpoint{at: at, url: at.url, scheme: u.Scheme, host: u.Host, authority: []byte(u.Host), base: u.Base}
	if e.network, e.addr = u.Address(); at.addr != "" {
		e.network, e.addr = "tcp", at.addr
		e.url = u.Scheme + "://" + at.addr + e.base
	}
	e.http2.e = e
	e.secured.name = u.Name()
	e.secured.by.Store(by)
	return e
}

// idle takes a kept connection that began with what is to be said of the client, and is what a new one would be; nil
// for none.
func (e *endpoint) idle(of announcement) *upstreamConn {
	for {
		c := e.pool.get(of)
		if c == nil || e.fresh(c) {
			return c
		}
		c.nc.Close()
	}
}

// fresh reports whether a connection is what a new one would be.
func (e *endpoint) fresh(c *upstreamConn) bool { return !e.secured.outdated(c.security) }

func (e *endpoint) close() {
	e.pool.close()
	e.http2.close()
}
