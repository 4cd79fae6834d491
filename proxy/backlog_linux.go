//go:build linux && (amd64 || arm64)

package proxy

import (
	"net"
	"syscall"
	"unsafe"
)

// tellsBacklog is that backlog can tell.
const tellsBacklog = true

// backlog is how many clients the kernel has connected to a listener that nobody has accepted yet, as it tells of
// listening sockets in the place of segments that are not acknowledged; 0 if it does not.
func backlog(l net.Listener) (n int) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		var info struct { // the beginning of tcp_info
			state, _, _, _, _, _, _, _ uint8
			_, _, _, _                 uint32
			unacked                    uint32
		}
		size := uint32(unsafe.Sizeof(info))
		_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		const listening = 10
		if errno == 0 && info.state == listening {
			n = int(info.unacked)
		}
	})
	return n
}

// awaited reports whether a client can be accepted at a listener at once. backlog alone does not tell: somebody may be
// in its count, and not there.
func awaited(l net.Listener) (is bool) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		const readable = 1 // POLLIN
		var at syscall.Timespec
		for asked := (struct {
			fd           int32
			events, told int16
		}{int32(fd), readable, 0}); ; {
			n, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&asked)), 1,
				uintptr(unsafe.Pointer(&at)), 0, 0, 0)
			if errno != syscall.EINTR {
				is = errno == 0 && n == 1 && asked.told&readable != 0
				return
			}
		}
	})
	return is
}
