package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

const (
	// busyStreams is how many streams a connection carries before another is made, as long as there are few
	// connections: each has a goroutine that reads it, and a window that its streams share.
	busyStreams = 100
	// fewConns is how many connections are made for the load alone. More are made when the server allows no more streams.
	fewConns = 8
	// mostConns bounds them all.
	mostConns = 256
)

// errNoStreams is a server that takes none on a connection that has just been made. To make another would not help.
var errNoStreams = errors.New("the server takes no streams, or is shutting down")

// errNoRoom is an endpoint whose connections are all full.
var errNoRoom = errors.New("the server takes no more streams on 256 connections")

// http2Pool is the connections to an endpoint that speak HTTP/2, the first made at the front: those behind it are
// idle sooner.
type http2Pool struct {
	e      *endpoint
	mu     sync.Mutex
	conns  []*h2.Conn
	dial   *dial         // under way, nil for none
	again  time.Duration // when one more may be tried for the load alone, after one that failed
	closed bool
	made   *security // how TLS is spoken on them, nil if it is not
}

// breather is how long that is.
const breather = time.Second

// dial is a connection being made. All that need one wait for it: many requests at once must not make as many.
type dial struct {
	done chan struct{}
	err  error
}

// get returns a connection that has room for a stream, as far as can be known, or else the dial to wait for.
func (p *http2Pool) get(t *transport) (*h2.Conn, *dial, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, more := p.pick()
	if c == nil && p.dial == nil && len(p.conns) >= mostConns {
		return nil, nil, errNoRoom
	}
	if p.dial == nil && (more || p.outdated()) {
		p.dial = &dial{done: make(chan struct{})}
		go p.connect(p.dial, t)
	}
	return c, p.dial, nil
}

// outdated reports whether TLS is spoken otherwise by now: the connections that there are serve until there is one of
// the new kind. mu is held.
func (p *http2Pool) outdated() bool {
	return p.made != nil && core.Now() >= p.again && p.e.secured.outdated(p.made)
}

// pick chooses a connection with room, nil if there is none, and reports whether to make another. One that is wanted
// for the load alone is not waited for: it may not come about. mu is held.
func (p *http2Pool) pick() (best *h2.Conn, more bool) {
	least := 0
	for _, c := range p.conns {
		n, room := c.Room()
		switch {
		case !room:
			continue
		case n < busyStreams:
			return c, false
		}
		if best == nil || n < least {
			best, least = c, n
		}
	}
	return best, best == nil || len(p.conns) < fewConns && core.Now() >= p.again
}

func (p *http2Pool) connect(d *dial, t *transport) {
	defer close(d.done)
	made, err := p.e.http2Security()
	var c *h2.Conn
	if err == nil {
		c, err = p.e.connectHTTP2(t, p, made)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dial = nil
	if err != nil {
		d.err, p.again = err, later(core.Now(), breather)
		return
	}
	if made != p.made { // the others end after their last stream; Drain has forget called, which wants mu
		for _, old := range p.conns {
			go old.Drain()
		}
		p.made = made
	}
	p.conns = append(p.conns, c)
	if p.tidy(); t.life.Err() != nil {
		go c.Close() // it has forget called, which wants mu
	}
}

// tidy takes out connections that have ended. mu is held.
func (p *http2Pool) tidy() {
	p.conns = slices.DeleteFunc(p.conns, func(c *h2.Conn) bool {
		select {
		case <-c.Done():
			return true
		default:
			return false
		}
	})
}

// forget takes out a connection that takes no more streams.
func (p *http2Pool) forget(c *h2.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = slices.DeleteFunc(p.conns, func(other *h2.Conn) bool { return other == c })
}

func (p *http2Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// sweep ends connections that have been idle since before then.
func (p *http2Pool) sweep(then time.Duration) {
	p.mu.Lock()
	p.tidy()
	conns := slices.Clone(p.conns)
	p.mu.Unlock()
	for _, c := range conns {
		if since, idle := c.Idle(); idle && since < then {
			c.Drain()
		}
	}
}

// close ends all connections, each after its last stream.
func (p *http2Pool) close() {
	p.mu.Lock()
	p.closed = true
	conns := slices.Clone(p.conns)
	p.mu.Unlock()
	for _, c := range conns {
		c.Drain()
	}
}

// http2Security is how TLS is to be spoken, nil if it is not.
func (e *endpoint) http2Security() (*security, error) {
	if e.scheme != "https" {
		return nil, nil
	}
	return e.secured.now()
}

// connectHTTP2 makes a connection to e that speaks HTTP/2.
func (e *endpoint) connectHTTP2(t *transport, pool *http2Pool, made *security) (*h2.Conn, error) {
	ctx, cancel := context.WithTimeout(t.life, t.connectTimeout)
	defer cancel()
	nc, err := t.dial(ctx, e, announcement{version: e.secured.by.Load().proxyProtocol})
	if err != nil {
		return nil, err
	}
	if made != nil {
		secure := tls.Client(nc, made.http2)
		err := secure.HandshakeContext(ctx)
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the server ended it: %w", io.ErrUnexpectedEOF)
		}
		if err == nil && secure.ConnectionState().NegotiatedProtocol != "h2" {
			err = errors.New("the server does not speak HTTP/2, which gRPC needs")
		}
		if err != nil {
			nc.Close()
			return nil, fmt.Errorf("TLS handshake with %s: %w", e.addr, err)
		}
		nc = secure
	}
	return e.agree(nc, t, pool)
}

// agree begins HTTP/2, and waits until the server has said how much it takes.
func (e *endpoint) agree(nc net.Conn, t *transport, pool *http2Pool) (*h2.Conn, error) {
	config := t.http2
	config.OnClosing = pool.forget
	if pool.isClosed() { // it is for requests that are still under way
		config.IdleTimeout = time.Second
	}
	c, err := h2.NewClient(nc, &config)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(t.connectTimeout)
	defer limit.Stop()
	select {
	case <-c.Agreed():
		if c.CanTake() {
			return c, nil
		}
		err = c.Err()
		c.Close()
		if err == nil {
			err = errNoStreams
		}
		return nil, fmt.Errorf("HTTP/2 with %s: %w", e.addr, err)
	case <-c.Done():
		if err = c.Err(); err == nil {
			err = errClosedEarly
		}
		return nil, fmt.Errorf("the server at %s does not speak HTTP/2: %w", e.addr, err)
	case <-limit.C:
		c.Close()
		return nil, &timeLimitError{"no HTTP/2 from " + e.addr}
	}
}
