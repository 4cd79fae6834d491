package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abate-go/abate/proxy/h2"
)

// lobby is where clients come in, wait for a slot, and go: the doors, and everybody who has come in at one.
type lobby struct {
	plane    *plane
	http2    h2.Config // of connections of clients that speak HTTP/2
	draining atomic.Bool
	secure   *watched[credentials] // of the listeners of Serve; nil without TLS

	mu        sync.Mutex
	doors     map[*door]struct{}
	clients   map[*clientConn]struct{}
	closed    bool   // all doors are, and nobody comes in any more
	connected int    // clients that have been accepted and have not gone
	stood     uint64 // that had to wait for a slot
	full      full
	freed     chan struct{} // told when one has gone
	hosts     hosts
	roost     roost
	idle      chan struct{} // closed when draining and the last client has gone
}

func (l *lobby) init(p *plane) {
	c := &p.config
	l.plane, l.doors, l.clients = p, map[*door]struct{}{}, map[*clientConn]struct{}{}
	l.freed, l.idle = make(chan struct{}, 1), make(chan struct{})
	l.hosts.next, l.hosts.end = make(chan guest), l.idle
	l.roost.goOn, l.roost.idle = l.hosts.goOn, c.IdleTimeout
	l.roost.failed = func(err error) {
		c.Log.Warn("idle clients are waited for one by one until the next start, which takes more memory", "error", err)
	}
	l.http2 = h2.Config{
		MaxStreams: streamsOfOurs, MaxHeadBytes: maxHead, HeaderTimeout: c.HeaderTimeout,
		IdleTimeout: c.IdleTimeout, StallTimeout: c.StallTimeout, Bounded: true, // welcome sees to it
	}
}

// serve takes clients from a listener that is not the policy file's, until the lobby is drained.
func (l *lobby) serve(at net.Listener, change func(*door)) error {
	d := l.enterAt("", at)
	if d == nil {
		at.Close()
		return nil
	}
	change(d)
	if c := &l.plane.config; d.service == "" && !d.redirects {
		d.secure.Store(l.secure)
		if c.ProxyProtocol {
			announces := c.trusts
			d.announces.Store(&announces)
		}
	}
	l.review()
	err := d.serve()
	if err != nil {
		d.remove()
	}
	return err
}

// enterAt makes a door of a listener. It is nil while the proxy drains.
func (l *lobby) enterAt(name string, at net.Listener) *door {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.draining.Load() {
		return nil
	}
	d := &door{lobby: l, name: name, l: at, served: make(chan struct{})}
	l.doors[d] = struct{}{}
	return d
}

// admission is what a door asks of its clients.
type admission struct {
	tls         bool
	authorities *x509.CertPool // of their certificates; nil for none
}

func (d *door) asks() admission {
	secure := d.secure.Load()
	if secure == nil {
		return admission{}
	}
	if c := secure.value.Load(); c != nil {
		return admission{true, c.config.ClientCAs}
	}
	return admission{true, nil}
}

// review has those clients go, after the request under way, who came in at a door when it asked for something else:
// perhaps they could not come in now.
func (l *lobby) review() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.doors {
		before, now := d.asked, d.asks()
		if d.asked = &now; before == nil || before.tls == now.tls && before.authorities.Equal(now.authorities) {
			continue
		}
		for c := range l.clients {
			switch {
			case c.draining != &d.draining:
			case c.shakes.CompareAndSwap(shakes, shakesAnew), c.shakes.Load() == shakesAnew: // looks again at its end
			default:
				c.dismissed.Store(true)
				l.dismiss(c)
			}
		}
	}
}

// lost tells of the listeners at Unix sockets whose files have been removed.
func (l *lobby) lost() (problems []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.doors {
		if d.isLost() {
			problems = append(problems, fmt.Errorf("unix:%s: its file has been removed, so nobody can connect: start the "+
				"proxy anew", d.l.Addr()))
		}
	}
	return problems
}

// drain takes no new clients, tells those there are to go after the request under way, and returns when the last has
// gone, or when ctx ends: then those that are left are cut off.
func (l *lobby) drain(ctx context.Context) error {
	l.draining.Store(true)
	l.plane.tunnels.refuse()
	l.mu.Lock()
	doors := slices.Collect(maps.Keys(l.doors))
	l.mu.Unlock()
	for _, d := range doors {
		d.halt()
	}
	for _, d := range doors {
		d.lastCall()
		l.mu.Lock()
		d.dismiss()
		l.mu.Unlock()
	}
	l.mu.Lock()
	if l.closed = true; l.connected == 0 {
		l.emptied()
	}
	l.mu.Unlock()
	select {
	case <-l.idle:
		return nil
	case <-ctx.Done():
		l.cutOff()
		return ctx.Err()
	}
}

func (l *lobby) cutOff() {
	l.mu.Lock()
	for c := range l.clients {
		c.cut()
		l.roost.wake(c)
	}
	l.mu.Unlock()
	l.plane.tunnels.cutOff()
}

// emptied notes that the last client of a draining lobby has gone. mu is held.
func (l *lobby) emptied() {
	select {
	case <-l.idle:
	default:
		close(l.idle)
		l.roost.close()
	}
}

// dismiss has a client go that waits for a request, or rests. mu is held.
func (l *lobby) dismiss(c *clientConn) {
	c.dismiss()
	l.roost.wake(c)
}

// enter and leave keep the list of clients. TLS is spoken with a client by what the door asks for as it enters, so that
// none whom review does not see has come in by something else. It is false while no certificate could be read.
func (l *lobby) enter(d *door, c *clientConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if secure := d.secure.Load(); secure != nil {
		now := secure.value.Load()
		if now == nil {
			return false
		}
		c.sock.under, c.sock.tcp, c.sock.raw = &underTLS{c.sock.raw}, nil, nil
		c.sock.nc, c.from.tls = tls.Server(&c.sock.lends, now.config), true
		c.sock.lends.records = &records{of: &c.silence}
		c.shakes.Store(shakes)
	}
	l.clients[c] = struct{}{}
	return true
}

// beginsTLS and hasBegunTLS bound the handshake of a client: a drain does not end its wait. beginsTLS is false if the
// client has to make room.
func (l *lobby) beginsTLS(c *clientConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.dismissed.Load() {
		return false
	}
	c.sock.nc.SetReadDeadline(time.Time{})
	c.inTLS = true
	c.begins()
	c.waiting.Store(0)
	return true
}

func (l *lobby) hasBegunTLS(c *clientConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.inTLS = false
	c.heading.Store(0)
}

func (l *lobby) leave(c *clientConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.clients, c)
}

// remind has clients that speak HTTP/2 go, those who have come in while the proxy leaves among them.
func (l *lobby) remind() {
	if !l.plane.leaving.Load() {
		return
	}
	var going []*h2.Conn
	l.mu.Lock()
	for c := range l.clients {
		if conn := c.http2.Load(); conn != nil && l.plane.leaves(c.from.listen) {
			going = append(going, conn)
		}
	}
	l.mu.Unlock()
	for _, conn := range going {
		conn.Drain()
	}
}

// ready reports whether new requests are welcome.
func (l *lobby) ready() bool { return !l.draining.Load() && !l.plane.leaving.Load() }
