package proxy

import (
	"syscall"
	"unsafe"
)

// readSocket reads what there is, and does not wait.
func readSocket(fd uintptr, p []byte) (int, error) { return transferSocket(syscall.SYS_READ, fd, p) }

// writeSocket writes what there is room for, and does not wait.
func writeSocket(fd uintptr, p []byte) (int, error) {
	n, err := transferSocket(syscall.SYS_WRITE, fd, p)
	return max(n, 0), err
}

// transferSocket makes a system call that cannot block, for the socket does not: the scheduler need not hear of it, and
// has no reason to give this goroutine's processor to another thread, which costs more than the call.
func transferSocket(call, fd uintptr, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EAGAIN: // without making an error of it, which allocates
			return -1, errWouldBlock
		case syscall.EINTR:
		default:
			return -1, errno
		}
	}
}
