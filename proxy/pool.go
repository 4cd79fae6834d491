package proxy

import (
	"slices"
	"sync"
	"time"
)

// maxIdle is how many idle connections an endpoint keeps.
const maxIdle = 512

// pool is the idle connections to an endpoint, the one used last at the end.
type pool struct {
	mu     sync.Mutex
	idle   []*upstreamConn
	closed bool
}

// get takes a connection that began with what is to be said of the client, and may be fit for a request; nil if there
// is none. The last look, for an answer that nobody
// asked for and that must not become somebody's, is taken as the request goes out.
func (p *pool) get(of announcement) *upstreamConn {
	for {
		p.mu.Lock()
		n := len(p.idle) - 1
		for n >= 0 && p.idle[n].of != of {
			n--
		}
		if n < 0 {
			p.mu.Unlock()
			return nil
		}
		c := p.idle[n]
		p.idle = slices.Delete(p.idle, n, n+1)
		p.mu.Unlock()
		if c.alive() {
			return c
		}
		c.nc.Close()
	}
}

// put keeps a connection for the next request, unless its life is over: see package spread. It ends here, between two
// requests, where nobody can miss it. One that only a certain client can use goes in place of the one that has been
// idle for longest.
func (p *pool) put(c *upstreamConn, now time.Duration) {
	c.idleSince = now
	p.mu.Lock()
	fit := !p.closed && now < c.until
	if fit && len(p.idle) >= maxIdle && c.of.version != 0 {
		defer p.idle[0].nc.Close()
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	keep := fit && len(p.idle) < maxIdle
	if keep {
		p.idle = append(p.idle, c)
	}
	p.mu.Unlock()
	if !keep {
		c.nc.Close()
	}
}

// sweep closes connections idle since before then.
func (p *pool) sweep(then time.Duration) {
	p.mu.Lock()
	n := 0
	for n < len(p.idle) && p.idle[n].idleSince < then {
		n++
	}
	old := slices.Clone(p.idle[:n])
	p.idle = slices.Delete(p.idle, 0, n)
	p.mu.Unlock()
	for _, c := range old {
		c.nc.Close()
	}
}

// close closes all idle connections, and the others when they are put back.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, c := range idle {
		c.nc.Close()
	}
}

func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
