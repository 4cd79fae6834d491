package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/internal/untaken"
	"github.com/abate-go/abate/proxy/h1"
)

// spliceFrom is how much content must be left for the kernel to move it from socket to socket. splicePiece is how
// much it moves at once: so much a client has to take within StallTimeout.
const (
	spliceFrom  = 128 << 10
	splicePiece = 256 << 10
)

// splice moves a piece of a long answer without reading it, if both ends are TCP. It looks after the client as read
// does. After an error neither end can go on: what had left the service may not have reached the client.
func (t *transfer) splice() (moved bool, err error) {
	a, r := t.from, t.req
	if a.conn == nil || a.conn.tcp == nil || a.frame.left < spliceFrom || a.keeping {
		return false, nil
	}
	now := core.Now()
	if len(a.conn.in.unread()) > 0 || now >= a.until {
		return false, nil // next has what is there, or says what is wrong
	}
	stalled := later(now, r.plane.config.StallTimeout)
	to := r.client.sink(stalled)
	if to == nil {
		return false, nil
	}
	a.conn.readBy = min(a.until, later(now, glance))
	a.conn.nc.SetReadDeadline(r.plane.clock.time(a.conn.readBy))
	// The last byte is left to next: what the guard and others learn of the end they learn before the client has all.
	piece := io.LimitedReader{R: a.conn.tcp, N: min(a.frame.left-1, splicePiece)}
	n, err := to.ReadFrom(&piece)
	a.frame.left -= n
	t.reply.bytes += n
	if errors.Is(err, os.ErrDeadlineExceeded) && core.Now() < stalled { // the service is slow, not the client
		if n == 0 && r.client.gone() {
			return false, errGone
		}
		return true, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: %w", errStalls, err)
	}
	return n > 0 && err == nil, err
}

// switches passes on the answer to a request for another protocol, if it is one that ends HTTP, or would seem to a
// client of HTTP/2 to do so.
func (t *transfer) switches() bool {
	a := t.from
	switch {
	case a.resp.Status == http.StatusSwitchingProtocols && t.req.plane.tunnels.isShut():
		t.reply.problem(problem{Status: http.StatusServiceUnavailable, Reason: drainingReason,
			UpstreamStatus: a.resp.Status, Detail: noMoreTunnels})
	case a.resp.Status == http.StatusSwitchingProtocols:
		t.tunnel()
	case t.req.Upgrade != nil && t.req.client.multiplexed() && a.resp.Status/100 == 2:
		t.reply.problem(problem{Status: http.StatusBadGateway, Reason: "not-switched", UpstreamStatus: a.resp.Status,
			Detail: t.req.service() + " answered the request for another protocol without switching to it"})
	default:
		return false
	}
	return true
}

// tunnel takes both connections over.
func (t *transfer) tunnel() {
	a, r := t.from, t.req
	outliveInput(r)
	// The head of the answer lies in memory that takeOver gives away.
	var answer []byte
	if r.client.multiplexed() {
		t.reply.respond(head{status: http.StatusOK, fields: without(a.resp.Fields, "sec-websocket-accept"), length: -1})
		r.client.flush()
	} else {
		t.reply.status = http.StatusSwitchingProtocols
		answer = t.switched()
	}
	up, begun := takeOver(a)
	begun = append(answer, begun...)
	client, early := r.client.takeOver()
	if answer != nil {
		client.SetWriteDeadline(r.plane.clock.time(later(core.Now(), r.plane.config.StallTimeout)))
	}
	through := &tunnel{client: client, service: up, stall: r.plane.config.StallTimeout}
	if !r.plane.tunnels.open(through) {
		through.close()
		return
	}
	defer r.plane.tunnels.close(through)
	untaken.Bound(client, -1) // an end of a tunnel may pause as long as it likes
	untaken.Bound(up, -1)
	_, _ = client.Write(begun) // whether the client takes it, the tunnel finds out
	client.SetDeadline(time.Time{})
	up.SetDeadline(time.Time{})
	t.reply.bytes = through.run(early)
	a.sent = true
}

// takeOver gives the connection to the service away, with what has come behind the head of its answer. A stream is
// closed with its attempt.
func takeOver(a *answer) (up net.Conn, begun []byte) {
	if a.h2.s != nil {
		begun, a.h2.first = bytes.Clone(a.h2.first), nil
		return newStreamConn(a.h2.s, netip.Addr{}), begun
	}
	c := a.conn
	a.conn = nil
	begun = bytes.Clone(c.in.unread())
	c.in.put()
	return c.nc, begun
}

// switched is the answer that switches to the other protocol.
func (t *transfer) switched() []byte {
	a, in := t.from, t.req.in
	b := h1.AppendStatus(nil, http.StatusSwitchingProtocols, a.resp.Reason)
	b = h1.AppendFields(b, a.resp.Fields)
	if h := (&head{status: http.StatusSwitchingProtocols}); in != nil {
		b, _ = in.appendReport(b, h)
	} else {
		b = t.reply.appendReport(b, h)
	}
	b = append(b, "Connection: Upgrade\r\nUpgrade: "...)
	return append(append(b, a.resp.Upgrade...), "\r\n\r\n"...)
}
