//go:build unix

package h2

import "syscall"

// rawSockets says whether sockets can be read and written without waiting.
const rawSockets = true

var errWouldBlock error = syscall.EAGAIN

// readSocket reads what there is without waiting.
func readSocket(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// writeSocket writes what there is room for without waiting.
func writeSocket(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
