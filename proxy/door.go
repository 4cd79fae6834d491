package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/internal/nowait"
	"github.com/abate-go/abate/internal/untaken"
)

// door is an address at which clients come in: the programs of a sidecar or the clients of a gateway, or, if it has a
// name, those of the services that this proxy protects.
type door struct {
	lobby  *lobby
	name   string // listen as the policy file writes it; "" where no gate stands
	l      net.Listener
	secure atomic.Pointer[watched[credentials]] // nil without TLS
	// who begins a connection with a PROXY header; nil for nobody
	announces atomic.Pointer[func(netip.Addr) bool]
	draining  atomic.Bool
	served    chan struct{} // closed when nobody accepts there any more
	asked     *admission    // by the last review; under mu of the lobby
	// service is whose calls come in here alone; redirects has the firewall send connections here.
	service   string
	redirects bool
	// early is how many of the next clients have to be bound one by one: the kernel had connected them before it was told
	// to bound all. Less than 0 means all of them.
	early int
}

// isLost reports whether the file of the door's Unix socket has gone.
func (d *door) isLost() bool {
	s, ok := d.l.(*socketFile)
	return ok && s.lost()
}

// serve takes clients until the door is closed, and returns nil then.
func (d *door) serve() error {
	defer close(d.served)
	d.boundAll()
	for pause := time.Duration(0); ; {
		nc, err := d.l.Accept()
		switch {
		case err == nil:
			pause = 0
			d.takeSlot()
			d.receive(nc)
		case d.draining.Load():
			return nil
		case errors.Is(err, net.ErrClosed):
			d.l.Close()
			return err
		default: // out of file descriptors, most likely: existing clients go on
			d.lobby.plane.services.sweepIdle()
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			d.lobby.plane.config.Log.Error("no client accepted, trying again", "error", err, "pause", pause)
			time.Sleep(pause)
		}
	}
}

// boundAll has the kernel bound what the clients of the door leave untaken, without a call for each of them.
func (d *door) boundAll() {
	d.early = -1
	if tellsBacklog && untaken.BoundAccepted(d.l, d.lobby.plane.config.StallTimeout) {
		d.early = backlog(d.l)
	}
}

// receive has a client be served who has been accepted.
func (d *door) receive(nc net.Conn) {
	g := guest{door: d, nc: nc, bound: d.early == 0}
	d.early -= min(max(d.early, 0), 1)
	d.lobby.hosts.receive(g)
}

// halt has nobody accept at the door any more, and waits for that: what comes from here on, the kernel keeps. mu of the
// lobby is not held.
func (d *door) halt() {
	d.draining.Store(true)
	if tcp, ok := d.l.(*net.TCPListener); ok {
		tcp.SetDeadline(time.Unix(1, 0))
		<-d.served
	}
}

var counted = backlog // or what a test says

// lastCall takes the clients whom the kernel has connected, for closing the door would reset them: what they have sent
// by now has come, and is answered. The door is halted, and mu of the lobby is not held: clients come and go meanwhile.
func (d *door) lastCall() {
	tcp, _ := d.l.(*net.TCPListener)
	for n := 2 * counted(d.l); n > 0 && awaited(d.l) && d.letsOneMoreIn(); n-- { // some more may come, but not for ever
		tcp.SetDeadline(time.Now().Add(glance)) // another process may have been quicker
		nc, err := tcp.Accept()
		if err == nil {
			d.receive(nc)
			continue
		}
		d.lobby.freeSlot()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// letsOneMoreIn takes a slot if there is one.
func (d *door) letsOneMoreIn() bool {
	l := d.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.plane.config.MaxConnections; l.closed || most > 0 && l.connected >= most {
		return false
	}
	l.connected++
	return true
}

// dismiss takes no new clients, and has those there are go after the request under way. mu of the lobby is held, and
// the door halted.
func (d *door) dismiss() {
	d.l.Close()
	for c := range d.lobby.clients {
		if c.draining == &d.draining {
			d.lobby.dismiss(c)
		}
	}
}

// retire closes a door that the policy file has no more. Its clients get their answers, as long as the proxy itself
// is there.
func (d *door) retire() {
	d.halt()
	d.lastCall()
	d.lobby.mu.Lock()
	defer d.lobby.mu.Unlock()
	d.dismiss()
	delete(d.lobby.doors, d)
}

// remove forgets a door that nobody uses.
func (d *door) remove() {
	d.lobby.mu.Lock()
	defer d.lobby.mu.Unlock()
	delete(d.lobby.doors, d)
}

// welcome takes a new client. bound tells that the kernel bounds already what it leaves untaken.
func (d *door) welcome(nc net.Conn, bound bool) {
	l, p := d.lobby, d.lobby.plane
	c := &clientConn{plane: p, inside: &l.http2, draining: &d.draining, anew: true,
		sock: clientSocket{clock: &p.clock, stall: p.config.StallTimeout, nc: nc},
		from: origin{listen: d.name, service: d.service}}
	c.from.of(nc)
	c.out.sock, c.body.sock = &c.sock, &c.sock
	c.sock.ready = c.sock.readReady
	c.sock.tcp, _ = nc.(*net.TCPConn)
	if socket, ok := nc.(syscall.Conn); ok && nowait.Possible {
		c.sock.raw, _ = socket.SyscallConn()
	}
	c.sock.lends.over(nc, c.sock.raw)
	if !bound {
		untaken.Bound(nc, p.config.StallTimeout)
	}
	if !l.enter(d, c) {
		nc.Close()
		l.freeSlot()
		return
	}
	d.attend(c)
}

// attend serves a client from its first byte on, or from the one that ended its rest, until it goes or rests.
func (d *door) attend(c *clientConn) {
	rests := false
	defer func() {
		if rests {
			if !d.lobby.roost.take(d, c) {
				go d.lobby.hosts.rest(d, c)
			}
			return
		}
		c.from.herald.leave()
		d.lobby.leave(c)
		d.lobby.freeSlot()
	}()
	defer c.contain()
	if c.rested || d.begin(c) {
		rests = c.serve()
	}
}

// begin does what comes before the first request. It is false if none follows.
func (d *door) begin(c *clientConn) bool {
	if announces := d.announces.Load(); announces != nil && (*announces)(c.from.peer) && !c.isAnnounced() ||
		c.from.tls && !(d.handshake(c) && d.stillLets(c)) {
		c.sock.nc.Close()
		return false
	}
	if d.redirects && !(redirected{c}).findOriginal() {
		c.sock.nc.Close()
		return false
	}
	if d.redirects && (redirected{c}).passRaw() {
		if !c.handedOver {
			c.close()
		}
		return false
	}
	return true
}

// of notes what a connection itself tells of where it comes from.
func (o *origin) of(nc net.Conn) {
	o.source, o.dst = addrPort(nc.RemoteAddr()), addrPort(nc.LocalAddr())
	o.peer = o.source.Addr()
	o.self = o.dst
}

// handshake begins TLS with a client, who has as long for it as for the head of a request, also while the proxy drains:
// the same time is then for its first request.
func (d *door) handshake(c *clientConn) bool {
	s := c.sock.nc.(*tls.Conn)
	began, limit := core.Now(), c.plane.config.HeaderTimeout
	ctx, cancel := context.WithTimeout(c.plane.life, limit)
	defer cancel()
	c.waiting.Store(int64(max(began, 1)))
	if !c.hears(limit) || !d.lobby.beginsTLS(c) {
		return false
	}
	err := s.HandshakeContext(ctx)
	d.lobby.hasBegunTLS(c)
	if err != nil {
		c.strange(err)
		return false
	}
	c.sock.grace = later(began, limit)
	c.agreed = s.ConnectionState().NegotiatedProtocol == "h2"
	if certs := s.ConnectionState().PeerCertificates; len(certs) > 0 {
		c.from.name = hops.CertificateName(certs[0])
	}
	return true
}

// hears waits for the first byte of a handshake, while the proxy drains only for a moment: it may be on its way.
func (c *clientConn) hears(limit time.Duration) bool {
	raw, until := c.sock.bottom(), time.Now().Add(limit)
	if !c.sock.wakes() {
		return !c.draining.Load()
	}
	for drains := false; ; {
		c.sock.nc.SetReadDeadline(until) // before the looks: whoever dismisses the client sets another behind them
		if !drains && c.draining.Load() {
			drains, until = true, time.Now().Add(min(glance, limit))
			continue
		}
		if c.dismissed.Load() {
			return false
		}
		err := raw.Read(nowait.Readable)
		switch {
		case err == nil || c.sock.readable():
			return true
		case !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(until):
			return false
		}
	}
}

// The states of a handshake, as review knows them. The zero state is none.
const (
	shakes     = iota + 1
	shakesAnew // the door has asked for something else since it began
)

// stillLets reports whether a client may come in that has just begun TLS: the door may ask for something else by now.
func (d *door) stillLets(c *clientConn) bool {
	if c.shakes.Swap(0) != shakesAnew {
		return true
	}
	now, certs := d.asks(), c.sock.nc.(*tls.Conn).ConnectionState().PeerCertificates
	switch {
	case !now.tls || now.authorities == nil:
		return now.tls
	case len(certs) == 0:
		return false
	}
	between := x509.NewCertPool()
	for _, cert := range certs[1:] {
		between.AddCert(cert)
	}
	_, err := certs[0].Verify(x509.VerifyOptions{Roots: now.authorities, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// strange notes a client that could not begin TLS. One that speaks HTTP is told.
func (c *clientConn) strange(err error) {
	var plain tls.RecordHeaderError
	if errors.As(err, &plain) && plain.Conn != nil && isHTTP(plain.RecordHeader) {
		plain.Conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\n"+
			"Connection: close\r\n\r\nthis port speaks TLS: ask with https://\n")
	}
	c.plane.note("handshake failed", c.from.stumbled(err)...)
}

// stumbled is what note says of a client with whom a connection did not begin.
func (o *origin) stumbled(err error) []slog.Attr {
	return []slog.Attr{slog.String("listen", o.listen), slog.String("peer", o.peer.String()),
		slog.String("error", err.Error())}
}

// isHTTP reports whether the first bytes of a connection look like a request.
func isHTTP(first [5]byte) bool {
	switch string(first[:4]) {
	case "GET ", "HEAD", "POST", "PUT ", "PATC", "DELE", "OPTI", "PRI ":
		return true
	}
	return false
}
