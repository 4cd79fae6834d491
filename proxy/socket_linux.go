package proxy

import "syscall"

// States of a TCP connection whose other end has finished, as the kernel numbers them.
const (
	stateClosed    = 7
	stateCloseWait = 8
)

// finished reports whether the other end of a TCP connection has closed it, or half of it, though there may still be
// something to read: a look at what comes next does not tell then. aborted tells that nothing can be sent there any
// more.
func finished(raw syscall.RawConn) (finished, aborted bool) {
	var info [4]byte // the beginning of tcp_info, whose first byte is the state
	err := raw.Control(func(fd uintptr) {
		info, _ = syscall.GetsockoptInet4Addr(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
	})
	aborted = err == nil && info[0] == stateClosed
	return aborted || err == nil && info[0] == stateCloseWait, aborted
}
