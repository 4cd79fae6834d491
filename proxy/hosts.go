package proxy

import (
	"net"
	"sync/atomic"
)

// mostSpare is how many goroutines are kept for the next client. They cost 8 KB each, and less from the next garbage
// collection on.
const mostSpare = 128

// guest is a client that has been accepted, and where, or one that has rested.
type guest struct {
	door   *door
	nc     net.Conn
	bound  bool // see welcome
	rested *clientConn
}

// rest waits until a client that is idle goes on, where it cannot be left to the roost: at least with a small stack.
func (h *hosts) rest(d *door, c *clientConn) {
	awaitByte(c)
	h.goOn(d, c)
}

// goOn has a client be served that has rested.
func (h *hosts) goOn(d *door, c *clientConn) { h.receive(guest{door: d, rested: c}) }

// hosts are the goroutines that serve clients, one each. One whose client has gone serves the next: its stack has
// grown already, which costs a client with a single request a tenth of the proxy's processor time.
type hosts struct {
	next  chan guest
	end   <-chan struct{}
	spare atomic.Int32
}

// receive has a goroutine serve a guest.
func (h *hosts) receive(g guest) {
	select {
	case h.next <- g:
	default:
		go h.serve(g)
	}
}

// serve serves a guest, and those after it until there are more goroutines like this one than are kept.
func (h *hosts) serve(g guest) {
	for {
		if g.rested != nil {
			g.door.attend(g.rested)
		} else {
			g.door.welcome(g.nc, g.bound)
		}
		g = guest{}
		if h.spare.Add(1) > mostSpare {
			h.spare.Add(-1)
			return
		}
		select {
		case g = <-h.next:
			h.spare.Add(-1)
		case <-h.end:
			return
		}
	}
}
