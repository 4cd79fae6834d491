package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
	"github.com/abate-go/abate/proxy/spread"
)

// mostConns bounds the connections to one endpoint. More than spread.Few are made only when the server allows no more
// streams on those there are.
const mostConns = 256

// errNoStreams is a server that takes none on a connection that has just been made. To make another would not help.
var errNoStreams = errors.New("the server takes no streams, or is shutting down")

// errNoRoom is an endpoint whose connections are all full.
var errNoRoom = errors.New("the server takes no more streams on 256 connections")

// http2Pool is the connections to an endpoint that speak HTTP/2.
type http2Pool struct {
	e        *endpoint
	mu       sync.Mutex
	conns    []*h2.Conn
	carriers []spread.Carrier // of each of conns
	choice   spread.Pool
	dial     *dial         // under way, nil for none
	again    time.Duration // when one more may be tried that no call waits for, after one that failed
	closed   bool
	made     *security // how TLS is spoken on them, nil if it is not
	header   int       // the version of the PROXY header with which they began, 0 for none
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
	now := core.Now()
	for i, c := range p.conns {
		p.carriers[i].Streams = c.Streams()
	}
	choice := p.choice.Choose(p.carriers, now)
	best, more := (*h2.Conn)(nil), choice.Dial && now >= p.again
	if choice.Best >= 0 {
		if best = p.conns[choice.Best]; !best.CanTake() {
			best = p.withRoom()
		}
	}
	if choice.Drop >= 0 && p.conns[choice.Drop] != best {
		p.retire(choice.Drop)
	}
	if best == nil && p.dial == nil && len(p.conns) >= mostConns {
		return nil, nil, errNoRoom
	}
	if p.dial == nil && (more || best == nil || p.outdated(now)) {
		p.dial = &dial{done: make(chan struct{})}
		go p.connect(p.dial, t)
	}
	return best, p.dial, nil
}

// outdated reports whether connections begin otherwise by now: those that there are serve until there is one of the
// new kind. mu is held.
func (p *http2Pool) outdated(now time.Duration) bool {
	return now >= p.again && (p.header != p.e.announced().version || p.made != nil && p.e.secured.outdated(p.made))
}

// withRoom is the connection with the fewest streams of those that take one more, nil if there is none. mu is held.
func (p *http2Pool) withRoom() (best *h2.Conn) {
	least := 0
	for _, c := range p.conns {
		if n, room := c.Room(); room && (best == nil || n < least) {
			best, least = c, n
		}
	}
	return best
}

// retire takes a connection out, which ends with its last stream. mu is held.
func (p *http2Pool) retire(i int) {
	c := p.conns[i]
	p.remove(func(other *h2.Conn) bool { return other == c })
	go c.Drain() // it has forget called, which wants mu
}

// retireAll is retire for all. mu is held.
func (p *http2Pool) retireAll() {
	for len(p.conns) > 0 {
		p.retire(0)
	}
}

// remove takes connections out. mu is held.
func (p *http2Pool) remove(which func(*h2.Conn) bool) {
	n := 0
	for i, c := range p.conns {
		if !which(c) {
			p.conns[n], p.carriers[n] = c, p.carriers[i]
			n++
		}
	}
	clear(p.conns[n:])
	p.conns, p.carriers = p.conns[:n], p.carriers[:n]
}

// connect makes a connection, in the place of one that is too old if there is one.
func (p *http2Pool) connect(d *dial, t *transport) {
	defer close(d.done)
	made, err := p.e.http2Security()
	var c *h2.Conn
	of := p.e.announced()
	if err == nil {
		c, err = p.e.connectHTTP2(t, p, made, of)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dial = nil
	now := core.Now()
	if err != nil {
		d.err, p.again = err, later(now, breather)
		if made != p.made && distrusts(err) { // by what holds now, the service may not have the calls
			p.retireAll()
		}
		return
	}
	if made != p.made || of.version != p.header {
		p.retireAll()
		p.made, p.header = made, of.version
	} else if old := spread.Old(p.carriers, now); old >= 0 {
		p.retire(old)
		p.choice.Replaced()
	}
	p.conns = append(p.conns, c)
	p.carriers = append(p.carriers, spread.Carrier{Made: now, Until: p.e.endOfLife(t, now), TLS: made != nil})
	if p.tidy(); t.life.Err() != nil {
		go c.Close() // it has forget called, which wants mu
	}
}

// tidy takes out connections that have ended. mu is held.
func (p *http2Pool) tidy() {
	p.remove(func(c *h2.Conn) bool {
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
	p.remove(func(other *h2.Conn) bool { return other == c })
}

func (p *http2Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

func (p *http2Pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
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
func (e *endpoint) connectHTTP2(t *transport, pool *http2Pool, made *security, of announcement) (*h2.Conn, error) {
	ctx, cancel := context.WithTimeout(t.life, t.connectTimeout)
	defer cancel()
	nc, err := t.dial(ctx, e, of)
	if err != nil {
		return nil, err
	}
	if made != nil {
		secure, err := e.shake(ctx, nc, made.http2)
		if err != nil {
			return nil, err
		}
		if nc = secure; secure.ConnectionState().NegotiatedProtocol != "h2" {
			nc.Close()
			return nil, fmt.Errorf("TLS handshake with %s: the server does not speak HTTP/2, which gRPC needs", e.addr)
		}
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
		if turnedAway(err) {
			return nil, &handshakeError{e.addr, err}
		}
		return nil, fmt.Errorf("the server at %s does not speak HTTP/2: %w", e.addr, err)
	case <-limit.C:
		c.Close()
		return nil, &timeLimitError{"no HTTP/2 from " + e.addr}
	}
}
