//go:build unix

package proxy

import "syscall"

// rawSockets tells that sockets can be read as they are.
const rawSockets = true

var errWouldBlock error = syscall.EAGAIN

// readSocket reads what there is, and does not wait.
func readSocket(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// writeSocket writes what there is room for, and does not wait.
func writeSocket(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// hungUp tells whether the other end of a connection has closed it, without reading from it.
func hungUp(raw syscall.RawConn) bool {
	n, err := peek(raw)
	return n == 0 && err == nil || err != nil && err != errWouldBlock
}

// silent tells whether a connection is open and has nothing to read: fit for a request.
func silent(raw syscall.RawConn) bool {
	_, err := peek(raw)
	return err == errWouldBlock
}

func peek(raw syscall.RawConn) (n int, err error) {
	var p [1]byte
	if closed := raw.Control(func(fd uintptr) {
		n, _, err = syscall.Recvfrom(int(fd), p[:], syscall.MSG_PEEK)
		if err == syscall.EINTR {
			err = syscall.EAGAIN
		}
	}); closed != nil {
		return 0, closed
	}
	return n, err
}
