package proxy

import (
	"slices"
	"sync"
	"time"
)

// maxIdle is how many idle connections an endpoint keeps: for all, and for each client of whom its connections tell.
const maxIdle = 512

// pool is the idle connections to an endpoint, those used last at the end of a list.
type pool struct {
	mu     sync.Mutex
	idle   []*upstreamConn             // that are for everybody
	of     map[*herald][]*upstreamConn // that tell of a client, and are for that one only
	closed bool
}

// herald is a client of whom connections to services tell, in their PROXY headers. They serve nobody else: they end
// when it has gone. The zero herald is a client that is there.
type herald struct {
	mu    sync.Mutex
	pools map[*pool]struct{} // with a list for it
	gone  bool
}

// joins notes that a pool has a list for the client. It is false if the client has gone.
func (h *herald) joins(p *pool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		return false
	}
	if h.pools == nil {
		h.pools = map[*pool]struct{}{}
	}
	h.pools[p] = struct{}{}
	return true
}

func (h *herald) parts(p *pool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pools, p)
}

// leave closes the connections that tell of the client, and has those in use be closed after their request.
func (h *herald) leave() {
	h.mu.Lock()
	pools := h.pools
	h.pools, h.gone = nil, true
	h.mu.Unlock()
	for p := range pools { // not under mu, which is taken under theirs
		p.mu.Lock()
		kept := p.of[h]
		delete(p.of, h)
		p.mu.Unlock()
		closeAll(kept)
	}
}

// get takes a connection that began with what is to be said of the client, and may be fit for a request; nil if there
// is none. The last look, for an answer that nobody asked for and that must not become somebody's, is taken as the
// request goes out.
func (p *pool) get(of announcement) *upstreamConn {
	for {
		c := p.take(of)
		if c == nil || c.alive() {
			return c
		}
		c.nc.Close()
	}
}

func (p *pool) take(of announcement) (c *upstreamConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if of.client == nil {
		if n := len(p.idle) - 1; n >= 0 {
			c, p.idle[n] = p.idle[n], nil
			p.idle = p.idle[:n]
		}
		return c
	}
	kept := p.of[of.client]
	for n := len(kept) - 1; n >= 0; n-- {
		if kept[n].of == of {
			c = kept[n]
			p.of[of.client] = slices.Delete(kept, n, n+1)
			return c
		}
	}
	return nil
}

// put keeps a connection for the next request, unless its life is over: see package spread. It ends here, between two
// requests, where nobody can miss it.
func (p *pool) put(c *upstreamConn, now time.Duration) {
	c.idleSince = now
	p.mu.Lock()
	keep := !p.closed && now < c.until && p.keep(c)
	p.mu.Unlock()
	if !keep {
		c.nc.Close()
	}
}

// keep is put's part under mu, which is held.
func (p *pool) keep(c *upstreamConn) bool {
	client := c.of.client
	if client == nil {
		if len(p.idle) >= maxIdle {
			return false
		}
		p.idle = append(p.idle, c)
		return true
	}
	kept := p.of[client]
	if len(kept) >= maxIdle || !client.joins(p) {
		return false
	}
	if p.of == nil {
		p.of = map[*herald][]*upstreamConn{}
	}
	p.of[client] = append(kept, c)
	return true
}

// sweep closes connections idle since before then, and those that are not fit any more.
func (p *pool) sweep(then time.Duration, fit func(*upstreamConn) bool) {
	var old []*upstreamConn
	over := func(c *upstreamConn) bool {
		end := c.idleSince < then || !fit(c)
		if end {
			old = append(old, c)
		}
		return end
	}
	p.mu.Lock()
	p.idle = slices.DeleteFunc(p.idle, over)
	for client, kept := range p.of {
		if p.of[client] = slices.DeleteFunc(kept, over); len(p.of[client]) == 0 {
			delete(p.of, client)
			client.parts(p)
		}
	}
	p.mu.Unlock()
	closeAll(old)
}

// close closes all idle connections, and the others when they are put back.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	for client, kept := range p.of {
		idle = append(idle, kept...)
		client.parts(p)
	}
	p.idle, p.of, p.closed = nil, nil, true
	p.mu.Unlock()
	closeAll(idle)
}

func closeAll(conns []*upstreamConn) {
	for _, c := range conns {
		c.nc.Close()
	}
}

func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	for _, kept := range p.of {
		n += len(kept)
	}
	return n
}
