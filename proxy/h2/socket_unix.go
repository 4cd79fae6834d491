//go:build unix

package h2

import "syscall"

// rawSockets tells that sockets can be read and written without waiting.
const rawSockets = true

var errWouldBlock error = syscall.EAGAIN

// readSocket reads what there is, and does not wait.
func readSocket(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
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
