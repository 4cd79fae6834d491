// The race detector knows of the order that a socket makes only by the functions of package syscall.

//go:build unix && (!linux || race)

package nowait

import "syscall"

// Read reads what there is.
func Read(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}

// Write writes what there is room for.
func Write(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		if err != syscall.EINTR {
			return max(n, 0), err
		}
	}
}
