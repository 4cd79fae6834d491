//go:build unix

package proxy

import (
	"syscall"

	"github.com/abate-go/abate/internal/nowait"
)

// openFiles is how many files the process may have open; 0 if that is not known.
func openFiles() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(limit.Cur, 1<<30))
}

// hungUp reports whether the other end of a connection has closed it, without reading from it.
func hungUp(raw syscall.RawConn) bool {
	n, err := peek(raw)
	return n == 0 && err == nil || err != nil && err != nowait.ErrWouldBlock
}

// silent reports whether a connection is open and has nothing to read: fit for a request.
func silent(raw syscall.RawConn) bool {
	_, err := peek(raw)
	return err == nowait.ErrWouldBlock
}

// saidGoodbye reports whether the next record of a TLS connection is an alert, as at its end: RFC 8446 §5. From version
// 1.3 on its type is hidden, but not that it has two bytes, one for its type, and the sixteen of the cipher's tag.
func saidGoodbye(raw syscall.RawConn) bool {
	const alert, hidden, hiddenAlert = 21, 23, 2 + 1 + 16
	var p [5]byte
	n, err := peekInto(raw, p[:])
	return err == nil && n == len(p) && (p[0] == alert || p[0] == hidden && int(p[3])<<8|int(p[4]) == hiddenAlert)
}

func peek(raw syscall.RawConn) (n int, err error) {
	var p [1]byte
	return peekInto(raw, p[:])
}

func peekInto(raw syscall.RawConn, p []byte) (n int, err error) {
	if closed := raw.Control(func(fd uintptr) {
		n, _, err = syscall.Recvfrom(int(fd), p, syscall.MSG_PEEK)
		if err == syscall.EINTR {
			err = syscall.EAGAIN
		}
	}); closed != nil {
		return 0, closed
	}
	return n, err
}
