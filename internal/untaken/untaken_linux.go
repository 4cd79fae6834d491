// Package untaken bounds how long a peer may leave in a socket what was written to it.
package untaken

import (
	"math"
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is TCP_USER_TIMEOUT of tcp(7), which package syscall has no name for.
const tcpUserTimeout = 18

// Bound has the kernel end a TCP connection whose peer takes nothing of what is in the socket for d. What a
// write has left there is out of this program's sight, and the kernel by itself tries for many minutes, also after the
// connection was closed. A negative d takes the limit away.
func Bound(nc net.Conn, d time.Duration) {
	for under, ok := nc.(within); ok; under, ok = nc.(within) {
		nc = under.NetConn()
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	ms := 0 // the kernel's own
	if d >= 0 {
		ms = int(min(max(d.Milliseconds(), 1), math.MaxInt32))
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, ms) // without it all goes on as before
	})
}

// within is what goes over another connection, as TLS does.
type within interface{ NetConn() net.Conn }
