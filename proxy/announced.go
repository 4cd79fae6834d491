package proxy

import (
	"io"
	"net/netip"
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
		c.plane.note("no PROXY header", &c.from, err)
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
	defer c.waiting.Store(0)
	if c.draining.Load() {
		return h, io.EOF
	}
	var room [64]byte
	for b := room[:0]; ; {
		var more int
		if h, more, err = proxyproto.Parse(b); err != nil || more == 0 {
			break
		}
		b = append(b, make([]byte, more)...)
		if _, err = io.ReadFull(nc, b[len(b)-more:]); err != nil {
			break
		}
	}
	nc.SetReadDeadline(time.Time{})
	return h, err
}
