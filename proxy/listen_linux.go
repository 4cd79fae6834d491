package proxy

import "syscall"

// inheritedKeepAlive has package net leave alone the connections that a listener accepts: on Linux they have what
// keepAlive sets for the listener, without four calls of the system for each of them.
const inheritedKeepAlive = -1

// keepAlive sets on a listener what package net sets on each connection by default.
func keepAlive(_, _ string, raw syscall.RawConn) (err error) {
	failed := raw.Control(func(fd uintptr) {
		for _, option := range [...]struct{ level, name, value int }{
			{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 15},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 15},
			{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 9},
		} {
			if err == nil {
				err = syscall.SetsockoptInt(int(fd), option.level, option.name, option.value)
			}
		}
	})
	if failed != nil {
		return failed
	}
	return err
}
