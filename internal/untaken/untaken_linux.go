// Package untaken bounds how long a peer may leave in a socket what was written to it.
package untaken

import (
	"errors"
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
	_ = set(raw, d) // without it all goes on as before
}

// BoundAccepted does the same, once, for all connections that a listener accepts and that begin from now on: they
// inherit it. It reports whether the kernel has taken it, as it does for plain TCP alone.
func BoundAccepted(l net.Listener, d time.Duration) bool {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	return err == nil && set(raw, d) == nil
}

func set(raw syscall.RawConn, d time.Duration) (err error) {
	ms := 0 // the kernel's own
	if d >= 0 {
		ms = int(min(max(d.Milliseconds(), 1), math.MaxInt32))
	}
	closed := raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, ms)
	})
	return errors.Join(closed, err)
}

// within is what goes over another connection, as TLS does.
type within interface{ NetConn() net.Conn }
