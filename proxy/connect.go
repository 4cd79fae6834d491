package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/untaken"
)

// connects reports whether the client asks for a tunnel. An extended CONNECT is a request like any other.
func (r *request) connects() bool { return string(r.Method) == http.MethodConnect }

// connect answers CONNECT. What is in a tunnel goes past the policy, so its end has to be listed. A service that speaks
// no TLS is none: the requests in it are read, and go the way of all others.
func (x *exchange) connect() {
	r := &x.req
	r.route = route{} // of the request before, which may be another client's
	host, port := authority(text(r.Host))
	lists := r.plane.outside.lists(r.plane.config.PassThrough)
	service, listed := r.plane.policies.Listed(text(r.Host))
	from, to := r.client.origin(), net.JoinHostPort(host, strconv.Itoa(int(port)))
	switch {
	case from.listen != "" || lists.connect.Empty() && (!listed || r.plane.config.Gateway):
		x.refuseConnect("not-allowed", http.StatusMethodNotAllowed, "this proxy does not tunnel: no outside.connect of the "+
			"policy file allows CONNECT")
	case r.Length != 0 && !r.client.multiplexed() || r.Upgrade != nil: // what follows in a stream is the tunnel
		x.refuseConnect("bad-request", http.StatusBadRequest, "a CONNECT with content, or with an Upgrade, is none")
	case r.plane.tunnels.isShut():
		x.refuseConnect(drainingReason, http.StatusServiceUnavailable, noMoreTunnels)
	case listed && !service.Secure && !r.plane.config.Gateway && r.client.enterTunnel(bytes.Clone(r.Host)):
		x.reply.status = http.StatusOK
		x.log(nil)
	case listed && !lists.connect.Names(host, port):
		x.refuseConnect("guarded", http.StatusForbidden, x.guardedDetail(service.Service, host, port, service.Secure))
	case !lists.connect.May(host, port):
		x.refuseConnect("unlisted", http.StatusForbidden, fmt.Sprintf(
			"outside.connect of the policy file does not have %.200q: add it if it is meant", to))
	default:
		s := &screen{lists.connect, "outside.connect", host, port}
		x.tunnelTo(s, to)
	}
	x.ended = core.Now()
}

// guardedDetail says how to call a service whose calls cannot be guarded in a tunnel.
func (x *exchange) guardedDetail(service, host string, port uint16, secure bool) string {
	how := "send the request itself, without CONNECT"
	switch {
	case secure:
		how = fmt.Sprintf("ask for http://%s/ without TLS instead of https, and the proxy speaks TLS to the service", host)
	case x.req.client.multiplexed():
		how += ", or ask for the tunnel over HTTP/1.1, where what is in it is read and guarded"
	}
	return fmt.Sprintf("%s belongs to service %s, which a tunnel would go past: %s; or add %q to outside.connect of the "+
		"policy file, without a *", host, service, how, net.JoinHostPort(host, strconv.Itoa(int(port))))
}

// authority takes a host and a port apart that h1 has checked.
func authority(s string) (host string, port uint16) {
	host, digits, err := net.SplitHostPort(s)
	n, bad := strconv.ParseUint(digits, 10, 16)
	if err != nil || bad != nil {
		return s, 0
	}
	return host, uint16(n)
}

// refuseConnect refuses a tunnel.
func (x *exchange) refuseConnect(why string, status int, detail string) {
	x.req.route = route{}
	x.req.plane.tunnels.refuses(why)
	reason := deniedReason
	switch status {
	case http.StatusMethodNotAllowed:
		reason = "no-tunnels"
	case http.StatusBadRequest:
		reason = "bad-request"
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		reason = "upstream-error"
	case http.StatusServiceUnavailable:
		if reason = exhaustedReason; why == drainingReason {
			reason = why
		}
	}
	if x.req.plane.config.Gateway && status == http.StatusForbidden {
		detail = "the policy does not let tunnels go there"
	}
	x.reply.problem(problem{Status: status, Reason: reason, Detail: detail})
	x.log(nil)
}

// tunnelTo makes the connection, and has bytes go both ways until both ends have finished.
func (x *exchange) tunnelTo(s *screen, addr string) {
	r, began := &x.req, core.Now()
	outliveInput(r)
	var slot upstreamSlot
	if !slot.take(&r.plane.out.upstreamSlots, &r.client.origin().upstreamSlots) {
		x.refuseConnect("exhausted", http.StatusServiceUnavailable, errNoUpstreamSlot.Error())
		return
	}
	defer slot.leave()
	up, err := r.plane.dialOutside(r.client.context(), s, addr)
	if err != nil {
		x.refuseTunnel(err, addr, began)
		return
	}
	if r.plane.tunnels.isShut() { // meanwhile
		up.Close()
		x.refuseConnect(drainingReason, http.StatusServiceUnavailable, noMoreTunnels)
		return
	}
	r.client.accept()
	client, early := r.client.takeOver()
	through := &tunnel{client: client, service: up, stall: r.plane.config.StallTimeout, to: addr,
		peer: r.client.origin().peer.String(), way: s.wayOf(up)}
	x.reply.status, x.reply.bytes = http.StatusOK, r.plane.carry(through, early)
	x.ended = core.Now()
	x.log(nil)
}

// wayOf is the entry of the list that allows a connection that was made.
func (s *screen) wayOf(up net.Conn) string {
	if tcp, ok := up.RemoteAddr().(*net.TCPAddr); ok {
		return s.list.Decide(s.host, s.port, tcp.AddrPort().Addr()).Entry
	}
	return "(others)"
}

// refuseTunnel says why there is no connection for a tunnel.
func (x *exchange) refuseTunnel(err error, addr string, began time.Duration) {
	var denied *deniedError
	switch {
	case errors.As(err, &denied):
		x.refuseConnect(denied.reason, http.StatusForbidden, denied.Error())
	case timedOut(err):
		x.refuseConnect("failed", http.StatusGatewayTimeout, fmt.Sprintf("no connection to %s within %v: %v", addr,
			(core.Now()-began).Round(time.Millisecond), err))
	default:
		x.refuseConnect("failed", http.StatusBadGateway, fmt.Sprintf("no connection to %s: %v", addr, err))
	}
}

// dialOutside makes a connection for a tunnel. It is counted as a call.
func (p *plane) dialOutside(ctx context.Context, s *screen, addr string) (net.Conn, error) {
	return abate.Do(ctx, p.outside.tunnel, func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, p.out.connectTimeout)
		defer cancel()
		nc, err := p.out.dialPast(ctx, s, "tcp", addr)
		if errors.As(err, new(*deniedError)) {
			err = abate.Ignore(err)
		}
		return nc, err
	})
}

// carry has bytes go both ways, and returns how many the service sent.
func (p *plane) carry(t *tunnel, early []byte) int64 {
	if !p.tunnels.open(t) {
		t.close()
		return 0
	}
	defer p.tunnels.close(t)
	untaken.Bound(t.client, -1) // an end of a tunnel may pause as long as it likes
	untaken.Bound(t.service, -1)
	t.client.SetDeadline(time.Time{})
	t.service.SetDeadline(time.Time{})
	return t.run(early)
}

// screenOriginal is what a redirected connection that is not read has to pass.
func (x *exchange) screenOriginal() *screen {
	r := &x.req
	to := r.client.origin().original
	list := r.plane.outside.lists(r.plane.config.PassThrough).connect
	return &screen{list, "outside.connect", to.Addr().String(), to.Port()}
}

// dialOriginal makes a connection to where a redirected one was meant for.
func (x *exchange) dialOriginal() (net.Conn, error) {
	x.renew()
	x.req.route = route{} // as in connect
	return x.req.plane.dialOutside(x.req.client.context(), x.screenOriginal(), x.req.client.origin().original.String())
}

// passRaw makes a tunnel of a redirected connection, or, if there was an error, ends it. said is what the other end has
// begun with.
func (x *exchange) passRaw(up net.Conn, err error, said []byte) {
	r, to := &x.req, x.req.client.origin().original
	if err != nil {
		why := "failed"
		if denied := (*deniedError)(nil); errors.As(err, &denied) {
			why = denied.reason
		}
		r.plane.tunnels.refuses(why)
		x.reply.reason = why
		x.ended = core.Now()
		x.log(err)
		r.client.abort()
		return
	}
	nc, early := r.client.takeOver()
	t := &tunnel{client: nc, service: up, stall: r.plane.config.StallTimeout, to: to.String(),
		peer: r.client.origin().peer.String(), way: x.screenOriginal().wayOf(up)}
	if len(said) > 0 {
		_, _ = nc.Write(said) // whether the client takes it, the tunnel finds out
	}
	x.reply.status, x.reply.bytes = http.StatusOK, r.plane.carry(t, early)
	x.ended = core.Now()
	x.log(nil)
}
