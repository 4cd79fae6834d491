package proxy

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/abate-go/abate/proxy/h1"
)

// redirected is a connection that a firewall has redirected here.
type redirected struct{ *clientConn }

// findOriginal finds where a connection was meant for that a firewall has redirected here. It is false if that is
// nowhere else: somebody has connected to this address itself, or the proxy to itself.
func (c redirected) findOriginal() bool {
	local := c.from.self
	if c.sock.raw == nil { // no Linux
		c.strayed("this system does not tell where it was meant for")
		return false
	}
	to, err := originalOf(c.sock.raw, local.Addr().Is6() && !local.Addr().Is4In6())
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	why := ""
	switch {
	case err != nil:
		why = "the firewall knows nothing of it: " + err.Error()
	case to == netip.AddrPortFrom(local.Addr().Unmap(), local.Port()):
		why = "it was meant for this address itself: connect to the --listen address instead"
	case c.plane.tunnels.own(addrPort(c.sock.nc.RemoteAddr())):
		why = "it comes from this proxy: the rules of the firewall have to leave its user out"
	default:
		c.from.original, c.from.dst = to, to
		return true
	}
	c.strayed(why)
	return false
}

// strayed notes a connection that cannot go on.
func (c redirected) strayed(why string) {
	c.plane.note("redirected connection ended", slog.String("peer", c.from.peer.String()),
		slog.String("to", c.from.original.String()), slog.String("reason", why))
}

// firstWords is how long a redirected client that says nothing is waited for before its other end is asked: in some
// protocols the server begins. turn is how long each of them is waited for then.
const (
	firstWords = 300 * time.Millisecond
	turn       = 50 * time.Millisecond
)

// looks is what the beginning of a connection is.
type looks int

const (
	undecided looks = iota
	isRequest
	isOther
)

// look tells a request from everything else: a method in capital letters, a space, and a path, *, or the beginning of a
// URL. It needs no more than that to be sure that something is none.
func look(begun []byte) looks {
	for i, b := range begun {
		switch {
		case 'A' <= b && b <= 'Z' && i < len("VERSION-CONTROL"), b == '-' && i > 0 && i < len("VERSION-CONTROL"):
		case b != ' ' || i == 0:
			return isOther
		case i+1 == len(begun):
			return undecided
		case begun[i+1] == '/' || begun[i+1] == '*' || begun[i+1] == 'h':
			return isRequest
		default:
			return isOther
		}
	}
	return undecided
}

// passRaw sends a redirected connection on to where it was meant for, unread, unless it begins with a request. done
// reports whether the connection has found its end.
func (c redirected) passRaw() (done bool) {
	kind := c.listen(firstWords)
	if kind == isRequest {
		return false
	}
	x := exchangeOf(c.clientConn)
	up, err := x.dialOriginal()
	var said []byte
	if err == nil && kind == undecided {
		kind, said = c.listenToBoth(up)
	}
	switch {
	case kind == isRequest || kind == undecided && err == nil:
		up.Close()
		return kind == undecided
	case err != nil && kind == undecided: // it may still be a request, which is answered
		return false
	}
	x.req.Request = h1.Request{}
	c.body.begin(&x.req.Request) // what has come is early
	c.last = true
	x.passRaw(up, err, said)
	return true
}

// listen waits for the beginning of what a client says.
func (c redirected) listen(limit time.Duration) looks {
	for until := time.Now().Add(limit); ; {
		if kind := look(c.sock.in.unread()); kind != undecided {
			return kind
		}
		c.sock.nc.SetReadDeadline(until)
		err := c.sock.read()
		c.sock.nc.SetReadDeadline(time.Time{})
		if c.sock.readBy = 0; errors.Is(err, os.ErrDeadlineExceeded) && len(c.sock.in.unread()) > 0 {
			return isOther
		} else if err != nil {
			return undecided
		}
	}
}

// listenToBoth waits until one of both ends says something. A client may connect long before its first request, which
// must not go past the policy for that.
func (c redirected) listenToBoth(up net.Conn) (kind looks, said []byte) {
	buf := make([]byte, 1)
	for until := time.Now().Add(c.plane.config.IdleTimeout); time.Now().Before(until) && !c.draining.Load(); {
		if kind = c.listen(turn); kind != undecided || c.sock.left(true) {
			return kind, nil
		}
		up.SetReadDeadline(time.Now().Add(turn))
		n, err := up.Read(buf)
		up.SetReadDeadline(time.Time{})
		switch {
		case n > 0:
			return isOther, buf[:n]
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return undecided, nil
		}
	}
	return undecided, nil
}
