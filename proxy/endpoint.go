package proxy

import "github.com/abate-go/abate/internal/upstream"

// endpoint is one upstream of a service.
type endpoint struct {
	url       string // as in the policy file
	scheme    string
	network   string // tcp or unix
	addr      string // to dial in it: host and port, or a path
	host      string // the Host that it expects
	authority []byte // the same
	base      string // path before that of requests, without a slash at its end
	secured   secured
	pool      pool
	http2     http2Pool
}

// newEndpoint reads a base URL that the policy file has checked.
func newEndpoint(raw string) *endpoint {
	u, ok := upstream.Parse(raw)
	if !ok { // cannot be: Validate has parsed it
		u = upstream.URL{Scheme: "http", Host: raw}
	}
	e := &endpoint{url: raw, scheme: u.Scheme, host: u.Host, authority: []byte(u.Host), base: u.Base}
	e.network, e.addr = u.Address()
	e.http2.e = e
	e.secured.name = u.Name()
	return e
}

// fresh reports whether a connection is what a new one would be.
func (e *endpoint) fresh(c *upstreamConn) bool { return !e.secured.outdated(c.security) }

func (e *endpoint) close() {
	e.pool.close()
	e.http2.close()
}
