package proxy

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/proxyproto"
)

// isAnnounced reads the PROXY header with which a trusted peer begins a connection, for which there is as long as for
// the head of a request. Without one there is nobody whom the requests could be from.
func (c *clientConn) isAnnounced() bool {
	h, err := readAnnouncement(c)
	switch {
	case err != nil:
		c.plane.note("no PROXY header", c.from.stumbled(err)...)
		return false
	case h.Local:
	case !h.Source.IsValid():
		// Nobody knows who it is: it must not be taken for the peer, who is trusted.
		c.from.peer, c.from.source, c.from.dst = netip.IPv4Unspecified(), netip.AddrPort{}, netip.AddrPort{}
	default:
		c.from.peer, c.from.source, c.from.dst = h.Source.Addr(), h.Source, h.Destination
	}
	return true
}

func readAnnouncement(c *clientConn) (h proxyproto.Header, err error) {
	nc := c.sock.lends.Conn
	nc.SetReadDeadline(time.Now().Add(c.plane.config.HeaderTimeout))
	c.waiting.Store(int64(max(core.Now(), 1)))
	defer func() { c.waiting.Store(0); c.heading.Store(0) }()
	var room [64]byte
	for b := room[:0]; ; {
		var more int
		if h, more, err = proxyproto.Parse(b); err != nil || more == 0 {
			break
		}
		b = append(b, make([]byte, more)...)
		if err = readAll(c, nc, b[len(b)-more:]); err != nil {
			break
		}
	}
	nc.SetReadDeadline(time.Time{})
	return h, err
}

// readAll fills p from nc, the connection of c. While the proxy drains, or others need the room, it waits for nothing,
// but what has come is read, also if whoever dismisses the client has ended a wait.
func readAll(c *clientConn, nc net.Conn, p []byte) error {
	for n := 0; n < len(p); {
		if hastens(c) { // looked at while it can be dismissed
			until := time.Unix(1, 0)
			if c.sock.readable() || hasBegun(c) {
				until = time.Now().Add(glance)
			}
			nc.SetReadDeadline(until)
		}
		more, err := nc.Read(p[n:])
		if n += more; more > 0 {
			c.begins()
		} else if err != nil && !(errors.Is(err, os.ErrDeadlineExceeded) && hastens(c) &&
			(c.sock.readable() || hasBegun(c))) {
			return err
		}
	}
	return nil
}

// hastens reports whether a client has to go soon who has not come as far as a request.
func hastens(c *clientConn) bool { return c.draining.Load() || c.dismissed.Load() }

// hasBegun reports whether others who need the room have to wait for what the client has just begun.
func hasBegun(c *clientConn) bool {
	began := time.Duration(c.heading.Load())
	return !c.draining.Load() && began != 0 && core.Now() < later(began, slowEnough)
}
